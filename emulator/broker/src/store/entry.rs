//! A message at rest.

use std::num::NonZeroU64;

use crate::ids::{LockNonce, Offset, ReceiverId, SequenceNumber};
use crate::message::Message;
use crate::time::{Deadline, Timestamp};

/// One message with what the broker knows about it. Where it stands in its life is `state` and nothing else.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) message: Message,
    /// When it was accepted; for a scheduled message that has become active, when it did.
    pub(crate) enqueued_at: Timestamp,
    /// Its number where it first entered the namespace.
    pub(crate) enqueued_number: SequenceNumber,
    /// Whether it first entered elsewhere, under a number of that place.
    pub(crate) is_moved: bool,
    /// None when it does not expire.
    pub(crate) expires_at: Deadline,
    /// The time to live of the topic that it was published by, in milliseconds, which it does not take along.
    pub(crate) ceiling: Option<NonZeroU64>,
    /// Deliveries that failed.
    pub(crate) delivery_count: u32,
    /// How often it was forwarded on its way here.
    pub(crate) hops: u8,
    /// Which partition its number shows (decision D18).
    pub(crate) partition: u8,
    /// Whether it is not forwarded although its store forwards (decisions D3, D22).
    pub(crate) stays: bool,
    pub(crate) state: State,
}

/// Where an entry is, or who has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// No receiver has it.
    Ready,
    /// A receiver with credit for it has yet to take it; nothing has begun.
    Reserved(ReceiverId),
    /// A receiver holds the token.
    Locked(Lock),
    /// Set aside until a client asks for its number.
    Deferred,
    /// Not there yet.
    Scheduled(Timestamp),
    /// On its way to another entity.
    Forwarding,
}

/// A lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) nonce: LockNonce,
    /// None under a session, whose lock ends it.
    pub(crate) until: Deadline,
    /// Who took it; may be gone by now.
    pub(crate) receiver: ReceiverId,
    /// Whether the message was deferred, and is again when the lock ends.
    pub(crate) deferred: bool,
}

impl Entry {
    /// A message as it comes in at `now`, ready, under this number where it first enters.
    pub(crate) fn new(message: Message, now: Timestamp, number: SequenceNumber) -> Self {
        Self {
            message,
            enqueued_at: now,
            enqueued_number: number,
            is_moved: false,
            expires_at: Deadline::NONE,
            delivery_count: 0,
            hops: 0,
            partition: 0,
            ceiling: None,
            stays: false,
            state: State::Ready,
        }
    }

    /// Whether its time has passed at `now`.
    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.has_come(now)
    }

    /// The time to live that it brought here in milliseconds: its own under that of its topic, if either is there.
    pub(crate) fn time_to_live(&self) -> Option<u64> {
        let own = self.message.time_to_live();
        own.into_iter()
            .chain(self.ceiling.map(NonZeroU64::get))
            .min()
    }

    /// The number of the entry at this offset.
    pub(crate) fn number(&self, offset: Offset) -> SequenceNumber {
        offset.in_partition(self.partition)
    }

    /// Its number where it first entered, if that is elsewhere.
    pub(crate) fn number_of_origin(&self) -> Option<SequenceNumber> {
        self.is_moved.then_some(self.enqueued_number)
    }

    pub(crate) fn lock(&self) -> Option<&Lock> {
        match &self.state {
            State::Locked(lock) => Some(lock),
            State::Ready
            | State::Reserved(_)
            | State::Deferred
            | State::Scheduled(_)
            | State::Forwarding => None,
        }
    }

    pub(crate) fn is_deferred(&self) -> bool {
        self.state == State::Deferred || self.lock().is_some_and(|lock| lock.deferred)
    }

    /// When it will become active, if it is not yet.
    pub(crate) fn activates_at(&self) -> Option<Timestamp> {
        match self.state {
            State::Scheduled(at) => Some(at),
            State::Ready
            | State::Reserved(_)
            | State::Locked(_)
            | State::Deferred
            | State::Forwarding => None,
        }
    }

    /// Whether time takes it away when it expires: not while it is locked, and a deferred or scheduled message
    /// never in the background (decision D9).
    pub(crate) fn can_expire(&self) -> bool {
        matches!(
            self.state,
            State::Ready | State::Reserved(_) | State::Forwarding
        ) && self.expires_at != Deadline::NONE
    }
}
