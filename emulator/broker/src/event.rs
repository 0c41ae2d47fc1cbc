//! Events: the input of timelines and counters.
//!
//! Events are small and own no memory: entities and clients are numbers, and the few texts (message ids, reasons) are in a
//! shared buffer. An event never holds a slice of a payload, which would keep the payload in memory.

use std::num::NonZeroU64;

use crate::ids::{ClientId, EntityId, SequenceNumber, SubQueue, TransactionId};
use crate::time::Timestamp;

/// An event of one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, in the namespace's time.
    pub at: Timestamp,
    /// The entity.
    pub entity: EntityId,
    /// The store of the entity.
    pub store: SubQueue,
    /// The client; [`ClientId::BROKER`] for deadlines.
    pub client: ClientId,
    number: Option<NonZeroU64>,
    /// What happened.
    pub kind: EventKind,
}

impl Event {
    /// Creates an event of a client, or of [`ClientId::BROKER`] for a deadline, in a store of an entity; `number` is that of
    /// the message, if the event concerns one.
    pub fn new(
        at: Timestamp,
        (entity, store): (EntityId, SubQueue),
        client: ClientId,
        number: Option<SequenceNumber>,
        kind: EventKind,
    ) -> Self {
        Self {
            at,
            entity,
            store,
            client,
            number: number.and_then(|number| NonZeroU64::new(number.0)),
            kind,
        }
    }

    /// Returns the message's number in that store; `None` if it was refused before it had a number, or the event concerns
    /// none.
    pub fn number(&self) -> Option<SequenceNumber> {
        self.number.map(|number| SequenceNumber(number.get()))
    }
}

/// The kinds of events. A [`Counter`] counts each for ever, per store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Accepted into the store.
    Enqueued {
        /// The message's id.
        message_id: Text,
        /// Size of the encoded message in bytes.
        bytes: u32,
        /// When it will expire; `None` if it will not.
        expires_at: Option<Timestamp>,
    },
    /// Handed to a receiver under a lock.
    Delivered {
        /// Which delivery this is, from 1.
        delivery: u32,
        /// End of the lock.
        locked_until: Timestamp,
    },
    /// Handed to a receiver and removed (receive-and-delete).
    ReceivedAndDeleted,
    /// Completed and removed.
    Completed,
    /// Abandoned; the delivery counts as failed.
    Abandoned {
        /// Failed deliveries so far.
        delivery_count: u32,
    },
    /// Given back without counting: `released`, or a closed link under `LocksOnDetach::Release`.
    Released,
    /// The lock was extended.
    LockRenewed {
        /// Its new end.
        locked_until: Timestamp,
    },
    /// The lock ended before the message was settled.
    LockExpired {
        /// Failed deliveries so far.
        delivery_count: u32,
    },
    /// Moved to the dead-letter store.
    DeadLettered {
        /// Its number there.
        moved_to: SequenceNumber,
        /// `DeadLetterReason`; empty when none was given.
        reason: Text,
        /// `DeadLetterErrorDescription`; empty when none was given.
        description: Text,
    },
    /// Removed because its time to live had passed.
    Expired,
    /// Removed by a reset of the namespace.
    Removed,
    /// Accepted, to become active later.
    Scheduled {
        /// The message's id.
        message_id: Text,
        /// Size of the encoded message in bytes.
        bytes: u32,
        /// When it becomes active.
        activates_at: Timestamp,
    },
    /// A scheduled message became active.
    Activated {
        /// Its number from now on.
        moved_to: SequenceNumber,
    },
    /// A scheduled message was cancelled.
    Cancelled,
    /// Accepted and dropped, because its id was seen before.
    DuplicateDropped {
        /// The message's id.
        message_id: Text,
    },
    /// Deferred until a client asks for its number.
    Deferred,
    /// Moved to the transfer dead-letter store.
    TransferFailed {
        /// Its number there.
        moved_to: SequenceNumber,
        /// `DeadLetterReason`.
        reason: Text,
        /// `DeadLetterErrorDescription`.
        description: Text,
    },
    /// Forwarded to another entity.
    Forwarded {
        /// Its path.
        to: Text,
    },
    /// A rule of a subscription matched; recorded for the copy before it is enqueued.
    Matched {
        /// The rule's name.
        rule: Text,
    },
    /// Every subscription of the topic has its copies.
    Published,
    /// Sent or scheduled in a transaction; accepted at its commit.
    SendEnlisted {
        /// The message's id.
        message_id: Text,
        /// The transaction.
        transaction: TransactionId,
    },
    /// Settled in a transaction; takes effect at its commit.
    SettlementEnlisted {
        /// The transaction.
        transaction: TransactionId,
    },
    /// A transaction was committed; recorded in each entity that took part, before the consequences.
    TransactionCommitted {
        /// The transaction.
        transaction: TransactionId,
    },
    /// A transaction was rolled back; recorded in each entity that took part.
    TransactionRolledBack {
        /// The transaction.
        transaction: TransactionId,
    },
    /// Removed by a request to delete messages.
    Deleted,
    /// A receiver holds a session from now on.
    SessionAccepted {
        /// Its id.
        session: Text,
        /// End of the lock.
        locked_until: Timestamp,
    },
    /// The lock of a session was extended.
    SessionLockRenewed {
        /// Its id.
        session: Text,
        /// The new end of the lock.
        locked_until: Timestamp,
    },
    /// The lock of a session ended although its holder was still attached.
    SessionLockExpired {
        /// Its id.
        session: Text,
    },
    /// The holder of a session detached.
    SessionReleased {
        /// Its id.
        session: Text,
    },
    /// The state of a session was set or cleared.
    SessionStateSet {
        /// Its id.
        session: Text,
        /// Bytes of the state; `None` when it was cleared.
        size: Option<u64>,
    },
    /// The entity was deleted with everything in it.
    EntityDeleted,
    /// A request moved the namespace's clock forward.
    ClockAdvanced {
        /// By how many milliseconds.
        milliseconds: u64,
    },
    /// A scripted fault was applied.
    Fault {
        /// The fault as text.
        fault: Text,
        /// The operation and the effect, in the JSON of the control API; empty where the fault was applied to no operation.
        applied: Text,
        /// The id of the operation's message if it has no number yet; else empty.
        message_id: Text,
    },
    /// A client's request was refused.
    Refused {
        /// The request; empty if unknown.
        operation: Text,
        /// The AMQP error condition.
        condition: Text,
        /// The text that the client got, tracking id included.
        description: Text,
    },
}

