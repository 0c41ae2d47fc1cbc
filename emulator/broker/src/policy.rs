//! How the stores of an entity differ: the one place that distinguishes a queue from a dead-letter queue.

use std::time::Duration;

use crate::description::EntityDescription;
use crate::ids::SubQueue;
use crate::settings::{Expiry, LocksOnDetach, NamespaceSettings};
use crate::time::Timestamp;

/// The rules of one store. In a dead-letter store no message expires, belongs to a session or has its deliveries counted
/// (semantics §3.3, observed 11, decision D32).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StorePolicy {
    kind: SubQueue,
    lock_duration: Duration,
    max_delivery_count: u32,
    /// Default and maximum of the time to live.
    default_time_to_live: Option<Duration>,
    dead_letters_expired: bool,
    expiry: Expiry,
    locks_on_detach: LocksOnDetach,
    requires_session: bool,
    forwards: bool,
    serves: bool,
}

impl StorePolicy {
    /// Creates the policy of a queue's or subscription's store.
    pub(crate) fn new(
        kind: SubQueue,
        queue: &EntityDescription,
        settings: &NamespaceSettings,
    ) -> Self {
        let target = match kind {
            SubQueue::Active => &queue.forward_to,
            SubQueue::DeadLetter => &queue.forward_dead_lettered_messages_to,
            SubQueue::TransferDeadLetter => &None,
        };
        Self {
            kind,
            lock_duration: queue.lock_duration,
            max_delivery_count: queue.max_delivery_count,
            default_time_to_live: queue.default_message_time_to_live,
            dead_letters_expired: queue.dead_lettering_on_message_expiration,
            expiry: settings.expiry,
            locks_on_detach: settings.locks_on_detach,
            requires_session: queue.requires_session,
            forwards: target.is_some(),
            serves: queue.status.can_receive() && !(kind == SubQueue::Active && target.is_some()),
        }
    }

    /// Returns the policy for a topic, whose messages go on to its subscriptions.
    pub(crate) fn of_topic(self) -> Self {
        Self {
            forwards: self.is_active(),
            ..self
        }
    }

    /// Returns which store this is.
    pub(crate) fn kind(&self) -> SubQueue {
        self.kind
    }

    /// Returns whether this is the active store: its messages expire, and their failed deliveries count.
    pub(crate) fn is_active(&self) -> bool {
        self.kind == SubQueue::Active
    }

    /// Returns whether messages belong to sessions.
    pub(crate) fn has_sessions(&self) -> bool {
        self.is_active() && self.requires_session
    }

    /// Returns whether ready messages are forwarded.
    pub(crate) fn forwards(&self) -> bool {
        self.forwards
    }

    /// Returns whether receivers get ready messages: not while receiving is disabled, and never from an entity that forwards
    /// (semantics §11, §14).
    pub(crate) fn serves(&self) -> bool {
        self.serves
    }

    /// Returns the end of a lock that begins at `now`.
    pub(crate) fn lock_until(&self, now: Timestamp) -> Timestamp {
        now + self.lock_duration
    }

    /// Returns the end of a lock that is renewed at `now`: at least a millisecond later than `before` (observed 16).
    pub(crate) fn renewed_until(&self, now: Timestamp, before: Timestamp) -> Timestamp {
        self.lock_until(now).max(before + Duration::from_millis(1))
    }

    /// Returns the limit of failed deliveries if `delivery_count` has reached it.
    pub(crate) fn exhausted_by(&self, delivery_count: u32) -> Option<u32> {
        let limit = self.max_delivery_count;
        (self.is_active() && delivery_count >= limit).then_some(limit)
    }

    /// Returns the lifetime of a message: its own time to live up to the entity's maximum, or the entity's default
    /// (semantics §4).
    pub(crate) fn lifetime(&self, own: Option<u64>) -> Option<Duration> {
        let own = own.map(Duration::from_millis);
        let lifetime = match (own, self.default_time_to_live) {
            (Some(own), Some(ceiling)) => Some(own.min(ceiling)),
            (own, default) => own.or(default),
        };
        lifetime.filter(|_| self.is_active())
    }

    /// Returns the time to live of messages without one.
    pub(crate) fn default_time_to_live(&self) -> Option<Duration> {
        self.default_time_to_live
    }

    /// Returns whether expired messages are removed without a request (decision D1).
    pub(crate) fn lets_expire(&self, is_awaited: bool) -> bool {
        self.expiry == Expiry::Eager || is_awaited || self.forwards
    }

    /// Returns whether expired messages are dead-lettered instead of dropped.
    pub(crate) fn dead_letters_expired(&self) -> bool {
        self.dead_letters_expired
    }

    /// Returns whether a closed link releases its locks (decision D2).
    pub(crate) fn releases_on_detach(&self) -> bool {
        self.locks_on_detach == LocksOnDetach::Release
    }
}
