//! A client of an emulator's control API.
//!
//! JSON over HTTP, one connection per request; every request has a deadline in real time.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Method, Request, StatusCode, header};
use percent_encoding::utf8_percent_encode;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use servicebus_assertions::EntityAddress;
use servicebus_config::ControlToken;
use servicebus_control_api::{
    Advance, Clock, Counts, Explanation, Failure, Fault, Faults, Health, LoseSessionLock, Messages,
    NamespaceInfo, Queues, Receiver, Receivers, ScriptedFault, Session, Sessions, Settle,
    Subscriptions, Timeline, Topics,
};
use tokio::net::TcpStream;

use crate::{
    backend::{Backend, BoxFuture, TimelineQuery},
    catalog::{Catalog, EntityKind},
    error::control::{ControlError, Refusal},
    liveness::{Liveness, NamespaceEnd},
    record_history::{MessagePosition, Record, RecordHistory, SUB_QUEUE_SUFFIXES},
    running::Termination,
    stream::{self, UNRESERVED, exchange},
};

/// How long the emulator may take to answer.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// How long an advance may take: up to a million deadlines are processed.
const ADVANCE_TIMEOUT: Duration = Duration::from_secs(600);
/// How long it may take to answer a health check.
const HEALTH_WITHIN: Duration = Duration::from_secs(5);

/// A client of one namespace's control API.
#[derive(Debug)]
pub(crate) struct Control {
    address: SocketAddr,
    namespace: String,
    liveness: Liveness,
    end: NamespaceEnd,
    /// Sent with every request, for an emulator that receives requests beyond its loopback.
    token: Option<ControlToken>,
    record_history: RecordHistory,
}

impl Control {
    pub(crate) fn new(address: SocketAddr, namespace: &str, liveness: Liveness) -> Self {
        Self {
            address,
            namespace: namespace.to_owned(),
            liveness,
            end: NamespaceEnd::default(),
            token: None,
            record_history: RecordHistory::default(),
        }
    }

    /// Returns the client with the emulator's control token.
    pub(crate) fn with_token(self, token: Option<ControlToken>) -> Self {
        Self { token, ..self }
    }

    /// Returns the client of a namespace whose end is marked there.
    pub(crate) fn with_end(self, end: NamespaceEnd) -> Self {
        Self { end, ..self }
    }

