//! Who may administer: the one place where a request's token is judged (admin-http.md §3).

use axum::http::request::Parts;

use super::call::{Answer, Call};
use super::refusal::{ServiceError, quote};
use super::route::Route;
use crate::auth::Claims;
use crate::namespace::Namespace;
use crate::service_http::{self, TokenRefusal};

/// The claims of a request's token at `resource`, its path, where it is about the entity `owner`.
pub(crate) fn claims(
    namespace: &Namespace,
    head: &Parts,
    resource: &str,
    owner: Option<&str>,
    now: i64,
) -> Result<Claims, ServiceError> {
    let claims = service_http::claims(namespace, head, owner, &[resource], now);
    claims.map_err(|TokenRefusal { sub_code, name, error }| {
        ServiceError::unauthorized(match error {
            Some(error) => {
                let resource = quote(resource);
                format!("SubCode={sub_code}. {name}: unauthorized access to '{resource}': {error}.")
            }
            None => format!(
                "SubCode={sub_code}. {name}: claim is empty; the header 'Authorization' must have a shared access \
                 signature or a bearer token."
            ),
        })
    })
}

impl Call<'_> {
    /// What a request with these claims, Manage not among them, is answered: that a queue or topic is missing, if it is
    /// and was to be read (observed 32), else what is required, in the words that suites of SDKs look for (observed 33;
    /// of rules by analogy).
    pub(crate) fn without_manage(
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
