//! How the admin API says no: `<Error><Code>409</Code><Detail>…</Detail></Error>` with the service's texts and sub-codes
//! (admin-http.md §7, §8).

use axum::http::StatusCode;
use servicebus_broker::Timestamp;
use uuid::Uuid;

use crate::clock;

/// Longest text that goes back to a client, in bytes.
const MAX_TEXT: usize = 2048;
/// Longest name that is repeated to a client, in characters: none that exists is longer.
const MAX_NAME: usize = 320;
/// What most texts of the service say before their tail.
pub(crate) const MORE: &str = "To know more visit https://aka.ms/sbResourceMgrExceptions.";

/// Which part of the service speaks: its tracking ids and system trackers differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Speaker {
    Gateway,
    /// It looks after subscriptions and rules.
    BackEnd,
}

/// A refusal before it has its tracking id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceError {
    pub(crate) status: StatusCode,
    text: String,
    speaker: Speaker,
}

/// What the tail of a text says.
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
            speaker: Speaker::Gateway,
        }
    }

    /// The same from the part of the service that looks after subscriptions and rules.
    pub(crate) fn by_back_end(self) -> Self {
        Self {
            speaker: Speaker::BackEnd,
            ..self
        }
    }

    /// A request that is not understood or not legal.
    pub(crate) fn bad_request(text: impl AsRef<str>) -> Self {
        let text = format!("SubCode=40000. {} {MORE} . ", text.as_ref());
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// A value that is not legal, with what would be.
    pub(crate) fn parameter(text: impl AsRef<str>, name: &str, value: &str) -> Self {
        let (text, value) = (text.as_ref(), quote(value));
        let text =
            format!("SubCode=40000. {text}\r\nParameter name: {name}\r\nActual value was {value}.");
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// The same text as the back end has it, which writes no sub-codes.
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

    /// The name of a new queue or topic is taken.
    pub(crate) fn conflict() -> Self {
        let text = format!(
            "SubCode=40900. Conflict. You're requesting an operation that isn't allowed in the resource's current \
             state. {MORE} . "
        );
        Self::new(StatusCode::CONFLICT, text)
    }

    /// The name of a new subscription or rule is taken; `entity` as [`tracker`] writes it.
    pub(crate) fn exists(entity: &str) -> Self {
        let entity = quote(entity);
        let text = format!("The messaging entity '{entity}' already exists. {MORE}  ");
        Self::new(StatusCode::CONFLICT, text).by_back_end()
    }

    /// A subscription or rule is missing; `entity` as [`tracker`] writes it.
    pub(crate) fn no_entity(entity: &str) -> Self {
        let text = format!("Entity '{}' was not found. {MORE}  ", quote(entity));
        Self::new(StatusCode::NOT_FOUND, text).by_back_end()
    }

    /// A queue or topic that should be changed is missing.
    pub(crate) fn no_operation() -> Self {
        let text = format!("SubCode=40400. Not Found. The Operation doesn't exist. {MORE} . ");
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// A subscription should be made where no topic is.
    pub(crate) fn no_policy() -> Self {
        let text = format!(
            "The incoming request is not recognized as a namespace policy put request. {MORE} . "
        );
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// Something that should be deleted is missing.
    pub(crate) fn no_service() -> Self {
        let text = "No service is hosted at the specified address. ";
        Self::new(StatusCode::NOT_FOUND, text)
    }

    /// More of something than there may be; `sub_code` says of what.
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

    /// The text with the tail of the service: what to look for in log and timeline (decision D29).
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
            Speaker::Gateway => format!(
                "{text}{}TrackingId:{tracking}_G0, SystemTracker:{}:{}, Timestamp:{at}",
                gap(text),
                quote(host),
                quote(path)
            ),
            Speaker::BackEnd => format!(
                "{text}{}TrackingId:{tracking}_B0, SystemTracker:NoSystemTracker, Timestamp:{at}",
                gap(text)
            ),
        }
    }
}

fn gap(text: &str) -> &'static str {
    if text.ends_with(' ') { "" } else { " " }
}

/// The beginning of a client's text, short enough to be repeated.
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
    fn texts_end_in_what_to_look_for() {
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
    fn a_body_has_code_and_detail_and_is_bounded() {
        let refusal = ServiceError::bad_request("é<".repeat(10_000));
        let body = error_body("400", &refusal.tracked(&tail()));
        assert!(body.starts_with("<Error><Code>400</Code><Detail>SubCode=40000. é&lt;"));
        assert!(body.len() < 4 * MAX_TEXT, "{}", body.len());
    }
}
