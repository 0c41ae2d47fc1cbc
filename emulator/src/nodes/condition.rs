//! The one table of what can be refused: AMQP condition, status in a management reply, whether a retry may
//! succeed, and the texts.
//!
//! Sources: semantics §20.1 and §20.2, wire.md §6.3.

use servicebus_amqp::Error;
use servicebus_broker::Timestamp;
use uuid::Uuid;

/// Why something is refused, as a client's code tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Condition {
    NotFound,
    Unauthorized,
    NotAllowed,
    NotImplemented,
    DecodeError,
    InternalError,
    ConnectionForced,
    ArgumentError,
    ArgumentOutOfRange,
    EntityDisabled,
    MessageLockLost,
    MessageNotFound,
    MessageSizeExceeded,
    ResourceLimitExceeded,
}

/// What there is to know about a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    symbol: &'static str,
    /// Of a management reply that carries it.
    status: i32,
    /// Whether the same may succeed when it is tried again (semantics §20.1).
    may_retry: bool,
}

impl Condition {
    fn row(self) -> Row {
        let (symbol, status, may_retry) = match self {
            Self::NotFound => ("amqp:not-found", 404, false),
            Self::Unauthorized => ("amqp:unauthorized-access", 401, false),
            Self::NotAllowed => ("amqp:not-allowed", 400, false),
            Self::NotImplemented => ("amqp:not-implemented", 501, false),
            Self::DecodeError => ("amqp:decode-error", 400, false),
            Self::InternalError => ("amqp:internal-error", 500, true),
            Self::ConnectionForced => ("amqp:connection:forced", 500, true),
            Self::ArgumentError => ("com.microsoft:argument-error", 400, false),
            Self::ArgumentOutOfRange => ("com.microsoft:argument-out-of-range", 400, false),
            Self::EntityDisabled => ("com.microsoft:entity-disabled", 400, false),
            Self::MessageNotFound => ("com.microsoft:message-not-found", 404, false),
            Self::MessageLockLost => ("com.microsoft:message-lock-lost", 410, false),
            Self::MessageSizeExceeded => ("amqp:link:message-size-exceeded", 403, false),
            Self::ResourceLimitExceeded => ("amqp:resource-limit-exceeded", 403, false),
        };
        Row {
            symbol,
            status,
            may_retry,
        }
    }

    pub(crate) fn symbol(self) -> &'static str {
        self.row().symbol
    }

    pub(crate) fn status(self) -> i32 {
        self.row().status
    }

    /// Whether a client that does the same again may have more luck. The condition tells it; the log says it.
    pub(crate) fn may_retry(self) -> bool {
        self.row().may_retry
    }
}

/// Longest text of a refusal, in bytes: with its tail it must fit any frame.
const MAX_TEXT: usize = 2048;
/// Longest name that is repeated to a client, in characters: none that exists is longer.
const MAX_NAME: usize = 300;

/// A refusal before it has its tracking id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) condition: Condition,
    pub(crate) text: String,
}

impl Refusal {
    pub(crate) fn new(condition: Condition, text: impl Into<String>) -> Self {
        let mut text = text.into();
        text.truncate(text.floor_char_boundary(MAX_TEXT));
        Self { condition, text }
    }

    /// JavaScript and Java search for the words around the name (wire.md §2.3).
    pub(crate) fn not_found(host: &str, path: &str) -> Self {
        let (host, path) = (quote(host), quote(path));
        let text = format!(
            "The messaging entity 'sb://{host}/{path}' could not be found. To know more visit \
             https://aka.ms/sbResourceMgrExceptions."
        );
        Self::new(Condition::NotFound, text)
    }

    pub(crate) fn unauthorized(claim: &str, host: &str, path: &str) -> Self {
        let (host, path) = (quote(host), quote(path));
        let text = format!(
            "Unauthorized access. '{claim}' claim(s) are required to perform this operation. \
             Resource: 'sb://{host}/{path}'."
        );
        Self::new(Condition::Unauthorized, text)
    }

    pub(crate) fn lock_lost() -> Self {
        let text = "The lock supplied is invalid. Either the lock expired, or the message has already \
                    been removed from the queue. For more information please see \
                    https://aka.ms/ServiceBusExceptions .";
        Self::new(Condition::MessageLockLost, text)
    }

    pub(crate) fn disabled(host: &str, path: &str) -> Self {
        let (host, path) = (quote(host), quote(path));
        let text = format!(
            "Messaging entity 'sb://{host}/{path}' is currently disabled. For more information please see \
             https://aka.ms/ServiceBusExceptions ."
        );
        Self::new(Condition::EntityDisabled, text)
    }

    pub(crate) fn message_too_large(delivery: u32, size: u64, limit: u64) -> Self {
        let text = format!(
            "The received message (delivery-id:{delivery}, size:{size} bytes) exceeds the limit \
             ({limit} bytes) currently allowed on the link."
        );
        Self::new(Condition::MessageSizeExceeded, text)
    }

    /// The text with the tail of the service: what to look for in log and timeline (decision D29).
    pub(crate) fn tracked(&self, tracking: Uuid, system: &str, real_now: Timestamp) -> String {
        let at = jiff::Timestamp::from_millisecond(real_now.as_millis()).unwrap_or_default();
        let at = at.strftime("%Y-%m-%dT%H:%M:%S");
        let text = &self.text;
        format!("{text} TrackingId:{tracking}_B0, SystemTracker:{system}, Timestamp:{at}")
    }

    pub(crate) fn error(&self, text: String) -> Error {
        Error::new(self.condition.symbol(), text)
    }
}

/// The beginning of a client's text, short enough to be repeated.
pub(super) fn quote(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_NAME).map(|(at, _)| at);
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_condition_has_its_symbol_its_status_and_whether_to_retry() {
        use Condition::*;
        let table = [
            (NotFound, "amqp:not-found", 404, false),
            (Unauthorized, "amqp:unauthorized-access", 401, false),
            (NotAllowed, "amqp:not-allowed", 400, false),
            (NotImplemented, "amqp:not-implemented", 501, false),
            (DecodeError, "amqp:decode-error", 400, false),
            (InternalError, "amqp:internal-error", 500, true),
            (ConnectionForced, "amqp:connection:forced", 500, true),
            (ArgumentError, "com.microsoft:argument-error", 400, false),
            (
                ArgumentOutOfRange,
                "com.microsoft:argument-out-of-range",
                400,
                false,
            ),
            (EntityDisabled, "com.microsoft:entity-disabled", 400, false),
            (
                MessageLockLost,
                "com.microsoft:message-lock-lost",
                410,
                false,
            ),
            (
                MessageNotFound,
                "com.microsoft:message-not-found",
                404,
                false,
            ),
            (
                MessageSizeExceeded,
                "amqp:link:message-size-exceeded",
                403,
                false,
            ),
            (
                ResourceLimitExceeded,
                "amqp:resource-limit-exceeded",
                403,
                false,
            ),
        ];
        for (condition, symbol, status, may_retry) in table {
            let row = Row {
                symbol,
                status,
                may_retry,
            };
            assert_eq!(condition.row(), row);
        }
        // One for each: the last that was declared is the last that is numbered.
        assert_eq!(table.len(), ResourceLimitExceeded as usize + 1);
    }
}
