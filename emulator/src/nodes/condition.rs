//! The table of errors: AMQP condition, status of a management reply, whether a retry may succeed, and texts.
//!
//! Sources: semantics §20.1 and §20.2, wire.md §6.3.

use std::time::Duration;

use servicebus_amqp::{Error, LinkId};
use servicebus_broker::filter::time_span;
use servicebus_broker::{EntityPath, Timestamp};
use uuid::Uuid;

use crate::clock;

/// Declares the conditions, each with its symbol, its status, and whether a retry may succeed.
macro_rules! conditions {
    ($($condition:ident: $symbol:literal, $status:literal, $may_retry:literal;)+) => {
        /// The error conditions that a client's code distinguishes.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Condition {
            $($condition,)+
        }

        impl Condition {
            const ALL: &[Self] = &[$(Self::$condition),+];

            fn row(self) -> Row {
                let (symbol, status, may_retry) = match self {
                    $(Self::$condition => ($symbol, $status, $may_retry),)+
                };
                Row {
                    symbol,
                    status,
                    may_retry,
                }
            }
        }
    };
}

conditions! {
    NotFound: "amqp:not-found", 404, false;
    Unauthorized: "amqp:unauthorized-access", 401, false;
    NotAllowed: "amqp:not-allowed", 400, false;
    NotImplemented: "amqp:not-implemented", 501, false;
    DecodeError: "amqp:decode-error", 400, false;
    InternalError: "amqp:internal-error", 500, true;
    ConnectionForced: "amqp:connection:forced", 500, true;
    LinkDetachForced: "amqp:link:detach-forced", 500, true;
    ArgumentError: "com.microsoft:argument-error", 400, false;
    ArgumentOutOfRange: "com.microsoft:argument-out-of-range", 400, false;
    EntityAlreadyExists: "com.microsoft:entity-already-exists", 409, false;
    EntityDisabled: "com.microsoft:entity-disabled", 400, false;
    MessageLockLost: "com.microsoft:message-lock-lost", 410, false;
    MessageNotFound: "com.microsoft:message-not-found", 404, false;
    MessageSizeExceeded: "amqp:link:message-size-exceeded", 403, false;
    ServerBusy: "com.microsoft:server-busy", 503, true;
    SessionCannotBeLocked: "com.microsoft:session-cannot-be-locked", 410, false;
    SessionLockLost: "com.microsoft:session-lock-lost", 410, false;
    // For a list without sessions: success without content.
    SessionNotFound: "com.microsoft:session-not-found", 204, false;
    Timeout: "com.microsoft:timeout", 408, true;
    ResourceLimitExceeded: "amqp:resource-limit-exceeded", 403, false;
    ResourceLocked: "amqp:resource-locked", 409, false;
    TransactionRollback: "amqp:transaction:rollback", 400, false;
    TransactionTimeout: "amqp:transaction:timeout", 408, false;
    TransactionUnknown: "amqp:transaction:unknown-id", 404, false;
}

/// The properties of a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Row {
    symbol: &'static str,
    /// The status of a management reply.
    status: i32,
    /// Whether a retry may succeed (semantics §20.1).
    may_retry: bool,
}

impl Condition {
    /// Returns the condition with this symbol, if it is one of these.
    pub(crate) fn of_symbol(symbol: &str) -> Option<Self> {
        let mut all = Self::ALL.iter().copied();
        all.find(|condition| condition.symbol() == symbol)
    }

    pub(crate) fn symbol(self) -> &'static str {
        self.row().symbol
    }

    pub(crate) fn status(self) -> i32 {
        self.row().status
    }

    /// Returns whether a retry may succeed. Clients know it from the condition; the log states it.
    pub(crate) fn may_retry(self) -> bool {
        self.row().may_retry
    }
}

/// Longest text of an error, in bytes: with its tail it must fit any frame.
const MAX_TEXT: usize = 2048;
/// Longest name that is repeated to a client, in characters: no existing name is longer.
const MAX_NAME: usize = 300;

/// The texts for a lost lock of a message and of a session.
pub(crate) const LOCK_LOST: &str = "The lock supplied is invalid. Either the lock expired, or the message has already been \
                                    removed from the queue. For more information please see \
                                    https://aka.ms/ServiceBusExceptions .";
/// Seen at the service; the semantics have no text for it.
pub(crate) const SESSION_LOCK_LOST: &str = "The session lock has expired on the MessageSession. Accept a new \
                                            MessageSession. For more information please see \
                                            https://aka.ms/ServiceBusExceptions .";

/// An error before it has its tracking id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServiceError {
    pub(crate) condition: Condition,
    pub(crate) text: String,
}