    /// Creates the namespace of this client. `topology` is JSON in the official emulator's format.
    pub(crate) fn create_namespace(&self, topology: String) -> BoxFuture<'_, NamespaceInfo> {
        self.request_json(Method::PUT, self.path(""), topology.into())
    }

    /// The first namespace of the emulator.
    #[cfg(feature = "container")]
    pub(crate) async fn first_namespace(&self) -> Result<NamespaceInfo, ControlError> {
        let path = "/$emulator/v1/namespaces";
        let listed = self.request_json::<Vec<_>>(Method::GET, path.into(), Bytes::new());
        let first = listed.await?.into_iter().next();
        first.ok_or_else(|| ControlError::Unsupported {
            what: "the namespace: the emulator serves none".into(),
        })
    }

    /// Removes the namespace of this client with its entities.
    pub(crate) fn remove_namespace(&self) -> BoxFuture<'_, ()> {
        self.execute(Method::DELETE, self.path(""), Bytes::new())
    }

    /// Returns the path of a resource of the namespace, such as `/clock`.
    fn path(&self, path: &str) -> String {
        let namespace = utf8_percent_encode(&self.namespace, UNRESERVED);
        format!("/$emulator/v1/namespaces/{namespace}{path}")
    }

    fn entity_path(&self, address: &EntityAddress) -> String {
        let name = utf8_percent_encode(address.owner_path(), UNRESERVED);
        self.path(&format!("/{}s/{name}", address.kind()))
    }

    /// Sends a GET request.
    fn get<T: DeserializeOwned + 'static>(
        &self,
        path: &str,
        query: &[(&str, &str)],
    ) -> BoxFuture<'_, T> {
        let path = self.path(path) + &query_string(query);
        self.request_json(Method::GET, path, Bytes::new())
    }

    /// Sends a request whose answer has a body.
    fn request_json<T: DeserializeOwned + 'static>(
        &self,
        method: Method,
        path: String,
        body: Bytes,
    ) -> BoxFuture<'_, T> {
        Box::pin(async move {
            let answer = self.send(method, &path, body, RESPONSE_TIMEOUT).await?;
            decode(&path, &answer)
        })
    }

    /// Sends a request that is answered by a status only.
    fn execute(&self, method: Method, path: String, body: Bytes) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let done = self.send(method, &path, body, RESPONSE_TIMEOUT);
            done.await.map(drop)
        })
    }

    fn post(&self, path: &str, body: Bytes) -> BoxFuture<'_, ()> {
        self.execute(Method::POST, self.path(path), body)
    }

    /// Lists the addresses of all entities and their sub-queues.
    async fn addresses(&self) -> Result<Vec<String>, ControlError> {
        let catalog = self.catalog().await?;
        let all = catalog.names().flat_map(|(kind, name)| {
            let below = SUB_QUEUE_SUFFIXES
                .iter()
                .filter(move |below| kind != EntityKind::Topic || **below != "/$DeadLetterQueue");
            below.map(move |below| format!("{name}{below}"))
        });
        Ok(all.collect())
    }

    async fn message_positions(&self) -> Result<BTreeSet<MessagePosition>, ControlError> {
        let mut present = BTreeSet::new();
        for address in self.addresses().await? {
            let mut from = Some(0);
            while let Some(first) = from {
                let first = first.to_string();
                let query = [
                    ("entity", address.as_str()),
                    ("from", &first),
                    ("limit", "200"),
                ];
                let listed: Messages = self.get("/messages", &query).await?;
                let numbers = listed
                    .messages
                    .iter()
                    .map(|message| message.sequence_number);
                let numbers = numbers.filter_map(|number| i64::try_from(number).ok());
                present.extend(numbers.map(|number| (address.to_lowercase(), number)));
                from = listed.next;
            }
        }
        Ok(present)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<Bytes, ControlError> {
        match self.request(method, path, body, within).await? {
            (status, answer) if status.is_success() => Ok(answer),
            (status, answer) => Err(ControlError::Refused(Refusal::new(status, path, &answer))),
        }
    }

    async fn request(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        within: Duration,
    ) -> Result<(StatusCode, Bytes), ControlError> {
        self.end.check()?;
        let mut request = Request::builder().method(method).uri(path);
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, token.authorization());
        }
        let request = request
            .header(header::HOST, self.address.to_string())
            .header(header::CONNECTION, "close")
            .body(Full::new(body))
            .expect("method, path and headers are well-formed");
        match stream::within(within, self.exchange(request)).await {
            Ok(answer) => Ok(answer),
            Err(source) => Err(ControlError::Unreachable {
                address: self.address,
                source: self.liveness.explain(source).await,
            }),
        }
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> io::Result<(StatusCode, Bytes)> {
        let stream = Box::new(TcpStream::connect(self.address).await?);
        // The emulator bounds its record.
        exchange(stream, request, usize::MAX).await
    }
}

impl Backend for Control {
    fn control_url(&self) -> Option<String> {
        Some(control_url(self.address))
    }

    fn is_own(&self, _name: &str) -> bool {
        true
    }

