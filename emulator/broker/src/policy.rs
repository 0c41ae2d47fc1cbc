//! How the stores of an entity differ: the one place that tells a queue from a dead-letter queue.

use std::time::Duration;

use crate::description::EntityDescription;
use crate::ids::SubQueue;
use crate::settings::{Expiry, LocksOnDetach, NamespaceSettings};
use crate::time::Timestamp;

/// The rules of one store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StorePolicy {
    /// Which store this is.
    pub kind: SubQueue,
    /// How long a lock lasts from take or renewal.
    pub lock_duration: Duration,
    /// Failed deliveries that dead-letter a message; none in a dead-letter store.
    pub max_delivery_count: Option<u32>,
    /// Default and ceiling of the time to live.
    pub default_time_to_live: Option<Duration>,
    /// Whether messages expire at all; not in a dead-letter store (semantics §3.3).
    pub expires: bool,
    /// Whether what expires is dead-lettered rather than dropped.
    pub dead_letters_expired: bool,
    /// When what has expired leaves (decision D1).
    pub expiry: Expiry,
    /// What a closed link does to its locks (decision D2).
    pub locks_on_detach: LocksOnDetach,
    /// Whether deliveries that were abandoned or deferred are counted; not in a dead-letter store (observed 11).
    pub counts_deliveries: bool,
    /// Whether the end of a lock counts as a failed delivery; not in a dead-letter store (decision D32).
    pub counts_lock_expiry: bool,
    /// Whether its messages belong to sessions; not in a dead-letter store (semantics §3.3).
    pub has_sessions: bool,
    /// Whether what is ready goes on to another entity.
    pub forwards: bool,
    /// Whether receivers are handed what is ready: not while receiving is disabled, and never from an entity
    /// that forwards (semantics §11, §14).
    pub serves: bool,
}

impl StorePolicy {
    /// The rules of a queue's or subscription's store of this kind.
    pub fn new(kind: SubQueue, queue: &EntityDescription, settings: &NamespaceSettings) -> Self {
        let active = kind == SubQueue::Active;
        let target = match kind {
            SubQueue::Active => &queue.forward_to,
            SubQueue::DeadLetter => &queue.forward_dead_lettered_messages_to,
            SubQueue::TransferDeadLetter => &None,
        };
        Self {
            kind,
            lock_duration: queue.lock_duration,
            max_delivery_count: active.then_some(queue.max_delivery_count),
            default_time_to_live: queue.default_message_time_to_live.filter(|_| active),
            expires: active,
            dead_letters_expired: queue.dead_lettering_on_message_expiration,
            expiry: settings.expiry,
            locks_on_detach: settings.locks_on_detach,
            counts_deliveries: active,
            counts_lock_expiry: active,
            has_sessions: active && queue.requires_session,
            forwards: target.is_some(),
            serves: queue.status.can_receive() && !(active && target.is_some()),
        }
    }

    /// When a lock ends that begins at `now`.
    pub(crate) fn lock_until(&self, now: Timestamp) -> Timestamp {
        now + self.lock_duration
    }

    /// When a lock ends that is renewed at `now`: at least a millisecond later than `before` (observed 16).
    pub(crate) fn renewed_until(&self, now: Timestamp, before: Timestamp) -> Timestamp {
        self.lock_until(now).max(before + Duration::from_millis(1))
    }

    /// The same at a topic, where nothing can be received but what could not be forwarded.
    pub(crate) fn of_topic(self) -> Self {
        let active = self.kind == SubQueue::Active;
        Self {
            forwards: active,
            serves: self.serves && self.kind == SubQueue::TransferDeadLetter,
            ..self
        }
    }
}
