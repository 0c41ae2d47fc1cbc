//! The REST data plane: messages are sent, received and settled by single HTTP requests, as the service documents it
//! under "Service Bus runtime REST".
//!
//! A request is no connection: its rights are those of its own token, what it waits for ends with it, and the locks
//! that it takes belong to any client that has their tokens. Properties travel in the header `BrokerProperties`,
//! application properties in headers of their own, and the body is the body. Refusals have the statuses of the
//! documentation and the form of the administration API, `<Error><Code>…</Code><Detail>…</Detail></Error>`.

pub(crate) mod batch;
mod body;
mod broker_properties;
mod context;
mod dates;
mod decoded;
#[cfg(feature = "fuzz")]
pub(crate) mod fuzz;
mod headers;
mod heads;
mod outgoing;
mod receive;
mod rejection;
mod route;
mod send;
mod value;

use std::sync::{Arc, OnceLock};

use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse as _, Response};
use servicebus_broker::ClientId;

use crate::shared::Shared;
pub(crate) use context::Carrier;
use context::RequestContext;
use headers::Content;
pub(crate) use heads::{Tapped, tap};
use receive::Waiting;
use rejection::Rejection;
pub(crate) use route::Route;
use route::Verb;

/// What all requests share.
#[derive(Debug)]
pub(crate) struct MessagesApi {
    shared: Arc<Shared>,
    waiting: Arc<Waiting>,
    /// As which all requests stand in the record: they are too many to have names of their own.
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
            Err(rejection) => {
                content.discard().await;
                context.refuse(&rejection).into_response()
            }
        }
    }

    async fn answer(
        &self,
        context: &mut RequestContext,
        route: &Route,
        parts: &Parts,
        content: &mut Content,
    ) -> Result<Response, Rejection> {
        let verb = route.verb(&parts.method)?;
        let place = context.enter(route, parts, verb.claim())?;
        let waiting = &self.waiting;
        match verb {
            Verb::Send => context.send(&place, parts, content).await,
            Verb::PeekLock => context.peek_lock(&place, parts, waiting).await,
            Verb::ReceiveAndDelete => context.receive_and_delete(&place, parts, waiting).await,
            Verb::Complete(lock) => context.complete(&place, lock),
            Verb::Unlock(lock) => context.unlock(&place, lock),
            Verb::Renew(lock) => context.renew(&place, lock),
        }
    }
}
