//! How a request is refused: a status of the documentation, and `<Error><Code>…</Code><Detail>…</Detail></Error>`.

use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::nodes::{Condition, ServiceError};
use crate::service_http::{TokenRefusal, XML, error_body};

const LOCK_LOST: [Condition; 2] = [Condition::MessageLockLost, Condition::SessionLockLost];

/// A refusal with the status that it has over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    pub(crate) refusal: ServiceError,
    allow: Option<&'static str>,
}

/// A refusal whose text has its tracking id.
#[derive(Debug)]
pub(crate) struct Tracked {
    pub(crate) rejection: Rejection,
    pub(crate) detail: String,
}

impl Rejection {
    pub(crate) fn new(status: StatusCode, condition: Condition, text: impl Into<String>) -> Self {
        Self {
            status,
            refusal: ServiceError::new(condition, text),
            allow: None,
        }
    }

    /// A request that is not understood or not legal.
    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        ServiceError::new(Condition::ArgumentError, text).into()
    }

    /// A token that gives no access. `sub_code` and `name` are those that the service documents for the reason.
    pub(crate) fn unauthorized(sub_code: u32, name: &str, text: &str) -> Self {
        let text = format!("SubCode={sub_code}. {name}: {text}.");
        ServiceError::new(Condition::Unauthorized, text).into()
    }

    /// A token that gives nothing: the words of its reason are one name here.
    pub(crate) fn of_token(refusal: &TokenRefusal) -> Self {
        let name = refusal.name.split(' ').map(|word| {
            let (first, rest) = word.split_at(1);
            first.to_uppercase() + rest
        });
        let text = match &refusal.error {
            Some(error) => error.to_string(),
            None => "The authorization header was not found, or is no text".to_owned(),
        };
        Self::unauthorized(refusal.sub_code, &String::from_iter(name), &text)
    }

    /// A request that would have waited on, but the emulator stops.
    pub(crate) fn stopping() -> Self {
        let text = "The emulator is stopping.";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Condition::ConnectionForced,
            text,
        )
    }

    /// The same naming the methods that are allowed.
    pub(crate) fn with_allow(self, methods: &'static str) -> Self {
        Self {
            allow: Some(methods),
            ..self
        }
    }
}

impl From<ServiceError> for Rejection {
    /// The status of a `$management` reply with the same condition, but for what the documentation of the runtime
    /// operations has otherwise: 410 for an entity that is not there, 404 for a lock that is not held.
    fn from(refusal: ServiceError) -> Self {
        let status = if refusal.condition == Condition::NotFound {
            StatusCode::GONE
        } else if LOCK_LOST.contains(&refusal.condition) {
            StatusCode::NOT_FOUND
        } else {
            let status = u16::try_from(refusal.condition.status());
            let status = status
                .ok()
                .and_then(|status| StatusCode::from_u16(status).ok());
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
        };
        Self {
            status,
            refusal,
            allow: None,
        }
    }
}

impl IntoResponse for Tracked {
    fn into_response(self) -> Response {
        let Self { rejection, detail } = self;
        let status = rejection.status;
        let body = error_body(status.as_str(), &detail);
        let mut response = (status, [(CONTENT_TYPE, XML)], body).into_response();
        if let Some(methods) = rejection.allow {
            let methods = HeaderValue::from_static(methods);
            response.headers_mut().insert(ALLOW, methods);
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_have_the_statuses_of_the_documentation() {
        for (condition, status) in [
            (Condition::NotFound, 410),
            (Condition::MessageLockLost, 404),
            (Condition::SessionLockLost, 404),
            (Condition::Unauthorized, 401),
            (Condition::NotAllowed, 400),
            (Condition::DecodeError, 400),
            (Condition::InternalError, 500),
            (Condition::EntityDisabled, 400),
            (Condition::MessageSizeExceeded, 403),
            (Condition::ResourceLimitExceeded, 403),
            (Condition::ServerBusy, 503),
        ] {
            let rejection = Rejection::from(ServiceError::new(condition, "no"));
            assert_eq!(rejection.status.as_u16(), status, "{condition:?}");
        }
    }
}
