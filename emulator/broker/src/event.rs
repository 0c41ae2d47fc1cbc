//! What happened: the raw material of timelines and counters.
//!
//! Events are small and own no memory of their own: entities and clients are numbers, and the few texts
//! (message ids, reasons) stand in one buffer beside them. An event never holds a slice of a payload, which
//! would keep it alive.

use std::num::NonZeroU64;

use crate::ids::{ClientId, EntityId, SequenceNumber, SubQueue, TransactionId};
use crate::time::Timestamp;

/// One thing that happened to one message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, in the namespace's time.
    pub at: Timestamp,
    /// In which entity.
    pub entity: EntityId,
    /// In which of its stores.
    pub store: SubQueue,
    /// Who did it; [`ClientId::BROKER`] for what time brought about.
    pub client: ClientId,
    number: Option<NonZeroU64>,
    /// What.
    pub kind: EventKind,
}

impl Event {
    /// Something that a client did, or time for [`ClientId::BROKER`], in a store of an entity to a message, or to none.
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

    /// To which message of that store; none when it was refused before it had a number, and for what concerns none.
    pub fn number(&self) -> Option<SequenceNumber> {
        self.number.map(|number| SequenceNumber(number.get()))
    }
}

/// What can happen. How often each did is counted for ever, per store, by a [`Counter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventKind {
    /// Accepted into the store.
    Enqueued {
        /// The message's id.
        message_id: Text,
        /// Size of the encoded message in bytes.
        bytes: u32,
        /// When it will expire; none if it will not.
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
    /// Settled as done and removed.
    Completed,
    /// Given back; the delivery counts as failed.
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
    /// A scheduled message was taken back.
    Cancelled,
    /// Accepted and dropped, because its id was seen before.
    DuplicateDropped {
        /// The message's id.
        message_id: Text,
    },
    /// Set aside until somebody asks for its number.
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
    /// Went on to another entity.
    Forwarded {
        /// Its path.
        to: Text,
    },
    /// A rule of a subscription matched; said of the copy before it is enqueued.
    Matched {
        /// The rule's name.
        rule: Text,
    },
    /// Every subscription of the topic has what it wanted of it.
    Published,
    /// Sent or scheduled in a transaction: accepted when that is committed.
    SendEnlisted {
        /// The message's id.
        message_id: Text,
        /// Which transaction.
        transaction: TransactionId,
    },
    /// Settled in a transaction: that happens when it is committed.
    SettlementEnlisted {
        /// Which transaction.
        transaction: TransactionId,
    },
    /// A transaction was committed; said in each entity that took part, before what follows from it.
    TransactionCommitted {
        /// Which.
        transaction: TransactionId,
    },
    /// A transaction was rolled back; said in each entity that took part.
    TransactionRolledBack {
        /// Which.
        transaction: TransactionId,
    },
    /// Removed by somebody who deleted messages.
    Deleted,
    /// Somebody holds a session from now on.
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
    /// The lock of a session ended although its holder was still there.
    SessionLockExpired {
        /// Its id.
        session: Text,
    },
    /// The holder of a session went.
    SessionReleased {
        /// Its id.
        session: Text,
    },
    /// The state of a session was set or cleared.
    SessionStateSet {
        /// Its id.
        session: Text,
        /// Bytes of the state; none when it was cleared.
        size: Option<u64>,
    },
    /// The entity was deleted with everything in it.
    EntityDeleted,
    /// Somebody moved the namespace's clock forward.
    ClockAdvanced {
        /// By how many milliseconds.
        milliseconds: u64,
    },
    /// Something went wrong because a test had scripted it.
    Fault {
        /// What.
        fault: Text,
        /// The operation and the effect, in the JSON of the control API; empty where the fault was applied to no operation.
        applied: Text,
        /// The id of the message that the operation is about, where that has no number yet; else empty.
        message_id: Text,
    },
    /// A client asked for something that was refused.
    Refused {
        /// What the client asked for; empty where that is not known.
        operation: Text,
        /// The AMQP error condition.
        condition: Text,
        /// The text that the client was given, tracking id included.
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
    /// Whether it has no characters.
    pub fn is_empty(self) -> bool {
        self.length == 0
    }
}

/// Declares a counter for each kind of event, by the name of the kind and the word for it in timelines.
macro_rules! counters {
    ($($kind:ident $name:literal,)+) => {
        /// What is counted for ever, per store: one for each kind of event.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Counter {
            $(#[doc = concat!("Events called `", $name, "`.")] $kind,)+
        }

        impl Counter {
            /// Every counter.
            pub const ALL: &'static [Self] = &[$(Self::$kind,)+];

            /// The word for it in timelines.
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
    /// Does something to each text of the event.
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
