//! `$cbs`: a client puts a token and gets its rights (wire.md §2).

use serde_amqp::Value;

use super::condition::{Condition, ServiceError, quote};
use super::request::{Reply, Request};
use crate::auth::{Acceptance, Policy, TokenError};

/// Rust accepts only this one (wire.md §2.3).
const ACCEPTED: i32 = 202;

/// Validates a `put-token` request.
pub(crate) fn put_token(
    request: &Request,
    policy: &Policy<'_>,
    unix_seconds: i64,
) -> Result<(Acceptance, Reply), ServiceError> {
    match request.property("operation") {
        Some("put-token") => {}
        other => {
            let other = quote(other.unwrap_or_default());
            let text = format!("$cbs knows no operation '{other}'; allowed: put-token.");
            return Err(ServiceError::new(Condition::NotImplemented, text));
        }
    }
    let audience = request.property("name").ok_or_else(|| missing("name"))?;
    let Value::String(token) = &request.body else {
        return Err(missing("a body that is a string"));
    };
    let acceptance = policy
        .accept_token(token, audience, unix_seconds)
        .map_err(|error| {
            let audience = quote(audience);
            let text = match matches!(error, TokenError::Expired { .. }) {
                true => format!("{error}. Resource: '{audience}'."),
                false => format!("Unauthorized access to '{audience}': {error}."),
            };
            ServiceError::new(Condition::Unauthorized, text)
        })?;
    let reply = Reply::Done {
        status: ACCEPTED,
        body: vec![0x40],
    };
    Ok((acceptance, reply))
}

fn missing(what: &str) -> ServiceError {
    ServiceError::new(Condition::ArgumentError, format!("put-token needs {what}."))
}
