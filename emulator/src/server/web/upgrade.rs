//! The request that upgrades HTTP to AMQP over WebSocket (AMQP WebSocket binding 1.0 §2.1).

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{HOST, SEC_WEBSOCKET_PROTOCOL, UPGRADE};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode};
use hyper::Request;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use parking_lot::Mutex;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

use crate::access::Access;
use crate::http::refused_websocket;

/// The path that every SDK uses, some with a trailing slash.
const PATH: &str = "/$servicebus/websocket";
/// Names of AMQP 1.0 as a subprotocol (wire.md §10a.15); the first offered one is used.
const PROTOCOLS: [&str; 2] = ["AMQPWSB10", "amqp"];

/// Where an accepted upgrade leaves its stream.
#[derive(Clone, Default)]
pub(crate) struct Slot(Arc<Mutex<Option<Upgrade>>>);

/// A stream that will speak WebSocket.
pub(crate) struct Upgrade {
    pub(crate) stream: OnUpgrade,
    /// The host name that the client asked for.
    pub(crate) host: Option<String>,
}

impl Slot {
    pub(crate) fn take(&self) -> Option<Upgrade> {
        self.0.lock().take()
    }

    fn put(&self, upgrade: Upgrade) {
        *self.0.lock() = Some(upgrade);
    }
}

/// Returns whether the request is for the WebSocket path.
pub(crate) fn is_websocket_upgrade(request: &Request<Incoming>) -> bool {
    let path = request.uri().path();
    let path = path.strip_suffix('/').unwrap_or(path);
    // The dollar sign may be escaped.
    path == PATH || path.replacen("%24", "$", 1) == PATH
}

/// Returns whether the request asks for a WebSocket at another path (observed 51).
pub(crate) fn is_at_other_path(request: &Request<Incoming>) -> bool {
    let upgrade = request.headers().get(UPGRADE);
    upgrade.is_some_and(|upgrade| upgrade.as_bytes().eq_ignore_ascii_case(b"websocket"))
        && !is_websocket_upgrade(request)
}

/// Returns the error that names the WebSocket path.
pub(crate) fn wrong_path(path: &str) -> Response<Body> {
    let text = format!("There is no WebSocket at {path}; AMQP over WebSocket is spoken at {PATH}.");
    refusal(StatusCode::NOT_FOUND, text)
}

/// Accepts an upgrade or returns why not.
pub(crate) fn answer(
    request: &mut Request<Incoming>,
    slot: &Slot,
    access: &Access,
) -> Response<Body> {
    if !request.headers().contains_key(UPGRADE) {
        let text = "This path speaks AMQP over WebSocket only.";
        let mut refusal = refusal(StatusCode::UPGRADE_REQUIRED, text.to_owned());
        let upgrade = HeaderValue::from_static("websocket");
        refusal.headers_mut().insert(UPGRADE, upgrade);
        return refusal;
    }
    if let Some(reason) = refused_websocket(access, request.headers()) {
        return refusal(StatusCode::FORBIDDEN, format!("{reason}."));
    }
    let protocol = match protocol(request.headers()) {
        Ok(protocol) => protocol,
        Err(offered) => {
            let text = format!(
                "None of the subprotocols {offered:?} is known here; allowed: {}.",
                PROTOCOLS.join(", ")
            );
            return refusal(StatusCode::BAD_REQUEST, text);
        }
    };
    let mut granted = match create_response_with_body(request, Body::empty) {
        Ok(granted) => granted,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, format!("{error}.")),
    };
    if let Some(protocol) = protocol {
        let protocol = HeaderValue::from_static(protocol);
        granted
            .headers_mut()
            .insert(SEC_WEBSOCKET_PROTOCOL, protocol);
    }
    let host = request.headers().get(HOST);
    let host = host.and_then(|host| host.to_str().ok()).map(str::to_owned);
    slot.put(Upgrade {
        stream: hyper::upgrade::on(request),
        host,
    });
    granted
}

/// Returns the first known subprotocol that the client offers; `None` if it offers none at all. An error has what was
/// offered.
fn protocol(headers: &HeaderMap) -> Result<Option<&'static str>, String> {
    let offered: Vec<&str> = headers
        .get_all(SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .map(str::trim)
        .collect();
    let known = |offered: &&str| PROTOCOLS.into_iter().find(|known| known == offered);
    match offered.iter().find_map(known) {
        None if !offered.is_empty() => Err(offered.join(", ")),
        found => Ok(found),
    }
}

fn refusal(status: StatusCode, text: String) -> Response<Body> {
    let mut refusal = Response::new(Body::from(text));
    *refusal.status_mut() = status;
    refusal
}
