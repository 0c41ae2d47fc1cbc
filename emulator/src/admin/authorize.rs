//! Who may administer: the one place where a request's token is judged (admin-http.md §3).

use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;

use super::call::{Answer, Call};
use super::refusal::{ServiceError, quote};
use super::route::Route;
use crate::auth::{Claims, Key, Policy, TokenCheck, TokenError};
use crate::namespace::Namespace;
use crate::namespaces::ConnectionOrigin;
use crate::shared::Shared;

const BEARER: &str = "Bearer ";

/// The namespace that a request is for: by the way that it came, else by its host name, else by the key that its token
/// names.
pub(super) fn choose(shared: &Shared, head: &Parts, host: &str) -> Option<Arc<Namespace>> {
    let unknown = Arc::<ConnectionOrigin>::default();
    let arrival = head.extensions.get().unwrap_or(&unknown);
    let token = token(&head.headers);
    shared.namespaces.of_request(arrival, host, token)
}

/// The claims of a request's token at `resource`, its path. Beside the namespace's keys those in `keys` hold: of the
/// entity that the request is about.
pub(super) fn claims(
    namespace: &Namespace,
    headers: &HeaderMap,
    resource: &str,
    keys: &[Key],
    now: i64,
) -> Result<Claims, ServiceError> {
    let own = namespace.config.policy();
    let Some(token) = token(headers) else {
        if own.token_check == TokenCheck::None {
            return Ok(Claims::ALL);
        }
        let text = "SubCode=40102. Missing token: claim is empty; the header 'Authorization' must have a shared access \
                    signature or a bearer token.";
        return Err(ServiceError::unauthorized(text));
    };
    let policy = Policy {
        entity_keys: keys,
        ..own
    };
    let accepted = policy.accept_token_for(token, resource, now);
    let accepted = accepted.map_err(|error| refused(&error, resource))?;
    Ok(accepted.claims)
}

impl Call<'_> {
    /// What a request with these claims, Manage not among them, is answered: that a queue or topic is missing, if it is
    /// and was to be read (observed 32), else what is required, in the words that suites of SDKs look for (observed 33;
    /// of rules by analogy).
    pub(super) fn without_manage(
        &self,
        method: &str,
        route: &Route,
        claims: Claims,
    ) -> Result<Answer, ServiceError> {
        if method == "GET"
            && let Route::Entity(path) = route
            && self.namespace.entity(&self.path(path)?).is_none()
        {
            return Ok(self.no_such_endpoint());
        }
        let required = match back_end_operation(method, route) {
            Some(operation) => format!(
                "SubCode=40100: Unauthorized : Unauthorized access for '{operation}' operation on endpoint 'sb://{}'.",
                quote(self.host)
            ),
            None => match method {
                "GET" => "Manage,EntityRead claims required for this operation.".to_owned(),
                "DELETE" => action("EntityDelete"),
                _ => action("EntityWrite"),
            },
        };
        Err(ServiceError::unauthorized(format!(
            "{required} The token has: {claims}."
        )))
    }
}

fn action(name: &str) -> String {
    format!("Authorization failed for specified action: Manage,{name}.")
}

/// What the part of the service that looks after subscriptions and rules calls a request.
fn back_end_operation(method: &str, route: &Route) -> Option<String> {
    let (one, all) = match route {
        Route::Subscription { .. } => ("Subscription", false),
        Route::Subscriptions { .. } => ("Subscriptions", true),
        Route::Rule { .. } => ("Rule", false),
        Route::Rules { .. } => ("Rules", true),
        Route::Root
        | Route::NamespaceInfo
        | Route::Queues
        | Route::Topics
        | Route::Entity(_)
        | Route::SubQueue { .. }
        | Route::UnknownResource(_) => return None,
    };
    let verb = match (method, all) {
        ("GET", true) => "Enumerate",
        ("GET", false) => "Get",
        ("DELETE", _) => "Delete",
        _ => "CreateOrUpdate",
    };
    Some(format!("{verb}{one}"))
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

fn refused(error: &TokenError, resource: &str) -> ServiceError {
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
    ServiceError::unauthorized(format!(
        "SubCode={code}. {name}: unauthorized access to '{resource}': {error}."
    ))
}
