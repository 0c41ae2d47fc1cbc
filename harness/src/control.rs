//! The control API, as a client of it.
//!
//! JSON over HTTP, one connection per request. Every request has a deadline in real time.

mod refusal;

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, StatusCode, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::Value;
use servicebus_emulator::ControlToken;
use tokio::net::TcpStream;

use crate::{
    exchange::exchange, kind::EntityKind, liveness::Liveness, remote::RemoteNamespace,
    running::Namespace, text,
};

pub(crate) use refusal::{ControlError, Refusal};

/// How long the emulator may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(30);
/// How long it may take to say whether it is healthy.
const HEALTH_WITHIN: Duration = Duration::from_secs(5);
/// What a query value may hold as it is.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Where an entity is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place<'a> {
    pub(crate) kind: EntityKind,
    pub(crate) name: &'a str,
}

impl Place<'_> {
    fn path(self) -> String {
        format!("{}s/{}", self.kind, utf8_percent_encode(self.name, KEPT))
    }
}

/// Something that went wrong inside the emulator, which is a mistake of its own.
#[derive(Debug, Deserialize)]
pub(crate) struct Failure {
    namespace: Option<String>,
    /// The entity that is broken by it, if one is.
    pub(crate) entity: Option<String>,
    pub(crate) reason: String,
}

#[derive(Debug, Deserialize)]
struct Health {
    /// None where all is well.
    #[serde(default)]
    failures: Vec<Failure>,
}

/// A client of one namespace's control API.
#[derive(Debug)]
pub(crate) struct Control {
    address: SocketAddr,
    namespace: String,
    liveness: Liveness,
    /// Shown with every request, where requests may come from beyond the emulator's loopback.
    token: Option<ControlToken>,
    /// Answers instead where the namespace has no such API.
    remote: Option<Arc<RemoteNamespace>>,
}

impl Control {
    pub(crate) fn new(address: SocketAddr, namespace: &str, liveness: Liveness) -> Self {
        Self {
            address,
            namespace: utf8_percent_encode(namespace, KEPT).to_string(),
            liveness,
            token: None,
            remote: None,
        }
    }

    /// The same with the emulator's control token, if it has one.
    pub(crate) fn showing(self, token: Option<ControlToken>) -> Self {
        Self { token, ..self }
    }

    /// Asks a namespace that runs elsewhere, which has no control API.
    pub(crate) fn remote(
        address: SocketAddr,
        namespace: &str,
        remote: Arc<RemoteNamespace>,
    ) -> Self {
        Self {
            remote: Some(remote),
            ..Self::new(address, namespace, Liveness::default())
        }
    }

    /// Returns whether there is an emulator whose record and clock can be asked.
    pub(crate) fn is_emulator(&self) -> bool {
        self.remote.is_none()
    }

    /// Returns whether an entity was made by this `ServiceBus`; a namespace that runs elsewhere may hold others.
    pub(crate) fn is_own(&self, name: &str) -> bool {
        let remote = self.remote.as_ref();
        remote.is_none_or(|remote| remote.has_made(name))
    }

