//! The REST data plane: single HTTP requests send, receive and settle messages, as the service documents it under "Service
//! Bus runtime REST".
//!
//! A request is independent of its connection: its rights are those of its own token, its waits end with it, and any client
//! that has the token of a lock can use the lock. The header `BrokerProperties` has the properties, further headers have the
//! application properties, and the body is the message body. Errors have the statuses of the documentation and the form of
//! the administration API, `<Error><Code>…</Code><Detail>…</Detail></Error>`.
//!
//! Paths are `{entity}/messages`, `{entity}/messages/head` and `{entity}/messages/{message id or sequence number}/{lock
//! token}`. Entity names may contain slashes and equal a keyword, so a path is parsed from its end.

pub(crate) mod batch;
mod body;
mod broker_properties;
mod context;
mod decoded;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod headers;
mod heads;
mod outgoing;
mod receive;
mod send;
mod value;

use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{Method, StatusCode};
use axum::response::{IntoResponse as _, Response};
pub(crate) use broker_properties::SENT;
pub(crate) use context::Rejection;
use context::RequestContext;
use headers::Content;
use percent_encoding::percent_decode_str;
use receive::Waiting;
use servicebus_broker::{ClientId, ReceiveMode};
use uuid::Uuid;

use crate::auth::Claim;
use crate::nodes::{Address, Condition, quote};
use crate::shared::Shared;

pub(crate) use context::ConnectionInfo;
pub(crate) use headers::BROKER_PROPERTIES;
pub(crate) use heads::{HeaderCaseStream, tap};

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct MessagesApi {
    shared: Arc<Shared>,
    waiting: Arc<Waiting>,
    /// The client of all requests in the record: they are too many to have names of their own.
    client: OnceLock<ClientId>,
}

impl MessagesApi {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            waiting: Arc::new(Waiting::new(shared.options.waiting_requests)),
            shared,
            client: OnceLock::new(),
        }
    }

    /// Answers a request for `route`.
    pub(crate) async fn serve(&self, route: Route, request: Request) -> Response {
        let (parts, body) = request.into_parts();
        let mut content = Content::new(body);
        let Some(mut context) = RequestContext::begin(Arc::clone(&self.shared), &parts) else {
            return StatusCode::INTERNAL_SERVER_ERROR.into_response();
        };
        context.caller.client = *self.client.get_or_init(|| ClientId(context.id.0));
        let answer = self
            .answer(&mut context, &route, &parts, &mut content)
            .await;
        match answer {
            Ok(response) => response,
            Err(rejection) => context.refuse(&rejection).into_response(),
        }
    }

    async fn answer(
        &self,
        context: &mut RequestContext,
        route: &Route,
        parts: &Parts,
        content: &mut Content,
    ) -> Result<Response, Rejection> {
        let operation = route.operation(&parts.method)?;
        let entity_target = context.enter(route, parts, operation.claim())?;
        let waiting = &self.waiting;
        if matches!(operation, Operation::Receive(_)) {
            // The end of the connection is behind the body.
            content.skip().await?;
        }
        match operation {
            Operation::Send => context.send(&entity_target, parts, content).await,
            Operation::Receive(mode) => {
                let received = context.receive(&entity_target, parts, waiting, mode);
                received.await
            }
            Operation::Complete(lock) => context.complete(&entity_target, lock),
            Operation::Unlock(lock) => context.unlock(&entity_target, lock),
            Operation::Renew(lock) => context.renew(&entity_target, lock),
        }
    }
}

const MESSAGES: &str = "messages";
const HEAD: &str = "head";

/// A path of the data plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    /// The entity or its dead-letter queue.
    pub(crate) address: Address,
    target: Target,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Target {
    Messages,
    Head,
    Lock(LockedMessage),
}