/// A text in the buffer of the [`crate::Events`] that hold the event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Text {
    pub(crate) start: u64,
    pub(crate) length: u32,
}

impl Text {
    /// Returns whether the text is empty.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// Declares a counter for each kind of event, by the name of the kind and its word in timelines.
macro_rules! counters {
    ($($kind:ident $name:literal,)+) => {
        /// The counters of a store: one for each kind of event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Counter {
            $(#[doc = concat!("Events called `", $name, "`.")] $kind,)+
        }

        impl Counter {
            /// Every counter.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)+];

            /// Returns its word in timelines.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }

        impl From<&EventKind> for Counter {
            fn from(kind: &EventKind) -> Self {
                match kind {
                    $(EventKind::$kind { .. } => Self::$kind,)+
                }
            }
        }
    };
}

counters! {
    Enqueued "sent",
    Delivered "delivered",
    ReceivedAndDeleted "received-and-deleted",
    Completed "completed",
    Abandoned "abandoned",
    Released "released",
    LockRenewed "lock-renewed",
    LockExpired "lock-expired",
    DeadLettered "dead-lettered",
    Expired "expired",
    Removed "removed",
    Scheduled "scheduled",
    Activated "activated",
    Cancelled "cancelled",
    DuplicateDropped "duplicate-dropped",
    Deferred "deferred",
    TransferFailed "transfer-dead-lettered",
    Forwarded "forwarded",
    Matched "matched",
    Published "published",
    SendEnlisted "send-enlisted",
    SettlementEnlisted "settlement-enlisted",
    TransactionCommitted "transaction-committed",
    TransactionRolledBack "transaction-rolled-back",
    Deleted "deleted",
    SessionAccepted "session-accepted",
    SessionLockRenewed "session-lock-renewed",
    SessionLockExpired "session-lock-expired",
    SessionReleased "session-released",
    SessionStateSet "session-state-set",
    EntityDeleted "entity-deleted",
    ClockAdvanced "clock-advanced",
    Fault "fault",
    Refused "refused",
}

impl EventKind {
    /// Calls `each` for each text of the event.
    pub(crate) fn texts(&mut self, mut each: impl FnMut(&mut Text)) {
        match self {
            Self::Enqueued { message_id, .. }
            | Self::Scheduled { message_id, .. }
            | Self::SendEnlisted { message_id, .. }
            | Self::DuplicateDropped { message_id } => each(message_id),
            Self::Forwarded { to } => each(to),
            Self::Matched { rule } => each(rule),
            Self::SessionAccepted { session, .. }
            | Self::SessionLockRenewed { session, .. }
            | Self::SessionLockExpired { session }
            | Self::SessionReleased { session }
            | Self::SessionStateSet { session, .. } => each(session),
            Self::DeadLettered {
                reason,
                description,
                ..
            }
            | Self::TransferFailed {
                reason,
                description,
                ..
            } => {
                each(reason);
                each(description);
            }
            Self::Refused {
                operation: first,
                condition: second,
                description: third,
            }
            | Self::Fault {
                fault: first,
                applied: second,
                message_id: third,
            } => {
                each(first);
                each(second);
                each(third);
            }
            Self::Activated { .. }
            | Self::Cancelled
            | Self::Deferred
            | Self::Deleted
            | Self::EntityDeleted
            | Self::Published
            | Self::Delivered { .. }
            | Self::ReceivedAndDeleted
            | Self::Completed
            | Self::Abandoned { .. }
            | Self::Released
            | Self::LockRenewed { .. }
            | Self::LockExpired { .. }
            | Self::SettlementEnlisted { .. }
            | Self::TransactionCommitted { .. }
            | Self::TransactionRolledBack { .. }
            | Self::Expired
            | Self::Removed
            | Self::ClockAdvanced { .. } => {}
        }
    }
}