    /// Returns the address of the API itself, without a namespace.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/$emulator/v1", self.address)
    }

    /// Asks a question of the namespace.
    pub(crate) async fn get<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, ControlError> {
        let answer = self
            .call(Method::GET, path, query, None, ANSWER_WITHIN)
            .await?;
        decode(path, &answer)
    }

    /// Orders something whose answer matters.
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, ControlError> {
        let answer = self
            .call(Method::POST, path, &[], Some(body), ANSWER_WITHIN)
            .await?;
        decode(path, &answer)
    }

    /// Asks a question about bytes.
    pub(crate) async fn ask_about<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &[(&str, &str)],
        bytes: Bytes,
    ) -> Result<T, ControlError> {
        if let Some(remote) = &self.remote {
            let answer = Box::pin(remote.answer(&Method::POST, path, query, &bytes)).await?;
            return decode(path, &answer);
        }
        let path = self.path(path) + &query_string(query);
        let body = ("application/octet-stream", bytes);
        let answer = self.send(Method::POST, &path, body, ANSWER_WITHIN).await?;
        decode(&path, &answer)
    }

    /// Orders something that answers by its status alone, and may take `within` by itself.
    pub(crate) async fn order(
        &self,
        path: &str,
        body: &Value,
        within: Duration,
    ) -> Result<(), ControlError> {
        let within = ANSWER_WITHIN + within;
        let done = self.call(Method::POST, path, &[], Some(body), within);
        done.await.map(|_nothing| ())
    }

    /// Puts something to a place; only whether that was allowed matters.
    pub(crate) async fn put(&self, place: Place<'_>, body: &Value) -> Result<(), ControlError> {
        let path = place.path();
        let put = self.call(Method::PUT, &path, &[], Some(body), ANSWER_WITHIN);
        put.await.map(|_nothing| ())
    }

    /// Removes what is at a place.
    pub(crate) async fn delete(&self, place: Place<'_>) -> Result<(), ControlError> {
        self.remove(&place.path()).await
    }

    /// Removes what is at a path.
    pub(crate) async fn remove(&self, path: &str) -> Result<(), ControlError> {
        let removed = self.call(Method::DELETE, path, &[], None, ANSWER_WITHIN);
        removed.await.map(|_nothing| ())
    }

    /// The certificate that clients over TLS must trust, in PEM.
    pub(crate) async fn ca_certificate(&self) -> Result<String, ControlError> {
        if self.remote.is_some() {
            let what =
                "the authority that signed for the namespace, which clients trust by their system";
            return Err(ControlError::Uncheckable {
                what: what.to_owned(),
            });
        }
        let path = "/$emulator/v1/ca.pem";
        let nothing = ("application/json", Bytes::new());
        let answer = self.send(Method::GET, path, nothing, ANSWER_WITHIN).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// What has gone wrong inside the emulator, in this namespace or in none.
    pub(crate) async fn failures(&self) -> Result<Vec<Failure>, ControlError> {
        if self.remote.is_some() {
            return Ok(Vec::new());
        }
        let path = "/health";
        let nothing = ("application/json", Bytes::new());
        let (_status, answer) = self.ask(Method::GET, path, nothing, HEALTH_WITHIN).await?;
        let Health { mut failures } = decode(path, &answer)?;
        let own = |name: &String| utf8_percent_encode(name, KEPT).to_string() == self.namespace;
        failures.retain(|failure| failure.namespace.as_ref().is_none_or(own));
        Ok(failures)
    }

    /// Makes the namespace of this client. `topology` is a text in the official emulator's JSON.
    pub(crate) async fn create_namespace(
        &self,
        topology: String,
    ) -> Result<Namespace, ControlError> {
        let path = self.namespace_path();
        let body = ("application/json", Bytes::from(topology));
        let answer = self.send(Method::PUT, &path, body, ANSWER_WITHIN).await?;
        decode(&path, &answer)
    }

    /// Removes the namespace of this client with everything in it.
    pub(crate) async fn remove_namespace(&self) -> Result<(), ControlError> {
        let path = self.namespace_path();
        let nothing = ("application/json", Bytes::new());
        let removed = self.send(Method::DELETE, &path, nothing, ANSWER_WITHIN);
        removed.await.map(|_nothing| ())
    }

    fn namespace_path(&self) -> String {
        format!("/$emulator/v1/namespaces/{}", self.namespace)
    }

    fn path(&self, path: &str) -> String {
        format!("/$emulator/v1/namespaces/{}/{path}", self.namespace)
    }

    /// Asks the control API, or the administration API of a remote namespace.
    async fn call(
        &self,
        method: Method,
        path: &str,
        query: &[(&str, &str)],
        body: Option<&Value>,
        within: Duration,
    ) -> Result<Bytes, ControlError> {
        let body = body.map(Value::to_string).unwrap_or_default();
        if let Some(remote) = &self.remote {
            // Boxed: few tests need it, and TLS makes it large.
            return Box::pin(remote.answer(&method, path, query, body.as_bytes())).await;
        }
        let path = self.path(path) + &query_string(query);
        let json = "application/json";
        self.send(method, &path, (json, body.into()), within).await
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: (&str, Bytes),
        within: Duration,
    ) -> Result<Bytes, ControlError> {
        match self.ask(method, path, body, within).await? {
            (status, answer) if status.is_success() => Ok(answer),
            (status, answer) => Err(ControlError::Refused(Refusal::new(status, path, &answer))),
        }
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        (content_type, body): (&str, Bytes),
        within: Duration,
    ) -> Result<(StatusCode, Bytes), ControlError> {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, token.authorization());
        }
        let request = request
            .header(header::HOST, self.address.to_string())
            .header(header::CONTENT_TYPE, content_type)
            .header(header::CONNECTION, "close")
            .body(Full::new(body))
            .expect("method, path and headers are well-formed");
        match tokio::time::timeout(within, self.exchange(request)).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(self.unreachable(source).await),
            Err(_elapsed) => Err(self.unreachable(silence(within)).await),
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> io::Result<(StatusCode, Bytes)> {
        let stream = Box::new(TcpStream::connect(self.address).await?);
        // The emulator bounds what it remembers.
        exchange(stream, request, usize::MAX).await
    }

    async fn unreachable(&self, source: io::Error) -> ControlError {
        ControlError::Unreachable {
            address: self.address,
            source: self.liveness.explain(source).await,
        }
    }
}

fn query_string(query: &[(&str, &str)]) -> String {
    let pairs = query
        .iter()
        .map(|(key, value)| format!("{key}={}", utf8_percent_encode(value, KEPT)));
    match Vec::from_iter(pairs).join("&") {
        empty if empty.is_empty() => empty,
        pairs => format!("?{pairs}"),
    }
}

fn decode<T: DeserializeOwned>(path: &str, answer: &Bytes) -> Result<T, ControlError> {
    serde_json::from_slice(answer).map_err(|source| ControlError::Malformed {
        path: path.to_owned(),
        source,
    })
}

fn silence(within: Duration) -> io::Error {
    let text = format!("no answer within {}", text::seconds(within));
    io::Error::new(io::ErrorKind::TimedOut, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_token_is_shown_with_every_request() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let emulator = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = emulator.local_addr().unwrap();
        for (token, shown) in [(None, false), (Some("S3cret".parse().unwrap()), true)] {
            let control = Control::new(address, "bus", Liveness::default()).showing(token);
            assert!(!format!("{control:?}").contains("S3cret"));
            let answering = async {
                let (mut client, _) = emulator.accept().await.unwrap();
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    head.push(client.read_u8().await.unwrap());
                }
                let answer = b"HTTP/1.1 204 No Content\r\n\r\n";
                client.write_all(answer).await.unwrap();
                String::from_utf8(head).unwrap().to_lowercase()
            };
            let (removed, head) = tokio::join!(control.remove("queues/q"), answering);
            removed.unwrap();
            assert_eq!(
                head.contains("authorization: bearer s3cret\r\n"),
                shown,
                "{head}"
            );
        }
    }

    #[test]
    fn queries_are_encoded() {
        assert_eq!(query_string(&[]), "");
        assert_eq!(
            query_string(&[("entity", "orders/$DeadLetterQueue"), ("message_id", "a b")]),
            "?entity=orders%2F%24DeadLetterQueue&message_id=a%20b"
        );
    }
}