    fn clock(&self) -> BoxFuture<'_, Clock> {
        self.get("/clock", &[])
    }

    fn advance(&self, by: Duration) -> BoxFuture<'_, ()> {
        let advance = Advance {
            seconds: Some(by.as_secs_f64()),
            to: None,
            steps: None,
        };
        Box::pin(async move {
            let path = self.path("/clock/advance");
            let advanced = self.send(Method::POST, &path, json(&advance), ADVANCE_TIMEOUT);
            advanced.await.map(drop)
        })
    }

    fn freeze(&self) -> BoxFuture<'_, ()> {
        self.post("/clock/freeze", Bytes::new())
    }

    fn resume(&self) -> BoxFuture<'_, ()> {
        self.post("/clock/resume", Bytes::new())
    }

    fn counts<'a>(&'a self, entity: &'a str) -> BoxFuture<'a, Counts> {
        self.get("/counts", &[("entity", entity)])
    }

    fn catalog(&self) -> BoxFuture<'_, Catalog> {
        Box::pin(async {
            let (queues, topics, subscriptions) = tokio::try_join!(
                self.get::<Queues>("/queues", &[]),
                self.get::<Topics>("/topics", &[]),
                self.get::<Subscriptions>("/subscriptions", &[]),
            )?;
            Ok(Catalog::listed(queues, topics, subscriptions))
        })
    }

    fn put<'a>(&'a self, address: &'a EntityAddress, properties: &'a Value) -> BoxFuture<'a, ()> {
        let path = self.entity_path(address);
        self.execute(Method::PUT, path, json(properties))
    }

    fn delete<'a>(&'a self, address: &'a EntityAddress) -> BoxFuture<'a, ()> {
        let path = self.entity_path(address);
        self.execute(Method::DELETE, path, Bytes::new())
    }

    fn wait_idle(&self, within: Duration) -> BoxFuture<'_, ()> {
        let settle = Settle {
            within: Some(within.as_secs_f64()),
            ..Settle::default()
        };
        Box::pin(async move {
            let (path, within) = (self.path("/settled"), RESPONSE_TIMEOUT + within);
            let idle = self.send(Method::POST, &path, json(&settle), within);
            idle.await.map(drop)
        })
    }

    fn reset(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.post("/reset", Bytes::new()).await?;
            self.record_history.clear();
            Ok(())
        })
    }

    fn topology(&self) -> BoxFuture<'_, Value> {
        self.get("/topology", &[])
    }

    fn timeline<'a>(&'a self, query: TimelineQuery<'a>) -> BoxFuture<'a, Timeline> {
        let number = query.sequence_number.map(|number| number.to_string());
        let mut pairs = vec![("entity", query.entity)];
        pairs.extend(number.as_deref().map(|number| ("sequence_number", number)));
        pairs.extend(query.messages.then_some(("messages", "true")));
        let request = self.get("/timeline", &pairs);
        Box::pin(async move { Ok(self.record_history.prepend_to(query, request.await?)) })
    }

    fn save_record(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let mut counted = BTreeMap::new();
            for address in self.addresses().await? {
                // No event, but all counters.
                let query = [("entity", address.as_str()), ("limit", "1")];
                let head: Timeline = self.get("/timeline", &query).await?;
                counted.insert(address.to_lowercase(), head);
            }
            let whole = self.get("/timeline", &[("messages", "true")]).await?;
            self.record_history.add(Record { whole, counted });
            Ok(())
        })
    }

    fn continue_record(&self, termination: Termination) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let now = self.clock().await?.now;
            let later: Timeline = self.get("/timeline", &[]).await?;
            // Lock expiries after the start can precede this request.
            let first = later.events.first().map_or(now, |event| event.at.min(now));
            self.record_history.add_restart(termination, first);
            if termination == Termination::Crash {
                let present = self.message_positions().await?;
                self.record_history.mark_undone(&present, &later.events);
            }
            Ok(())
        })
    }

    fn explain<'a>(&'a self, subscription: &'a str, message: Bytes) -> BoxFuture<'a, Explanation> {
        let query = query_string(&[("subscription", subscription)]);
        self.request_json(Method::POST, self.path("/explain") + &query, message)
    }

    fn receivers<'a>(&'a self, entity: &'a str) -> BoxFuture<'a, Vec<Receiver>> {
        Box::pin(async move {
            let listed: Receivers = self.get("/receivers", &[("entity", entity)]).await?;
            Ok(listed.receivers)
        })
    }

    fn sessions<'a>(&'a self, entity: &'a str) -> BoxFuture<'a, Vec<Session>> {
        Box::pin(async move {
            let listed: Sessions = self.get("/sessions", &[("entity", entity)]).await?;
            Ok(listed.sessions)
        })
    }

    fn lose_session_lock<'a>(&'a self, lock: &'a LoseSessionLock) -> BoxFuture<'a, ()> {
        self.post("/sessions/lose", json(lock))
    }

    fn add_fault<'a>(&'a self, fault: &'a Fault) -> BoxFuture<'a, ScriptedFault> {
        self.request_json(Method::POST, self.path("/faults"), json(fault))
    }

    fn faults(&self) -> BoxFuture<'_, Faults> {
        self.get("/faults", &[])
    }

    fn fault(&self, id: u64) -> BoxFuture<'_, ScriptedFault> {
        self.get(&format!("/faults/{id}"), &[])
    }

    fn remove_fault(&self, id: u64) -> BoxFuture<'_, ()> {
        let path = self.path(&format!("/faults/{id}"));
        self.execute(Method::DELETE, path, Bytes::new())
    }

    fn update_service(&self) -> BoxFuture<'_, ()> {
        self.post("/service-update", Bytes::new())
    }

    fn get_json<'a>(
        &'a self,
        path: &'a str,
        query: &'a [(&'a str, &'a str)],
    ) -> BoxFuture<'a, Value> {
        self.get(path, query)
    }

    fn failures(&self) -> BoxFuture<'_, Vec<Failure>> {
        Box::pin(async {
            let path = "/health";
            let request = self.request(Method::GET, path, Bytes::new(), HEALTH_WITHIN);
            let (_status, answer) = request.await?;
            let Health::Unhealthy { mut failures, .. } = decode(path, &answer)? else {
                return Ok(Vec::new());
            };
            failures.retain(|failure| {
                let namespace = failure.namespace.as_ref();
                namespace.is_none_or(|name| *name == self.namespace)
            });
            Ok(failures)
        })
    }

    fn ca_certificate(&self) -> BoxFuture<'_, String> {
        Box::pin(async {
            let path = "/$emulator/v1/ca.pem";
            let request = self.send(Method::GET, path, Bytes::new(), RESPONSE_TIMEOUT);
            Ok(String::from_utf8_lossy(&request.await?).into_owned())
        })
    }
}