impl ServiceError {
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
        Self::new(Condition::MessageLockLost, LOCK_LOST)
    }

    pub(crate) fn session_lock_lost() -> Self {
        Self::new(Condition::SessionLockLost, SESSION_LOCK_LOST)
    }

    pub(crate) fn session_cannot_be_locked(session: &str) -> Self {
        let text = format!(
            "The requested session '{session}' cannot be accepted. It may be locked by another receiver."
        );
        Self::new(Condition::SessionCannotBeLocked, text)
    }

    /// For a client that renews the lock of a message in a session, which has no lock of its own (semantics §6).
    pub(crate) fn locked_by_session(path: &str) -> Self {
        let text = format!(
            "The messages of '{path}' are locked by their sessions: renew the session's lock instead."
        );
        Self::new(Condition::NotAllowed, text)
    }

    /// For a JMS 2.0 client in a namespace that is not premium (spec/jms.md).
    pub(crate) fn needs_premium() -> Self {
        let text = "Full JMS 2.0 parity over AMQP is a feature supported only by a Premium Messaging namespace.";
        Self::new(Condition::NotImplemented, text)
    }

    /// For a receiver without a session filter at an entity with sessions.
    pub(crate) fn requires_session() -> Self {
        let text = "It is not possible for an entity that requires sessions to create a non-sessionful message \
                    receiver.";
        Self::new(Condition::NotAllowed, text)
    }

    /// For a receiver with a session filter, or a request about sessions, at an entity without sessions.
    pub(crate) fn receives_no_sessions() -> Self {
        let text = "A sessionful message receiver cannot be created on an entity that does not require sessions. \
                    Ensure RequiresSession is set to true when creating a Queue or Subscription to enable \
                    sessionful behavior.";
        Self::new(Condition::NotAllowed, text)
    }

    /// For a link that the broker ends; `code` is the half of the connection, `details` the reason (semantics §20.2).
    pub(crate) fn force_detached(name: &str, code: &str, details: &str) -> Self {
        let name = quote(name);
        let text = format!("The link '{name}' is force detached. Code: {code}. Details: {details}");
        Self::new(Condition::LinkDetachForced, text)
    }

    /// For a batch without messages, and for one that exceeds the limit of batches at an entity whose messages may be larger
    /// (spec/newest.md §4).
    pub(crate) fn batch_without_data(name: &str, link: LinkId) -> Self {
        let (name, link) = (quote(name), u64::from(link));
        let text = format!(
            "The link '{name}' is force detached by the broker because publisher(link{link}) received a batch message with \
             no data in it. Detach origin: Publisher."
        );
        Self::new(Condition::NotAllowed, text)
    }

    pub(crate) fn timed_out(allotted: Duration) -> Self {
        let text = format!(
            "The operation did not complete within the allotted timeout of {}. The time allotted to this operation \
             may have been a portion of a longer timeout. For more information on exception types and proper \
             exception handling, please refer to https://aka.ms/ServiceBusExceptions .",
            time_span(allotted)
        );
        Self::new(Condition::Timeout, text)
    }

    pub(crate) fn disabled(host: &str, path: &str) -> Self {
        let (host, path) = (quote(host), quote(path));
        let text = format!(
            "Messaging entity 'sb://{host}/{path}' is currently disabled. For more information please see \
             https://aka.ms/ServiceBusExceptions ."
        );
        Self::new(Condition::EntityDisabled, text)
    }

    /// For a sender to a subscription (semantics §1).
    pub(crate) fn sends_not_allowed(subscription: &str) -> Self {
        let text = format!(
            "Messages cannot be sent to '{subscription}': it is a subscription; send to its topic."
        );
        Self::new(Condition::NotAllowed, text)
    }

    /// For a sender to a dead-letter queue with this address (semantics §3.3).
    pub(crate) fn is_filled_by_the_broker(address: &str) -> Self {
        let text = format!(
            "Messages cannot be sent to '{address}': a dead-letter queue is filled by the broker alone."
        );
        Self::new(Condition::NotAllowed, text)
    }

    /// For a receiver from the address of a topic (semantics §1).
    pub(crate) fn receives_not_allowed(address: &str) -> Self {
        let text = format!(
            "Messages cannot be received from '{address}': it is a topic; receive from its subscriptions."
        );
        Self::new(Condition::NotAllowed, text)
    }

    /// For a receiver from an entity that forwards (spec/observed.md 37).
    pub(crate) fn forwards() -> Self {
        let text = "Cannot create a message receiver on an entity with auto-forwarding enabled.";
        Self::new(Condition::NotAllowed, text)
    }

    /// For a receiver from an entity to which transactions send via another one (spec/observed.md 43).
    pub(crate) fn is_sent_to_by_way_of(entity: &EntityPath, first: &EntityPath) -> Self {
        let text = format!(
            "Local transactions cannot span multiple top-level entities such as queue or topic. '{entity}' cannot be \
             received from on a session whose transactions send to it by way of '{first}'."
        );
        Self::new(Condition::NotAllowed, text)
    }

    /// For a second link to `$cbs` in the same direction (spec/observed.md 66).
    pub(crate) fn cbs_is_open(connection: u32) -> Self {
        let text =
            format!("A link to connection '{connection}' $cbs node has already been opened.");
        Self::new(Condition::NotAllowed, text)
    }

    /// For a filter that is not evaluated. .NET looks for the words after the last apostrophe (spec/observed.md 50).
    pub(crate) fn invalid_filter(link: &str) -> Self {
        let link = quote(link);
        let text = format!(
            "The link '{link}' contains invalid filter type. System only support Jms or Apache selector filter type."
        );
        Self::new(Condition::NotAllowed, text)
    }

    /// For a link whose `com.microsoft:entity-type` differs from the entity's (spec/observed.md 60).
    pub(crate) fn other_entity_type(client: &str, entity: &str) -> Self {
        let text = format!("Cannot open a {client} client for entity type {entity}.");
        Self::new(Condition::NotAllowed, text)
    }

    /// For a client that deletes messages of a partitioned entity in batches (observed 36).
    pub(crate) fn partitioned() -> Self {
        let text = "Messages of a partitioned entity cannot be deleted in batches.";
        Self::new(Condition::NotAllowed, text)
    }

    pub(crate) fn message_too_large(delivery: u32, size: u64, limit: u64) -> Self {
        let text = format!(
            "The received message (delivery-id:{delivery}, size:{size} bytes) exceeds the limit \
             ({limit} bytes) currently allowed on the link."
        );
        Self::new(Condition::MessageSizeExceeded, text)
    }

    /// Returns the text with the service's tail, by which log and timeline can be searched (decision D29).
    pub(crate) fn tracked(&self, tracking: Uuid, system: &str, real_now: Timestamp) -> String {
        let at = clock::date(real_now);
        let at = at.strftime("%Y-%m-%dT%H:%M:%S");
        let text = &self.text;
        format!("{text} TrackingId:{tracking}_B0, SystemTracker:{system}, Timestamp:{at}")
    }

    pub(crate) fn error(&self, text: String) -> Error {
        Error::new(self.condition.symbol(), text)
    }
}

