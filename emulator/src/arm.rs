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
pub(crate) mod properties;
mod refusal;
mod resources;
mod route;
pub(crate) mod rule;
mod rules;

use std::sync::Arc;

use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

use crate::access::Peer;
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
}

impl Answer {
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

/// Whether the client of a request is on this machine, or the gateway that counts as that: it needs no control token.
fn is_local(shared: &Shared, head: &Parts) -> bool {
    let peer = head.extensions.get().map(|&Peer(address)| address);
    peer.is_some_and(|peer| shared.access.trusts(peer))
}
