//! Azure Resource Manager, as far as clients of Service Bus speak to it: tokens for them, and the resources of namespaces.
//!
//! `az`, the management libraries and `azure-identity` come here unchanged. Paths are those of the service, where the name
//! of a namespace stands in the path and not in the host. What they ask for is read and written as JSON; entities are
//! created, changed and deleted by the same code as over the administration API.

mod authorization;
mod call;
mod entities;
mod identity;
mod locks;
mod namespaces;
mod resources;
mod route;
mod rules;

use std::sync::Arc;

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{HeaderValue, WWW_AUTHENTICATE};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use ring::error::Unspecified;
use serde_json::Value;
use servicebus_arm_template::{member, object};

use crate::access::Peer;
use crate::namespace::Namespace;
use crate::shared::Shared;
use route::Route;

pub(crate) use route::is_for;

/// Answers a request that [`is_for`] this API.
pub(crate) async fn serve(shared: &Arc<Shared>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let answered = match Route::of(&head) {
        Route::Identity => identity::managed(shared, &head),
        Route::Metadata => Ok(identity::metadata(&head)),
        Route::OpenId => Ok(identity::open_id(&head)),
        Route::Token => identity::token(shared, &head, body).await,
        Route::Resource => call::serve(shared, &head, body).await,
    };
    match answered {
        Ok(answer) => answer.into_response(),
        Err(refusal) => {
            let path = head.uri.path();
            let status = refusal.status.as_u16();
            tracing::info!(method = %head.method, path, status, refusal.message, "refused");
            refusal.into_response()
        }
    }
}

/// The namespace of a request, by its path.
pub(crate) fn namespace(shared: &Shared, path: &str) -> Option<Arc<Namespace>> {
    call::named(shared, &route::segments(path))
}

/// What a path is about, as the administration API writes it: `orders`, `events/subscriptions/billing`.
pub(crate) fn entity(path: &str) -> String {
    let parts = route::segments(path);
    let below = parts.get(call::NAMESPACE + 2..).unwrap_or_default();
    below.join("/").replace('~', "/")
}

/// A refusal with no other code than its status.
pub(crate) fn refusal(status: StatusCode, message: &str) -> Response {
    let code = status.canonical_reason().unwrap_or_default();
    let code = code.replace(' ', "");
    refused(status, &code, message)
}

/// `{"error":{"code","message"}}`.
fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    let body = object([(
        "error",
        object([("code", code.into()), ("message", message.into())]),
    )]);
    let mut response = (status, Json(body)).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    response
}

/// What is answered where nothing is refused.
struct Answer {
    status: StatusCode,
    /// None for no body.
    body: Option<Value>,
}

impl Answer {
    fn ok(body: Value) -> Self {
        Self {
            status: StatusCode::OK,
            body: Some(body),
        }
    }

    fn empty(status: StatusCode) -> Self {
        Self { status, body: None }
    }

    /// Of what is gone now, whether it was there or not.
    fn deleted(was_there: bool) -> Self {
        Self::empty(match was_there {
            true => StatusCode::OK,
            false => StatusCode::NO_CONTENT,
        })
    }
}

impl IntoResponse for Answer {
    fn into_response(self) -> Response {
        match self.body {
            Some(body) => (self.status, Json(body)).into_response(),
            None => self.status.into_response(),
        }
    }
}

/// How Azure Resource Manager says no.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
}

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
        }
    }

    /// 400 of the service itself, which numbers its reasons.
    fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    fn unauthorized(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, message)
    }

    /// 409 of the service itself.
    fn conflict(text: &str) -> Self {
        let text = format!("SubCode=40900. Conflict. {text}");
        Self::new(StatusCode::CONFLICT, "MessagingGatewayConflict", text)
    }

    /// What keys are made of.
    fn no_random_numbers(_: Unspecified) -> Self {
        let text = "The system has no random numbers, of which keys are made.";
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalServerError",
            text,
        )
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        refused(self.status, self.code, &self.message)
    }
}

/// Whether the client of a request is on this machine, or the gateway that counts as that: it needs no control token.
fn is_local(shared: &Shared, head: &Parts) -> bool {
    let peer = head.extensions.get().map(|&Peer(address)| address);
    peer.is_some_and(|peer| shared.access.trusts(peer))
}
