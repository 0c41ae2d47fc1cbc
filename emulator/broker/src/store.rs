//! One ordered set of messages: the only place that stores entries.
//!
//! A queue, its dead-letter queue and its transfer dead-letter queue are the same store under different
//! [`crate::StorePolicy`]s. Every index here is derived from `entries`; `invariants.rs` states how.

mod change;
pub(crate) mod changed_entries;
mod enlistments;
mod forwards;
mod indexes;
#[cfg(any(test, feature = "check"))]
mod invariants;
pub(crate) mod receivers;
pub(crate) mod row;
mod selecting;
mod serving;
pub(crate) mod sessions;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::time::Duration;

use crate::context::Context;
use crate::entity::operation::inspect::MessageState;
use crate::event::{Event, EventKind};
use crate::ids::{EntityId, LockNonce, Offset, ReceiverId, SequenceNumber};
use crate::message::Message;
use crate::policy::StorePolicy;
use crate::time::{Deadline, Timestamp};
pub(crate) use change::Due;
use changed_entries::ChangedEntries;
use enlistments::Enlistments;
use forwards::Forwards;
use indexes::{DeadlineIndex, SegmentedMap, SequenceSet};
use receivers::Receivers;
use sessions::{Session, Sessions};

/// Messages in order of arrival, their receivers and their deadlines.
#[derive(Debug)]
pub struct MessageStore {
    entity: EntityId,
    policy: StorePolicy,
    entries: SegmentedMap<Entry>,
    next: Offset,
    /// Messages that can be reserved, in order; with sessions, each session has its own.
    ready: SequenceSet,
    /// Ready messages that came back because a lock ended, with the former holder.
    #[expect(
        clippy::box_collection,
        reason = "an entity has three of them, mostly empty"
    )]
    returned: Option<Box<BTreeMap<Offset, ReceiverId>>>,
    /// When locks end; with sessions, the sessions have the deadlines.
    locks: DeadlineIndex,
    /// When unlocked messages expire.
    expiries: DeadlineIndex,
    /// When scheduled messages become active.
    activations: DeadlineIndex,
    /// Messages that are deferred, locked or not.
    deferred: usize,
    /// Locks that transactions will settle, once there have been any.
    enlistments: Option<Box<Enlistments>>,
    forwards: Forwards,
    receivers: Receivers,
    /// The sessions, if the entity requires them.
    sessions: Option<Box<Sessions>>,
    size: u64,
    /// Touched entries, if changes are stored.
    changed_entries: Option<Box<ChangedEntries>>,
}

impl MessageStore {
    pub(crate) fn new(entity: EntityId, policy: StorePolicy) -> Self {
        Self {
            entity,
            policy,
            entries: SegmentedMap::new(),
            next: Offset(1),
            ready: SequenceSet::new(),
            returned: None,
            locks: DeadlineIndex::new(),
            expiries: DeadlineIndex::new(),
            activations: DeadlineIndex::new(),
            deferred: 0,
            enlistments: None,
            forwards: Forwards::default(),
            receivers: Receivers::default(),
            sessions: policy.has_sessions().then(|| Box::new(Sessions::new())),
            size: 0,
            changed_entries: None,
        }
    }

    /// Returns the number of messages in any state.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is no message.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// Returns the number of locked messages.
    pub fn locked(&self) -> usize {
        let under_sessions = self.sessions.as_ref();
        under_sessions.map_or(self.locks.len(), |sessions| sessions.locked())
    }

    /// Returns the number of deferred messages, locked ones included.
    pub fn deferred(&self) -> usize {
        self.deferred
    }

    /// Returns whether a message is ready, or reserved for a receiver that has not got it yet.
    pub(crate) fn has_ready(&self) -> bool {
        let mut sessions = self.sessions.iter().flat_map(|sessions| sessions.iter());
        self.ready.len() > 0 || self.receivers.has_reserved() || sessions.any(Session::has_ready)
    }

    /// Returns the number of messages that are not active yet.
    pub fn scheduled(&self) -> usize {
        self.activations.len()
    }

    /// Returns the number of messages that wait to be forwarded.
    pub fn forwarding(&self) -> usize {
        self.forwards.len()
    }

    /// Returns the bytes of all messages and session states.
    pub fn size(&self) -> u64 {
        let states = self.sessions.as_ref();
        self.size + states.map_or(0, |sessions| sessions.state_bytes())
    }

