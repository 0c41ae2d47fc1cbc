//! Who may: the token of a request, and the one place where it is judged.
//!
//! A request shows its token itself, for its own address. Tokens are signed for the namespace, the entity, or the very URL
//! of the request with or without its query; each covers it (decision D14).

use std::sync::Arc;

use axum::http::header::{AUTHORIZATION, HOST};
use axum::http::request::Parts;

use super::rejection::Rejection;
use super::route::Route;
use crate::auth::{Claims, Policy, TokenCheck, TokenError, audience_path};
use crate::namespace::Namespace;
use crate::namespaces::ConnectionOrigin;
use crate::nodes::{Condition, ServiceError};
use crate::shared::Shared;

const BEARER: &str = "Bearer ";

/// What the client calls the namespace, without a port.
pub(super) fn host(parts: &Parts) -> String {
    let named = parts.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = authority(parts).or(named).unwrap_or("localhost");
    let without_port = host
        .rsplit_once(':')
        .filter(|(_, port)| port.bytes().all(|byte| byte.is_ascii_digit()));
    without_port.map_or(host, |(host, _)| host).to_owned()
}

/// Host and port as the client wrote them.
pub(super) fn authority(parts: &Parts) -> Option<&str> {
    let named = || parts.headers.get(HOST)?.to_str().ok();
    parts.uri.authority().map(|own| own.as_str()).or_else(named)
}

/// The namespace of a request: by the way that it came, else by its host name, else by the key that its token names.
pub(super) fn namespace(
    shared: &Shared,
    host: &str,
    parts: &Parts,
) -> Result<Arc<Namespace>, Rejection> {
    let unknown = Arc::<ConnectionOrigin>::default();
    let arrival = parts.extensions.get().unwrap_or(&unknown);
    let found = shared.namespaces.of_request(arrival, host, token(parts));
    found.ok_or_else(|| {
        let text =
            "The namespace cannot be told from host name or key name; it could not be found.";
        ServiceError::new(Condition::Unauthorized, text).into()
    })
}

/// The rights that a request's token gives at its address.
pub(super) fn claims(
    namespace: &Namespace,
    route: &Route,
    parts: &Parts,
    unix_seconds: i64,
) -> Result<Claims, Rejection> {
    let entity_keys = namespace.entity_keys(&route.address.path());
    let policy = Policy {
        entity_keys: &entity_keys,
        ..namespace.config.policy()
    };
    if policy.token_check == TokenCheck::None {
        return Ok(Claims::ALL);
    }
    let Some(token) = token(parts) else {
        let text = "The authorization header was not found, or is no text";
        return Err(Rejection::unauthorized(40102, "MissingToken", text));
    };
    // A token may have been signed for the address, or for the request's own URL.
    let judge = |path: &str| policy.accept_token_for(token, path, unix_seconds);
    let accepted = match judge(&route.address.path()) {
        Err(other @ TokenError::Audience { .. }) => {
            let url = audience_path(&format!("http://host{}", parts.uri.path()));
            judge(&url).map_err(|_| other)
        }
        judged => judged,
    };
    match accepted {
        Ok(acceptance) => Ok(acceptance.claims),
        Err(error) => Err(rejection(&error)),
    }
}

/// The token without the name of its kind; a shared access signature has that in it.
fn token(parts: &Parts) -> Option<&str> {
    let written = parts.headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let prefix = written.get(..BEARER.len());
    match prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(BEARER)) {
        true => Some(written[BEARER.len()..].trim()),
        false => Some(written),
    }
}

fn rejection(error: &TokenError) -> Rejection {
    let (sub_code, name) = match error {
        TokenError::Malformed(_) => (40105, "MalformedToken"),
        TokenError::UnknownKey(_) | TokenError::BadSignature(_) | TokenError::WrongPassword(_) => {
            (40103, "InvalidSignature")
        }
        TokenError::Expired { .. } => (40106, "ExpiredToken"),
        TokenError::Audience { .. } => (40104, "InvalidAudience"),
        TokenError::JwtRefused => (40100, "Unauthorized"),
    };
    Rejection::unauthorized(sub_code, name, &error.to_string())
}
