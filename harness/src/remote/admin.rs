//! A client of a namespace's administration API.
//!
//! Atom over HTTPS, one connection per request: tests send few requests, and a connection that is not kept cannot become
//! stale.

use std::{
    io,
    net::SocketAddr,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, StatusCode, header};
use percent_encoding::{AsciiSet, utf8_percent_encode};
use servicebus_assertions::without_tracking;
use servicebus_broker::filter::Rule;
use servicebus_config::{
    auth::{Key, sas},
    descriptions::description_root,
    xml::{Element, read},
};

use super::{
    Secure,
    config::RemoteConfig,
    description::{Description, rule_document},
};
use crate::{
    catalog::{EntityKind, broker_kind},
    error::control::{ControlError, Refusal},
    stream::{self, UNRESERVED, exchange},
};

/// How long the namespace may take to answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// The pauses, in seconds, before a request that the service throttles is repeated.
const THROTTLED: [u64; 4] = [1, 2, 4, 8];
/// The lifetime of a token.
const TOKEN_LIFETIME: Duration = Duration::from_secs(3600);
/// The newest version that every SDK uses.
const VERSION: &str = "2021-05";
/// The number of entities per page of a list.
const PAGE: usize = 100;
/// The largest number of pages to read of a list.
const MAX_PAGES: usize = 100;
/// The size limit of an answer, in bytes.
const MAX_ANSWER: usize = 16 * 1024 * 1024;
/// The characters that need no encoding in a path.
const KEPT: &AsciiSet = &UNRESERVED.remove(b'/');

/// A client of one namespace.
#[derive(Debug)]
pub(crate) struct Admin {
    authority: String,
    address: SocketAddr,
    secure: Secure,
    key: Key,
}

/// An entity as the service describes it.
#[derive(Debug)]
pub(crate) struct ListedEntity {
    pub(crate) name: String,
    pub(crate) description: Element,
}

struct AdminRequest {
    method: Method,
    path: String,
    query: String,
    headers: Vec<&'static str>,
    body: String,
}

impl Admin {
    pub(crate) fn new(remote_config: &RemoteConfig, address: SocketAddr, secure: Secure) -> Self {
        Self {
            authority: remote_config.authority(),
            address,
            secure,
            key: remote_config.key.clone(),
        }
    }

    /// Returns the host, with its port unless that is the default.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Returns the name and the tier of the namespace.
    pub(crate) async fn namespace(&self) -> Result<(String, String), ControlError> {
        let answer = self.ask(Method::GET, "$namespaceinfo", "").await?;
        let info = described(&answer).unwrap_or_default();
        let text = |name| text_of(&info, name).unwrap_or_default().to_owned();
        Ok((text("Name"), text("MessagingSKU")))
    }

    /// Creates an entity.
    pub(crate) async fn create(
        &self,
        path: &str,
        description: &Description,
    ) -> Result<(), ControlError> {
        let body = description.document();
        self.put(path, supplementary_tokens(description), body)
            .await
    }

    /// Replaces the description of an entity.
    pub(crate) async fn replace(
        &self,
        path: &str,
        description: &Description,
    ) -> Result<(), ControlError> {
        let headers = supplementary_tokens(description).chain(["if-match"]);
        self.put(path, headers, description.document()).await
    }

    pub(crate) async fn create_rule(&self, path: &str, rule: &Rule) -> Result<(), ControlError> {
        self.put(path, [], rule_document(rule)).await
    }

    /// Deletes an entity.
    pub(crate) async fn delete(&self, path: &str) -> Result<(), ControlError> {
        let deleted = self.ask(Method::DELETE, &encoded(path), "").await;
        deleted.map(|_nothing| ())
    }

    /// Returns the description of an entity; `None` if it does not exist.
    pub(crate) async fn find(
        &self,
        kind: EntityKind,
        path: &str,
    ) -> Result<Option<Element>, ControlError> {
        let answer = match self.ask(Method::GET, &encoded(path), "").await {
            Ok(answer) => answer,
            Err(error) if error.status() == Some(404) => return Ok(None),
            Err(error) => return Err(error),
        };
        // The service answers a request for a missing queue or topic with an unrelated list.
        let root = description_root(broker_kind(kind));
        Ok(described(&answer).filter(|description| description.name == root))
    }

    /// Lists the entities at a path: `$Resources/queues`, `prices/Subscriptions`.
    pub(crate) async fn list(&self, path: &str) -> Result<Vec<ListedEntity>, ControlError> {
        let mut found = Vec::new();
        for page in 0..MAX_PAGES {
            let query = format!("&$skip={}&$top={PAGE}", page * PAGE);
            let answer = self.ask(Method::GET, path, &query).await?;
            let entries = answer.children.iter().filter(|part| part.name == "entry");
            let before = found.len();
            found.extend(entries.filter_map(|entry| {
                Some(ListedEntity {
                    name: text_of(entry, "title")?.to_owned(),
                    description: described(entry)?,
                })
            }));
            if found.len() - before < PAGE {
                break;
            }
        }
        Ok(found)
    }

