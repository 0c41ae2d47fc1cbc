//! Which requests reach the control API: those with a host name of the emulator, not from a foreign web page, and beyond the
//! loopback with the token. Paths of SDKs check tokens instead, and health is open.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    AUTHORIZATION, CONTENT_SECURITY_POLICY, HOST, ORIGIN, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};

use super::error::ApiError;
use crate::access::{Access, Origin, Peer, authority};
use crate::arm;
use crate::rest::BROKER_PROPERTIES;
use crate::shared::Shared;

const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Longest part of a client's text in an error.
const MAX_QUOTE: usize = 300;

/// Answers requests that must not be served, and prevents browsers from guessing content types and from running a message's
/// scripts in the emulator's origin, whose pages may use the control API.
pub(crate) async fn guard(
    State(shared): State<Arc<Shared>>,
    request: Request,
    next: Next,
) -> Response {
    shared.count_activity();
    let sent = request.headers();
    let is_from_page = sent.contains_key(ORIGIN) || sent.contains_key(SEC_FETCH_SITE);
    let mut response = match check_request(&shared, &request) {
        Ok(()) => next.run(request).await,
        Err(refusal) => {
            let is_unauthorized = refusal.status() == StatusCode::UNAUTHORIZED;
            let mut response = refusal.into_response();
            if is_unauthorized {
                let scheme = HeaderValue::from_static("Bearer");
                response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            }
            response
        }
    };
    shared.count_activity();
    let headers = response.headers_mut();
    let is_message = headers.contains_key(BROKER_PROPERTIES);
    // Clients of the REST API show further headers of a message as its application properties.
    if is_from_page || !is_message {
        let nosniff = HeaderValue::from_static("nosniff");
        headers.insert(X_CONTENT_TYPE_OPTIONS, nosniff);
    }
    if is_from_page && is_message {
        let sandbox = HeaderValue::from_static("sandbox");
        headers.insert(CONTENT_SECURITY_POLICY, sandbox);
    }
    response
}

fn check_request(shared: &Shared, request: &Request) -> Result<(), ApiError> {
    let headers = request.headers();
    let is_control = match request.uri().path() {
        "/health" | "/$emulator/v1/health" | "/$emulator/v1/ca.pem" => return Ok(()),
        // With a token these are paths of SDKs: an entity may have any name.
        "/" | "/metrics" if headers.contains_key(AUTHORIZATION) => return Ok(()),
        "/" | "/metrics" => false,
        "/$emulator" => true,
        path if path.starts_with("/$emulator/") => true,
        // It checks tokens itself, or issues them, which no foreign page may get.
        _ if arm::is_for(request.uri()) => false,
        _ => return Ok(()),
    };
    // The target of a request in absolute form has the host (RFC 9112 §3.2.2).
    let target = request
        .uri()
        .authority()
        .map(|authority| authority.as_str());
    let host = target.unwrap_or_else(|| text(headers, &HOST).unwrap_or_default());
    check_host(shared, host)?;
    check_site(&shared.access, request.method(), headers, host)?;
    if is_control {
        let peer = request.extensions().get().map(|&Peer(address)| address);
        check_token(&shared.access, peer, headers)?;
    }
    Ok(())
}

/// Checks the host: a page whose name resolves to the emulator's address sends that name.
fn check_host(shared: &Shared, host: &str) -> Result<(), ApiError> {
    let name = authority(host).map(|(name, _)| name);
    let is_known = |name: &str| shared.access.knows(name) || shared.namespaces.has_host(name);
    if name.as_deref().is_some_and(is_known) {
        return Ok(());
    }
    let advice = match name {
        Some(name) => format!("; start it with --allow-host {name} if it is"),
        None => String::new(),
    };
    let host = quote(host);
    let message = format!("the Host {host:?} is not a name of this emulator{advice}");
    let status = StatusCode::MISDIRECTED_REQUEST;
    Err(ApiError::new(status, "unknown-host", message))
}

/// Applies the rule of Go's `CrossOriginProtection` and tower-http's `csrf`: browsers send the origin of a request in
/// `Sec-Fetch-Site` or, older ones, in `Origin`; a request without both is from no page.
fn check_site(
    access: &Access,
    method: &Method,
    headers: &HeaderMap,
    host: &str,
) -> Result<(), ApiError> {
    if [Method::GET, Method::HEAD, Method::OPTIONS].contains(method) {
        return Ok(());
    }
    let sent = headers.contains_key(ORIGIN);
    let origin = text(headers, &ORIGIN).and_then(|origin| origin.parse::<Origin>().ok());
    let is_same = match headers.get(SEC_FETCH_SITE).map(HeaderValue::as_bytes) {
        Some(b"same-origin" | b"none") => true,
        Some(site) if !site.is_empty() => false,
        _ => !sent || origin.as_ref().is_some_and(|origin| origin.is_of(host)),
    };
    if is_same || origin.is_some_and(|origin| access.allows(&origin)) {
        return Ok(());
    }
    let message = foreign_origin(headers, "may not use the control API");
    Err(ApiError::new(StatusCode::FORBIDDEN, "cross-site", message))
}

/// Returns why a WebSocket is not opened for a page; `None` if it is. Clients other than browsers may send the requested
/// host as their origin.
pub(crate) fn refused_websocket(access: &Access, headers: &HeaderMap) -> Option<String> {
    if !headers.contains_key(ORIGIN) {
        return None;
    }
    let origin = text(headers, &ORIGIN).and_then(|origin| origin.parse::<Origin>().ok());
    let host = text(headers, &HOST).unwrap_or_default();
    let passes =
        |origin: Origin| origin.is_of(host) || origin.is_loopback() || access.allows(&origin);
    let refused = !origin.is_some_and(passes);
    refused.then(|| foreign_origin(headers, "may not open a WebSocket here"))
}

fn check_token(access: &Access, peer: Option<IpAddr>, headers: &HeaderMap) -> Result<(), ApiError> {
    if peer.is_some_and(|peer| access.trusts(peer)) {
        return Ok(());
    }
    let Some(token) = &access.token else {
        let message = "the control API is served to this machine alone; to serve it to others, start the emulator with \
                       --control-token or SERVICEBUS_EMULATOR_CONTROL_TOKEN, and send `Authorization: Bearer <token>`";
        return Err(ApiError::new(
            StatusCode::FORBIDDEN,
            "no-control-token",
            message,
        ));
    };
    if text(headers, &AUTHORIZATION).is_some_and(|shown| token.is_shown_by(shown)) {
        return Ok(());
    }
    let message = "clients of the control API beyond loopback must send its token: `Authorization: Bearer <token>`, \
                   as given by --control-token";
    let status = StatusCode::UNAUTHORIZED;
    Err(ApiError::new(status, "unauthorized", message))
}

fn foreign_origin(headers: &HeaderMap, what: &str) -> String {
    let origin = text(headers, &ORIGIN);
    let allowing = origin.filter(|origin| origin.parse::<Origin>().is_ok());
    let origin = quote(origin.unwrap_or("(none)"));
    let advice = match allowing {
        Some(origin) => format!("; start the emulator with --allow-origin {origin} to allow it"),
        None => String::new(),
    };
    format!("a web page of the origin {origin:?} {what}{advice}")
}

/// Returns the value of a header that occurs once.
fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let first = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(first)
}

fn quote(text: &str) -> String {
    text.chars().take(MAX_QUOTE).collect()
}

#[cfg(test)]
mod tests;