/// A locked message as a path names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LockedMessage {
    /// Its message id or its sequence number.
    pub(crate) id: String,
    pub(crate) token: String,
}

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation<'a> {
    Send,
    Receive(ReceiveMode),
    Complete(&'a LockedMessage),
    Unlock(&'a LockedMessage),
    Renew(&'a LockedMessage),
}

impl Route {
    /// Parses a path; `None` when it is not of the data plane.
    pub(crate) fn of(path: &str) -> Option<Self> {
        let segments: Vec<&str> = path.trim_matches('/').split('/').collect();
        let (entity, target) = match segments.as_slice() {
            [entity @ .., last] if is(last, MESSAGES) => (entity, Target::Messages),
            [entity @ .., messages, last] if is(messages, MESSAGES) && is(last, HEAD) => {
                (entity, Target::Head)
            }
            [entity @ .., messages, id, token] if is(messages, MESSAGES) => {
                let (id, token) = (decode(id), decode(token));
                (entity, Target::Lock(LockedMessage { id, token }))
            }
            _ => return None,
        };
        let address = Address::parse(&entity.join("/"));
        (!address.entity.is_empty()).then_some(Self { address, target })
    }

    /// Returns whether `method` is an operation on messages here; the token of a lock must be one.
    pub(crate) fn has(&self, method: &Method) -> bool {
        let is_token = match &self.target {
            Target::Lock(lock) => Uuid::try_parse(&lock.token).is_ok(),
            Target::Messages | Target::Head => true,
        };
        is_token && self.operation(method).is_ok()
    }

    /// Returns the address of the request's entity.
    pub(crate) fn address_path(&self) -> String {
        self.address.path()
    }

    /// Returns the operation of `method` on this route.
    pub(crate) fn operation(&self, method: &Method) -> Result<Operation<'_>, Rejection> {
        let (allowed, operation) = match &self.target {
            Target::Messages => ("POST", (method == Method::POST).then_some(Operation::Send)),
            Target::Head => (
                "POST, DELETE",
                match *method {
                    Method::POST => Some(Operation::Receive(ReceiveMode::PeekLock)),
                    Method::DELETE => Some(Operation::Receive(ReceiveMode::ReceiveAndDelete)),
                    _ => None,
                },
            ),
            Target::Lock(lock) => (
                "DELETE, PUT, POST",
                match *method {
                    Method::DELETE => Some(Operation::Complete(lock)),
                    Method::PUT => Some(Operation::Unlock(lock)),
                    Method::POST => Some(Operation::Renew(lock)),
                    _ => None,
                },
            ),
        };
        operation.ok_or_else(|| {
            let text = format!(
                "The specified HTTP verb ({}) is not valid here; allowed: {allowed}.",
                quote(method.as_str())
            );
            Rejection::new(StatusCode::METHOD_NOT_ALLOWED, Condition::NotAllowed, text)
                .with_allow(allowed)
        })
    }
}

impl Operation<'_> {
    /// Returns the claim that the operation requires.
    pub(crate) fn claim(self) -> Claim {
        match self {
            Operation::Send => Claim::Send,
            Operation::Receive(_)
            | Operation::Complete(_)
            | Operation::Unlock(_)
            | Operation::Renew(_) => Claim::Listen,
        }
    }
}

fn is(segment: &str, keyword: &str) -> bool {
    decode(segment).eq_ignore_ascii_case(keyword)
}

fn decode(segment: &str) -> String {
    percent_decode_str(segment).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(address: &str, target: Target) -> Option<Route> {
        let address = Address::parse(address);
        Some(Route { address, target })
    }

    fn lock(id: &str, token: &str) -> Target {
        let (id, token) = (id.to_owned(), token.to_owned());
        Target::Lock(LockedMessage { id, token })
    }

    #[test]
    fn every_spelling_of_a_rest_path_is_parsed() {
        for (path, expected) in [
            ("/q/messages", route("q", Target::Messages)),
            ("/q/Messages/", route("q", Target::Messages)),
            ("/a/b/messages/head", route("a/b", Target::Head)),
            ("/a%2Fb/messages/HEAD", route("a/b", Target::Head)),
            (
                "/t/subscriptions/s/messages/head",
                route("t/subscriptions/s", Target::Head),
            ),
            (
                "/q/%24DeadLetterQueue/messages/head",
                route("q/$DeadLetterQueue", Target::Head),
            ),
            (
                "/q/$Transfer/$deadletterqueue/messages/7/x",
                route("q/$Transfer/$deadletterqueue", lock("7", "x")),
            ),
            ("/q/messages/a%2Fb/x", route("q", lock("a/b", "x"))),
            ("/messages/messages", route("messages", Target::Messages)),
            ("/messages/messages/head", route("messages", Target::Head)),
            ("/messages", None),
            ("/messages/head", None),
            ("/q", None),
            ("/", None),
            ("/q/messages/1/x/y", None),
            ("/q/message/head", None),
        ] {
            assert_eq!(Route::of(path), expected, "{path}");
        }
    }

    #[test]
    fn each_rest_target_has_its_methods() {
        let verbs = |path: &str| {
            let route = Route::of(path).expect("a route");
            ["GET", "POST", "PUT", "DELETE", "PATCH", "FOO"].map(|method| {
                let method = Method::from_bytes(method.as_bytes()).expect("a method");
                route.operation(&method).is_ok()
            })
        };
        assert_eq!(
            verbs("/q/messages"),
            [false, true, false, false, false, false]
        );
        assert_eq!(
            verbs("/q/messages/head"),
            [false, true, false, true, false, false]
        );
        assert_eq!(
            verbs("/q/messages/1/x"),
            [false, true, true, true, false, false]
        );
    }

    proptest::proptest! {
        #[test]
        fn random_rest_paths_do_not_panic(path in "\\PC*") {
            let _ = Route::of(&path);
        }
    }
}