pub(crate) fn no_namespace() -> ServiceError {
    ServiceError::new(
        Condition::NotFound,
        "The namespace cannot be determined from host name or key name; it could not be found.",
    )
}

/// Returns the beginning of a client's text, short enough to be repeated.
pub(crate) fn quote(text: &str) -> &str {
    let end = text.char_indices().nth(MAX_NAME).map(|(at, _)| at);
    &text[..end.unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Symbol and status of each condition in the order of their declaration, and whether a retry may succeed.
    const TABLE: &str = "\
        amqp:not-found 404
        amqp:unauthorized-access 401
        amqp:not-allowed 400
        amqp:not-implemented 501
        amqp:decode-error 400
        amqp:internal-error 500 retry
        amqp:connection:forced 500 retry
        amqp:link:detach-forced 500 retry
        com.microsoft:argument-error 400
        com.microsoft:argument-out-of-range 400
        com.microsoft:entity-already-exists 409
        com.microsoft:entity-disabled 400
        com.microsoft:message-lock-lost 410
        com.microsoft:message-not-found 404
        amqp:link:message-size-exceeded 403
        com.microsoft:server-busy 503 retry
        com.microsoft:session-cannot-be-locked 410
        com.microsoft:session-lock-lost 410
        com.microsoft:session-not-found 204
        com.microsoft:timeout 408 retry
        amqp:resource-limit-exceeded 403
        amqp:resource-locked 409
        amqp:transaction:rollback 400
        amqp:transaction:timeout 408
        amqp:transaction:unknown-id 404";

    #[test]
    fn each_condition_has_a_symbol_a_status_and_a_retry_flag() {
        for (number, line) in TABLE.lines().enumerate() {
            let mut cells = line.split_whitespace();
            let symbol = cells.next().expect("a symbol");
            let condition = Condition::of_symbol(symbol).expect(symbol);
            let row = Row {
                symbol,
                status: cells
                    .next()
                    .and_then(|cell| cell.parse().ok())
                    .expect("a status"),
                may_retry: cells.next() == Some("retry"),
            };
            assert_eq!((condition as usize, condition.row()), (number, row));
        }
        let count = Condition::TransactionUnknown as usize + 1;
        assert_eq!(TABLE.lines().count(), count, "a row for each");
    }
}
