//! How a request is refused: a status of the documentation, and `<Error><Code>…</Code><Detail>…</Detail></Error>`.

use axum::http::header::{ALLOW, CONTENT_TYPE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use super::headers::XML;
use crate::nodes::{Condition, ServiceError};

const LOCK_LOST: [Condition; 2] = [Condition::MessageLockLost, Condition::SessionLockLost];

/// A refusal with the status that it has over HTTP.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Rejection {
    pub(super) status: StatusCode,
    pub(super) refusal: ServiceError,
    allow: Option<&'static str>,
}

/// A refusal whose text has its tracking id.
#[derive(Debug)]
pub(super) struct Tracked {
    pub(super) rejection: Rejection,
    pub(super) detail: String,
}

impl Rejection {
    pub(super) fn new(status: StatusCode, condition: Condition, text: impl Into<String>) -> Self {
        Self {
            status,
            refusal: ServiceError::new(condition, text),
            allow: None,
        }
    }

    /// A request that is not understood or not legal.
    pub(super) fn bad_request(text: impl Into<String>) -> Self {
        ServiceError::new(Condition::ArgumentError, text).into()
    }

    /// A token that gives no access. `sub_code` and `name` are those that the service documents for the reason.
    pub(super) fn unauthorized(sub_code: u32, name: &str, text: &str) -> Self {
        let text = format!("SubCode={sub_code}. {name}: {text}.");
        ServiceError::new(Condition::Unauthorized, text).into()
    }

    /// A request that would have waited on, but the emulator stops.
    pub(super) fn stopping() -> Self {
        let text = "The emulator is stopping.";
        Self::new(
            StatusCode::SERVICE_UNAVAILABLE,
            Condition::ConnectionForced,
            text,
        )
    }

    /// The same naming the methods that are allowed.
    pub(super) fn with_allow(self, methods: &'static str) -> Self {
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
        let detail = escape(&detail);
        let body = format!(
            "<Error><Code>{}</Code><Detail>{detail}</Detail></Error>",
            status.as_str()
        );
        let mut response = (status, [(CONTENT_TYPE, XML)], body).into_response();
        if let Some(methods) = rejection.allow {
            let methods = HeaderValue::from_static(methods);
            response.headers_mut().insert(ALLOW, methods);
        }
        response
    }
}

/// A text as the content of an element; characters that XML has no way to write are replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '\t' | '\n' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'.. => {
                escaped.push(c);
            }
            _ => escaped.push('\u{fffd}'),
        }
    }
    escaped
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

    #[test]
    fn a_detail_is_always_xml() {
        assert_eq!(
            escape("a<b>&\u{0}\u{7}é\u{ffff}"),
            "a&lt;b&gt;&amp;\u{fffd}\u{fffd}é\u{fffd}"
        );
    }
}