    /// Returns whether a receiver waits for messages or for a session, or has not taken its reserved messages.
    pub(crate) fn has_waiting_receiver(&self) -> bool {
        let sessions = self.sessions.as_ref();
        self.receivers.is_active()
            || sessions.is_some_and(|sessions| sessions.has_waiting_receiver())
    }

    pub(crate) fn entity(&self) -> EntityId {
        self.entity
    }

    pub(crate) fn policy(&self) -> &StorePolicy {
        &self.policy
    }

    /// Replaces the policy; nothing is reserved any more.
    pub(crate) fn set_policy(&mut self, policy: StorePolicy) {
        self.policy = policy;
        self.unreserve_all();
    }

    /// Returns the sessions, if the entity requires them.
    pub(crate) fn sessions(&self) -> Option<&Sessions> {
        self.sessions.as_deref()
    }

    pub(crate) fn sessions_mut(&mut self) -> Option<&mut Sessions> {
        self.sessions.as_deref_mut()
    }

    /// Removes all sessions, whose locks must have ended.
    pub(crate) fn drop_sessions(&mut self) {
        self.sessions = None;
    }

    pub(crate) fn get(&self, offset: Offset) -> Option<&Entry> {
        self.entries.get(offset)
    }

    /// Returns the entries from `from` on, in order.
    pub(crate) fn from(&self, from: Offset) -> impl Iterator<Item = (Offset, &Entry)> {
        self.entries.range_from(from)
    }

    /// Returns the entries from `from` back to the first.
    pub(crate) fn back_from(&self, from: Offset) -> impl Iterator<Item = (Offset, &Entry)> {
        self.entries.range_back(from)
    }

    /// Returns all entries, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Offset, &Entry)> {
        self.entries.iter()
    }

    /// Returns the messages whose locks have deadlines, the earliest first.
    pub(crate) fn locks(&self) -> impl Iterator<Item = Offset> {
        self.locks.offsets()
    }

    /// Returns the holders of the locks, a receiver for each locked message.
    pub(crate) fn lock_holders(&self) -> impl Iterator<Item = ReceiverId> {
        let locks = self.locks.offsets();
        let locks = locks.filter_map(|offset| Some(self.entries.get(offset)?.lock()?.receiver));
        let sessions = self.sessions.iter().flat_map(|sessions| sessions.iter());
        let under_sessions = sessions.flat_map(|session| {
            let holder = session.lock().map(|lock| lock.receiver);
            session.locked().iter().filter_map(move |_| holder)
        });
        locks.chain(under_sessions)
    }

    pub(crate) fn next_offset(&self) -> Offset {
        self.next
    }

    /// Records an event of an entry in the store.
    pub(crate) fn record(&self, cx: &mut Context<'_>, offset: Offset, kind: EventKind) {
        let entry = self.entries.get(offset);
        self.record_as(cx, entry.map(|entry| entry.number(offset)), kind);
    }

    /// Records an event of a message by its sequence number, or of none.
    pub(crate) fn record_as(
        &self,
        cx: &mut Context<'_>,
        number: impl Into<Option<SequenceNumber>>,
        kind: EventKind,
    ) {
        cx.events.push(Event::new(
            cx.now,
            (self.entity, self.policy.kind()),
            cx.client,
            number.into(),
            kind,
        ));
    }
}

/// One message with its broker state. Only `state` determines the state of its life cycle.
#[derive(Debug)]
pub(crate) struct Entry {
    message: Message,
    /// When it was accepted; for a scheduled message that has become active, when it did.
    enqueued_at: Timestamp,
    /// Its sequence number where it first entered the namespace.
    enqueued_number: SequenceNumber,
    /// Whether it first entered another entity, with a sequence number of that entity.
    is_moved: bool,
    /// `None` if it does not expire.
    expires_at: Deadline,
    /// The time to live of the publishing topic, in milliseconds, which it does not take along.
    ceiling: Option<NonZeroU64>,
    /// Failed deliveries.
    delivery_count: u32,
    /// How often it was forwarded on its way here.
    hops: u8,
    /// The partition in its sequence number (decision D18).
    partition: u8,
    /// Whether it is not forwarded although its store forwards (decisions D3, D22).
    stays: bool,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// No receiver has it.
    Ready,
    /// Reserved for a receiver with credit that has not taken it yet; no delivery has begun.
    Reserved(ReceiverId),
    /// A receiver holds its lock.
    Locked(Lock),
    /// Deferred until a client asks for its sequence number.
    Deferred,
    /// Not active until this instant.
    Scheduled(Timestamp),
    /// Waits to be forwarded to another entity.
    Forwarding,
}

