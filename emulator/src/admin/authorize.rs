//! Who may administer: the one place where a request's token is judged (admin-http.md §3).

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::refusal::{Refusal, quote};
use crate::auth::{Claim, Key, Policy, TokenCheck, TokenError};
use crate::namespace::Namespace;
use crate::namespaces::Arrival;
use crate::server::Shared;

const BEARER: &str = "Bearer ";

/// The namespace that a request is for: by the way that it came, else by its host name, else by the key that its token
/// names.
pub(super) fn choose(shared: &Shared, head: &Parts, host: &str) -> Option<Arc<Namespace>> {
    let unknown = Arc::<Arrival>::default();
    let arrival = head.extensions.get().unwrap_or(&unknown);
    let token = token(&head.headers);
    shared.namespaces.of_request(arrival, host, token)
}

/// Refuses whoever may not manage `resource`, the path of the request. Beside the namespace's keys those in `keys` hold:
/// of the entity that the request is about.
pub(super) fn authorize(
    namespace: &Namespace,
    headers: &HeaderMap,
    resource: &str,
    keys: &[Key],
    now: i64,
) -> Result<(), Refusal> {
    let own = namespace.config.policy();
    let Some(token) = token(headers) else {
        if own.token_check == TokenCheck::None {
            return Ok(());
        }
        let text = "SubCode=40102. Missing token: claim is empty; the header 'Authorization' must have a shared access \
                    signature or a bearer token.";
        return Err(Refusal::unauthorized(text));
    };
    let policy = Policy {
        entity_keys: keys,
        ..own
    };
    let accepted = policy.accept_token_for(token, resource, now);
    let accepted = accepted.map_err(|error| refused(&error, resource))?;
    match accepted.claims.contains(Claim::Manage) {
        true => Ok(()),
        false => Err(Refusal::unauthorized(format!(
            "SubCode=40100: Unauthorized : Unauthorized access to '{}'. 'Manage' claim(s) are required for this \
             operation; the token has: {}.",
            quote(resource),
            accepted.claims
        ))),
    }
}

fn token(headers: &HeaderMap) -> Option<&str> {
    let token = headers.get(AUTHORIZATION)?.to_str().ok()?.trim();
    let is_bearer = token
        .get(..BEARER.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(BEARER));
    match is_bearer {
        true => Some(token[BEARER.len()..].trim()),
        false => Some(token),
    }
}

fn refused(error: &TokenError, resource: &str) -> Refusal {
    let (code, name) = match error {
        TokenError::Malformed(_) => (40105, "Malformed token"),
        TokenError::UnknownKey(_) | TokenError::BadSignature(_) | TokenError::WrongPassword(_) => {
            (40103, "Invalid signature")
        }
        TokenError::Expired { .. } => (40106, "Expired token"),
        TokenError::Audience { .. } => (40104, "Invalid audience"),
        TokenError::JwtRefused => (40100, "Unauthorized"),
    };
    let resource = quote(resource);
    Refusal::unauthorized(format!(
        "SubCode={code}. {name}: unauthorized access to '{resource}': {error}."
    ))
}
