//! Errors of the admin API: `<Error><Code>409</Code><Detail>…</Detail></Error>` with the service's texts and sub-codes
//! (admin-http.md §7, §8).

use axum::http::StatusCode;
use servicebus_broker::Timestamp;
use uuid::Uuid;

use crate::clock;

/// Longest text in a response, in bytes.
const MAX_TEXT: usize = 2048;
/// Longest name that is repeated to a client, in characters: no existing name is longer.
const MAX_NAME: usize = 320;
/// The end of most texts of the service before their tail.
pub(crate) const MORE: &str = "To know more visit https://aka.ms/sbResourceMgrExceptions.";

/// The part of the service that responds: their tracking ids and system trackers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Responder {
    Gateway,
    /// The part for subscriptions and rules.
    BackEnd,
}

/// An error before it has its tracking id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceError {
    pub(crate) status: StatusCode,
    text: String,
    speaker: Responder,
}

/// The values in the tail of a text.
pub(crate) struct Tail<'a> {
    pub(crate) tracking: Uuid,
    pub(crate) host: &'a str,
    pub(crate) path: &'a str,
    pub(crate) now: Timestamp,
}

impl ServiceError {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        Self {
            status,
            text,
            speaker: Responder::Gateway,
        }
    }

    /// Returns the error as the part for subscriptions and rules writes it.
    pub(crate) fn by_back_end(self) -> Self {
        Self {
            speaker: Responder::BackEnd,
            ..self
        }
    }

    /// Returns the error for an invalid request.
    pub(crate) fn bad_request(text: impl AsRef<str>) -> Self {
        let text = format!("SubCode=40000. {} {MORE} . ", text.as_ref());
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// Returns the error for an invalid value, with the allowed ones.
    pub(crate) fn parameter(text: impl AsRef<str>, name: &str, value: &str) -> Self {
        let (text, value) = (text.as_ref(), quote(value));
        let text =
            format!("SubCode=40000. {text}\r\nParameter name: {name}\r\nActual value was {value}.");
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// Returns the error without a sub-code, as the back end writes it.
    pub(crate) fn without_sub_code(self) -> Self {
        let text = self.text.strip_prefix("SubCode=40000. ");
        Self {
            text: text.unwrap_or(&self.text).to_owned(),
            ..self
        }
    }

    pub(crate) fn unauthorized(text: impl AsRef<str>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, format!("{} ", text.as_ref()))
    }

    /// Returns the error that the name of a new queue or topic is taken.
    pub(crate) fn conflict() -> Self {
        let text = format!(
            "SubCode=40900. Conflict. You're requesting an operation that isn't allowed in the resource's current \
             state. {MORE} . "
        );
        Self::new(StatusCode::CONFLICT, text)
    }

    /// Returns the error that the name of a new subscription or rule is taken; `entity` as [`tracker`] writes it.
    pub(crate) fn exists(entity: &str) -> Self {
        let entity = quote(entity);
        let text = format!("The messaging entity '{entity}' already exists. {MORE}  ");
        Self::new(StatusCode::CONFLICT, text).by_back_end()
    }

    /// Returns the error for a missing subscription or rule; `entity` as [`tracker`] writes it.
    pub(crate) fn no_entity(entity: &str) -> Self {
        let text = format!("Entity '{}' was not found. {MORE}  ", quote(entity));
        Self::new(StatusCode::NOT_FOUND, text).by_back_end()
    }

    /// Returns the error for an update of a missing queue or topic.
    pub(crate) fn no_operation() -> Self {
        let text = format!("SubCode=40400. Not Found. The Operation doesn't exist. {MORE} . ");
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// Returns the error for a new subscription of a missing topic.
    pub(crate) fn no_policy() -> Self {
        let text = format!(
            "The incoming request is not recognized as a namespace policy put request. {MORE} . "
        );
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// Returns the error for the deletion of a missing entity.
    pub(crate) fn no_service() -> Self {
        let text = "No service is hosted at the specified address. ";
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// Returns the error for an exceeded limit, which `sub_code` identifies.
    pub(crate) fn limit(sub_code: u32, text: impl AsRef<str>) -> Self {
        let text = format!("SubCode={sub_code}. {} {MORE} . ", text.as_ref());
        Self::new(StatusCode::FORBIDDEN, text)
    }

    pub(crate) fn verb(method: &str) -> Self {
        let text = format!(
            "The specified HTTP verb ({}) is not valid. {MORE} . ",
            quote(method)
        );
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// Returns the text with the service's tail, by which log and timeline can be searched (decision D29).
    pub(crate) fn tracked(&self, tail: &Tail<'_>) -> String {
        let Tail {
            tracking,
            host,
            path,
            now,
        } = tail;
        let at = clock::date(*now);
        let at = at.strftime("%Y-%m-%dT%H:%M:%S");
        let text = &self.text;
        match self.speaker {
            Responder::Gateway => format!(
                "{text}{}TrackingId:{tracking}_G0, SystemTracker:{}:{}, Timestamp:{at}",
                gap(text),
                quote(host),
                quote(path)
            ),
            Responder::BackEnd => format!(
                "{text}{}TrackingId:{tracking}_B0, SystemTracker:NoSystemTracker, Timestamp:{at}",
                gap(text)
            ),
        }
    }
}

fn gap(text: &str) -> &'static str {
    if text.ends_with(' ') { "" } else { " " }
}

/// Returns the beginning of a client's text, short enough to be repeated.
pub(crate) fn quote(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_NAME).map(|(at, _)| at);
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service_http::error_body;

    fn tail() -> Tail<'static> {
        Tail {
            tracking: Uuid::nil(),
            host: "ns.example",
            path: "q",
            now: Timestamp::from_millis(1_633_046_806_000),
        }
    }

    #[test]
    fn error_texts_end_in_the_tracking_data() {
        let zero = "00000000-0000-0000-0000-000000000000";
        let text = ServiceError::no_entity("ns:Topic:t|s").tracked(&tail());
        assert_eq!(
            text,
            format!(
                "Entity 'ns:Topic:t|s' was not found. To know more visit https://aka.ms/sbResourceMgrExceptions.  \
                 TrackingId:{zero}_B0, SystemTracker:NoSystemTracker, Timestamp:2021-10-01T00:06:46"
            )
        );
        let text = ServiceError::parameter("No.", "LockDuration", "x").tracked(&tail());
        assert_eq!(
            text,
            format!(
                "SubCode=40000. No.\r\nParameter name: LockDuration\r\nActual value was x. \
                 TrackingId:{zero}_G0, SystemTracker:ns.example:q, Timestamp:2021-10-01T00:06:46"
            )
        );
    }

    #[test]
    fn an_error_body_has_code_and_detail_and_a_limited_size() {
        let refusal = ServiceError::bad_request("é<".repeat(10_000));
        let body = error_body("400", &refusal.tracked(&tail()));
        assert!(body.starts_with("<Error><Code>400</Code><Detail>SubCode=40000. é&lt;"));
        assert!(body.len() < 4 * MAX_TEXT, "{}", body.len());
    }
}