/// Returns the URL of the control API at an HTTP endpoint.
pub(crate) fn control_url(http: SocketAddr) -> String {
    format!("http://{http}/$emulator/v1")
}

fn json(body: &impl Serialize) -> Bytes {
    let text = serde_json::to_vec(body);
    text.expect("the types of the control API have a form in JSON")
        .into()
}

fn query_string(query: &[(&str, &str)]) -> String {
    let mut pairs = form_urlencoded::Serializer::new(String::new());
    let pairs = pairs.extend_pairs(query).finish();
    match query.is_empty() {
        true => pairs,
        false => format!("?{pairs}"),
    }
}

fn decode<T: DeserializeOwned>(path: &str, answer: &Bytes) -> Result<T, ControlError> {
    serde_json::from_slice(answer).map_err(|source| ControlError::Malformed {
        path: path.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_control_token_is_sent_with_every_request() {
        use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

        let emulator = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = emulator.local_addr().unwrap();
        for (token, shown) in [(None, false), (Some("S3cret".parse().unwrap()), true)] {
            let control = Control::new(address, "bus", Liveness::default()).with_token(token);
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
            let (removed, head) = tokio::join!(control.remove_fault(1), answering);
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
            "?entity=orders%2F%24DeadLetterQueue&message_id=a+b"
        );
    }
}