/// A lock that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lock {
    pub(crate) nonce: LockNonce,
    /// `None` in a session, whose lock ends it.
    pub(crate) until: Deadline,
    /// The receiver that took it; may have detached.
    pub(crate) receiver: ReceiverId,
    /// Whether the message was deferred, and is again when the lock ends.
    pub(crate) deferred: bool,
}

impl Entry {
    /// Creates a ready entry for a message that arrives at `now`, with this sequence number where it first enters.
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

    pub(crate) fn in_partition(self, partition: u8) -> Self {
        Self { partition, ..self }
    }

    /// Marks an entry as forwarded from another entity; from a topic with the topic's time to live.
    pub(crate) fn forwarded(self, hops: u8, ceiling: Option<NonZeroU64>) -> Self {
        Self {
            is_moved: true,
            hops,
            ceiling,
            ..self
        }
    }

    /// Turns the entry into a dead letter.
    pub(crate) fn into_dead_letter(self) -> Self {
        Self {
            state: State::Ready,
            is_moved: true,
            ..self
        }
    }

    /// Turns a scheduled entry into one that becomes active at `now`.
    pub(crate) fn into_active(mut self, now: Timestamp, number: SequenceNumber) -> Self {
        if self.activates_at().is_some_and(|at| at > now) {
            // An operator's doing: an entity to which it is forwarded must not schedule it again.
            self.message.reschedule(now);
        }
        self.message.set_was_scheduled();
        Self {
            enqueued_at: now,
            enqueued_number: number,
            state: State::Ready,
            ..self
        }
    }

    pub(crate) fn message(&self) -> &Message {
        &self.message
    }

    pub(crate) fn into_message(self) -> Message {
        self.message
    }

    pub(crate) fn enqueued_at(&self) -> Timestamp {
        self.enqueued_at
    }

    pub(crate) fn enqueued_number(&self) -> SequenceNumber {
        self.enqueued_number
    }

    pub(crate) fn delivery_count(&self) -> u32 {
        self.delivery_count
    }

    pub(crate) fn hops(&self) -> u8 {
        self.hops
    }

    pub(crate) fn partition(&self) -> u8 {
        self.partition
    }

    /// Returns whether it is neither locked nor reserved nor forwarded.
    pub(crate) fn is_available(&self) -> bool {
        matches!(self.state, State::Ready | State::Deferred)
    }

    /// Returns whether it is deferred and not locked.
    pub(crate) fn is_deferred_unlocked(&self) -> bool {
        self.state == State::Deferred
    }

    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_due(now)
    }

    /// Returns the time to live with which it arrived, in milliseconds: its own up to that of its topic, if any.
    pub(crate) fn time_to_live(&self) -> Option<u64> {
        let own = self.message.time_to_live();
        own.into_iter()
            .chain(self.ceiling.map(NonZeroU64::get))
            .min()
    }

    /// Returns its lifetime by its entity's settings on arrival, or by the current ones if it has no own time to live
    /// (decision D7).
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        let begin = self.activates_at().unwrap_or(self.enqueued_at);
        Some(self.expires_at.get()?.since(begin))
    }

    /// Returns the sequence number of the entry at this offset.
    pub(crate) fn number(&self, offset: Offset) -> SequenceNumber {
        offset.in_partition(self.partition)
    }

    /// Returns its sequence number where it first entered, if that is another entity.
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

    /// Returns its state as operators see it.
    pub(crate) fn message_state(&self) -> MessageState {
        match self.state {
            State::Ready | State::Reserved(_) => MessageState::Active,
            State::Locked(_) => MessageState::Locked,
            State::Deferred => MessageState::Deferred,
            State::Scheduled(_) => MessageState::Scheduled,
            State::Forwarding => MessageState::Transfer,
        }
    }

    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at.get()
    }

    pub(crate) fn is_deferred(&self) -> bool {
        self.state == State::Deferred || self.lock().is_some_and(|lock| lock.deferred)
    }

    /// Returns when it becomes active, if it is scheduled.
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

    /// Returns whether a deadline removes it when it expires: not while it is locked, and never if it is deferred or
    /// scheduled (decision D9).
    fn can_expire(&self) -> bool {
        matches!(
            self.state,
            State::Ready | State::Reserved(_) | State::Forwarding
        ) && self.expires_at != Deadline::NONE
    }
}
