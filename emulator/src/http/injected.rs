//! Scripted faults of HTTP requests to the APIs for entities, messages and resources; none applies to the control API.

use std::sync::Arc;

use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use percent_encoding::percent_decode_str;
use servicebus_broker::ClientId;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::arm;
use crate::auth::sas::claimed_key_name;
use crate::faults::{
    Affected, Effect, ErrorText, MatchContext, MatchedFaults, Operation, Wait, Waiter, When,
};
use crate::namespace::Namespace;
use crate::rest::Route;
use crate::service_http::{XML, error_body, token};

/// Marks a response that must not be sent: the connection is aborted instead.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Abort;

/// The API whose paths and errors a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Api {
    /// Service Bus, for entities and messages.
    Service,
    /// Azure Resource Manager.
    Resources,
}

/// Answers a request to this namespace by `serve`, unless a fault prevents it.
pub(crate) async fn serve(
    namespace: Option<Arc<Namespace>>,
    api: Api,
    head: &Parts,
    serve: impl Future<Output = Response>,
) -> Response {
    let Some(namespace) = namespace.filter(|namespace| namespace.faults.any()) else {
        return serve.await;
    };
    let party = token(head).and_then(claimed_key_name);
    let MatchedFaults { first, then } = namespace.match_faults(&MatchContext {
        party: party.map(Arc::from),
        operations: vec![Operation::Http],
        name: Some(head.method.as_str()),
        entities: vec![entity(api, &head.uri)],
        ..MatchContext::default()
    });
    if let Some(fault) = &first {
        namespace.record_fault(ClientId::BROKER, fault, &Affected::default());
        if let Effect::Delay(wait) = fault.effect {
            delay(&namespace, wait).await;
        }
    }
    let response = match then.as_ref().map(|fault| &fault.effect) {
        Some(Effect::Answer { status, error }) => answer(api, *status, error),
        Some(Effect::Drop { when: When::Before }) => hang_up(),
        Some(Effect::LoseReply | Effect::Drop { when: When::After }) => {
            serve.await;
            hang_up()
        }
        _ => serve.await,
    };
    if let Some(fault) = &then {
        namespace.record_fault(ClientId::BROKER, fault, &Affected::default());
    }
    response
}

/// Returns the entity of a request, as written.
fn entity(api: Api, uri: &Uri) -> String {
    let path = uri.path();
    if api == Api::Resources {
        return arm::entity(path);
    }
    match Route::of(path) {
        Some(route) => route.address_path(),
        None => {
            let path = percent_decode_str(path.trim_matches('/'));
            path.decode_utf8_lossy().into_owned()
        }
    }
}

async fn delay(namespace: &Namespace, wait: Wait) {
    let _held = namespace.faults.held.add_request();
    match wait {
        Wait::Real(length) => sleep(length).await,
        Wait::Virtual(length) => {
            let (wake, woken) = oneshot::channel();
            let until = namespace.clock.now() + length;
            namespace.faults.waits.add(until, Waiter::Task(wake));
            namespace.alarm.arm(until);
            // The namespace may end before that, and drops the other end.
            let _ = woken.await;
        }
    }
}

fn answer(api: Api, status: u16, error: &ErrorText) -> Response {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    // These have no body (RFC 9110 §15); a client would take one for the next response.
    if let StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT | StatusCode::NOT_MODIFIED = status {
        return status.into_response();
    }
    if api == Api::Resources {
        return arm::refusal(status, &error.description);
    }
    let body = error_body(status.as_str(), &error.description);
    (status, [(CONTENT_TYPE, XML)], body).into_response()
}

fn hang_up() -> Response {
    let mut response = StatusCode::INTERNAL_SERVER_ERROR.into_response();
    response.extensions_mut().insert(Abort);
    response
}
