//! Azure Resource Manager, as far as clients of Service Bus use it: tokens, and the resources of namespaces.
//!
//! `az`, the management libraries and `azure-identity` work unchanged. Paths are those of the service: they name the
//! namespace, not the host. Resources are JSON; entities are created, changed and deleted by the same code as in the
//! administration API.

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
use serde_json::{Value, json};
use servicebus_arm_template::member;

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

/// Returns the namespace that the path of a request names.
pub(crate) fn namespace(shared: &Shared, path: &str) -> Option<Arc<Namespace>> {
    call::named(shared, &route::segments(path))
}

/// Returns the entity of a path in the form of the administration API: `orders`, `events/subscriptions/billing`.
pub(crate) fn entity(path: &str) -> String {
    let parts = route::segments(path);
    let below = parts.get(call::NAMESPACE + 2..).unwrap_or_default();
    below.join("/").replace('~', "/")
}

/// Returns an error whose code is that of its status.
pub(crate) fn refusal(status: StatusCode, message: &str) -> Response {
    let code = status.canonical_reason().unwrap_or_default();
    let code = code.replace(' ', "");
    refused(status, &code, message)
}

/// Returns an error as `{"error":{"code","message"}}`.
fn refused(status: StatusCode, code: &str, message: &str) -> Response {
    let body = json!({ "error": { "code": code, "message": message } });
    let mut response = (status, Json(body)).into_response();
    if status == StatusCode::UNAUTHORIZED {
        let scheme = HeaderValue::from_static("Bearer");
        response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
    }
    response
}

/// A successful response.
struct Answer {
    status: StatusCode,
    /// `None` for no body.
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

    /// Returns the response to a deletion, by whether the resource existed.
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

/// An error of Azure Resource Manager.
#[derive(Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    code: &'static str,
    message: String,
}

/// Maximum number of bytes of a message. A longer one, which repeats a value of the request, loses its middle.
const MAX_MESSAGE: usize = 2048;

impl Refusal {
    fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: shorten(message.into()),
        }
    }

    /// Returns a 400 of Service Bus itself, which numbers its reasons.
    fn bad_request(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message)
    }

    fn unauthorized(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, code, message)
    }

    /// Returns a 409 of Service Bus itself.
    fn conflict(text: &str) -> Self {
        let text = format!("SubCode=40900. Conflict. {text}");
        Self::new(StatusCode::CONFLICT, "MessagingGatewayConflict", text)
    }

    /// Returns the error for a failure of the random numbers that keys consist of.
    fn no_random_numbers(_: Unspecified) -> Self {
        let text = "The system has no random numbers, of which keys are made.";
        Self::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "InternalServerError",
            text,
        )
    }
}

fn shorten(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let start = message.floor_char_boundary(MAX_MESSAGE / 2);
        let end = message.ceil_char_boundary(message.len() - MAX_MESSAGE / 2);
        message.replace_range(start..end, "…");
    }
    message
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        refused(self.status, self.code, &self.message)
    }
}

/// Returns whether the client is on this machine, or is the gateway that counts as this machine: it needs no control token.
fn is_local(shared: &Shared, head: &Parts) -> bool {
    let peer = head.extensions.get().map(|&Peer(address)| address);
    peer.is_some_and(|peer| shared.access.trusts(peer))
}