    async fn put(
        &self,
        path: &str,
        headers: impl IntoIterator<Item = &'static str>,
        body: String,
    ) -> Result<(), ControlError> {
        let call = AdminRequest {
            method: Method::PUT,
            path: encoded(path),
            query: String::new(),
            headers: headers.into_iter().collect(),
            body,
        };
        self.send(call).await.map(drop)
    }

    async fn ask(&self, method: Method, path: &str, query: &str) -> Result<Element, ControlError> {
        let call = AdminRequest {
            method,
            path: path.to_owned(),
            query: query.to_owned(),
            headers: Vec::new(),
            body: String::new(),
        };
        self.send(call).await
    }

    /// Sends a request, again if the service throttles it, and parses the body of the answer if it has one.
    async fn send(&self, call: AdminRequest) -> Result<Element, ControlError> {
        for pause in THROTTLED {
            match self.send_once(&call).await {
                Err(error) if matches!(error.status(), Some(429 | 503)) => {
                    tokio::time::sleep(Duration::from_secs(pause)).await;
                }
                answer => return answer,
            }
        }
        self.send_once(&call).await
    }

    async fn send_once(&self, call: &AdminRequest) -> Result<Element, ControlError> {
        let path = &call.path;
        let request = self.request(call);
        let exchanged = stream::within(RESPONSE_TIMEOUT, self.exchange(request)).await;
        let (status, answer) = exchanged.map_err(|source| self.no_response(source))?;
        let body = String::from_utf8_lossy(&answer);
        if !status.is_success() {
            return Err(ControlError::Refused(refusal(status, path, &body)));
        }
        match body.trim() {
            "" => Ok(Element::default()),
            body => read(body.as_bytes())
                .map_err(|reason| self.no_response(io::Error::other(format!("{path}: {reason}")))),
        }
    }

    fn request(&self, call: &AdminRequest) -> Request<Full<Bytes>> {
        let uri = format!("/{}?api-version={VERSION}{}", call.path, call.query);
        let mut request = Request::builder()
            .method(&call.method)
            .uri(uri)
            .header(header::HOST, &self.authority)
            .header(header::AUTHORIZATION, self.token())
            .header(header::CONNECTION, "close");
        if !call.body.is_empty() {
            let atom = "application/atom+xml;type=entry;charset=utf-8";
            request = request.header(header::CONTENT_TYPE, atom);
        }
        for &name in &call.headers {
            let value = match name {
                "if-match" => "*".to_owned(),
                _ => self.token(),
            };
            request = request.header(name, value);
        }
        request
            .body(Full::new(call.body.clone().into()))
            .expect("paths are encoded, tokens too")
    }

    fn token(&self) -> String {
        let end = SystemTime::now() + TOKEN_LIFETIME;
        let end = end.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let resource = format!("https://{}/", self.authority);
        sas::sign(&resource, &self.key, i64::try_from(end).unwrap_or(i64::MAX))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> io::Result<(StatusCode, Bytes)> {
        let stream = self.secure.connect(self.address).await?;
        exchange(stream, request, MAX_ANSWER).await
    }

    fn no_response(&self, source: io::Error) -> ControlError {
        ControlError::Administration {
            host: format!("{} ({})", self.authority, self.address),
            source,
        }
    }
}

/// Returns the headers for the tokens of the entities to which an entity forwards.
fn supplementary_tokens(description: &Description) -> impl Iterator<Item = &'static str> {
    let [forwards, dead_letters] = description.forwards();
    let supplementary_tokens = [
        (forwards, "servicebussupplementaryauthorization"),
        (dead_letters, "servicebusdlqsupplementaryauthorization"),
    ];
    let needed = supplementary_tokens
        .into_iter()
        .filter(|(is_needed, _)| *is_needed);
    needed.map(|(_, name)| name)
}

fn encoded(path: &str) -> String {
    utf8_percent_encode(path, KEPT).to_string()
}

fn described(entry: &Element) -> Option<Element> {
    entry.any("content")?.children.first().cloned()
}

/// Returns the text of a child element.
pub(crate) fn text_of<'a>(element: &'a Element, name: &str) -> Option<&'a str> {
    element.any(name).map(|child| child.text.as_str())
}

/// Parses an error of the service: `<Error><Code>409</Code><Detail>…</Detail></Error>`.
fn refusal(status: StatusCode, path: &str, body: &str) -> Refusal {
    let error = read(body.as_bytes()).ok();
    let detail = error.as_ref().and_then(|error| text_of(error, "Detail"));
    let message = match detail.filter(|detail| !detail.is_empty()) {
        Some(detail) => without_tracking(detail).to_owned(),
        None => format!("{path} answered {body}"),
    };
    Refusal {
        status: status.as_u16(),
        message,
        problems: Vec::new(),
    }
}
