//! One ordered set of messages: the only place where entries live.
//!
//! A queue, its dead-letter queue and its transfer dead-letter queue are the same store under different
//! [`crate::StorePolicy`]s. Every index here says something about `entries`; `invariants.rs` states what.

mod change;
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
pub(crate) mod touched;

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
use enlistments::Enlistments;
use forwards::Forwards;
use indexes::{DeadlineIndex, SegmentedMap, SequenceSet};
use receivers::Receivers;
use sessions::Sessions;
use touched::Touched;

/// Messages in order of arrival, who may take them, and what time will do to them.
#[derive(Debug)]
pub struct MessageStore {
    entity: EntityId,
    policy: StorePolicy,
    entries: SegmentedMap<Entry>,
    next: Offset,
    /// Those that can be reserved, first come first; where there are sessions, each has its own.
    ready: SequenceSet,
    /// Of those, the ones that came back because a lock ended, and whose it was.
    #[expect(
        clippy::box_collection,
        reason = "an entity has three of them, mostly empty"
    )]
    returned: Option<Box<BTreeMap<Offset, ReceiverId>>>,
    /// When locks end; where there are sessions, those of the sessions do.
    locks: DeadlineIndex,
    /// When unlocked messages expire.
    expiries: DeadlineIndex,
    /// When scheduled messages become active.
    activations: DeadlineIndex,
    /// Messages that are deferred, locked or not.
    deferred: usize,
    /// Where a transaction has ever been to settle a lock.
    enlistments: Option<Box<Enlistments>>,
    forwards: Forwards,
    receivers: Receivers,
    /// Where messages belong to sessions.
    sessions: Option<Box<Sessions>>,
    size: u64,
    /// Where changes are kept beyond the process.
    touched: Option<Box<Touched>>,
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
            touched: None,
        }
    }

    /// Messages held, in any state.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether no message is held.
    pub fn is_empty(&self) -> bool {
        self.entries.len() == 0
    }

    /// Messages under a lock.
    pub fn locked(&self) -> usize {
        let under_sessions = self.sessions.as_ref();
        under_sessions.map_or(self.locks.len(), |sessions| sessions.locked())
    }

    /// Messages set aside, those under a lock included.
    pub fn deferred(&self) -> usize {
        self.deferred
    }

    /// Messages that are not active yet.
    pub fn scheduled(&self) -> usize {
        self.activations.len()
    }

    /// Messages on their way to another entity.
    pub fn forwarding(&self) -> usize {
        self.forwards.len()
    }

    /// Bytes of all messages held, and of the states of sessions.
    pub fn size(&self) -> u64 {
        let states = self.sessions.as_ref();
        self.size + states.map_or(0, |sessions| sessions.state_bytes())
    }

    /// Whether a receiver waits for messages or for a session, or has yet to take what is reserved.
    pub(crate) fn is_awaited(&self) -> bool {
        let sessions = self.sessions.as_ref();
        self.receivers.is_active() || sessions.is_some_and(|sessions| sessions.is_awaited())
    }

    /// Whose messages these are.
    pub(crate) fn entity(&self) -> EntityId {
        self.entity
    }

    /// Its rules.
    pub(crate) fn policy(&self) -> &StorePolicy {
        &self.policy
    }

    /// Goes by other rules from now on; nothing is reserved any more.
    pub(crate) fn set_policy(&mut self, policy: StorePolicy) {
        self.policy = policy;
        self.unreserve_all();
    }

    /// The sessions, where messages belong to sessions.
    pub(crate) fn sessions(&self) -> Option<&Sessions> {
        self.sessions.as_deref()
    }

    pub(crate) fn sessions_mut(&mut self) -> Option<&mut Sessions> {
        self.sessions.as_deref_mut()
    }

    /// Forgets all sessions, whose locks must be over.
    pub(crate) fn drop_sessions(&mut self) {
        self.sessions = None;
    }

    /// An entry by where it stands.
    pub(crate) fn get(&self, offset: Offset) -> Option<&Entry> {
        self.entries.get(offset)
    }

    /// The entries from `from` on, in order.
    pub(crate) fn from(&self, from: Offset) -> impl Iterator<Item = (Offset, &Entry)> {
        self.entries.range_from(from)
    }

    /// The entries from `from` back to the first.
    pub(crate) fn back_from(&self, from: Offset) -> impl Iterator<Item = (Offset, &Entry)> {
        self.entries.range_back(from)
    }

    /// Every entry, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Offset, &Entry)> {
        self.entries.iter()
    }

    /// The messages under locks that end by themselves, those that end first first.
    pub(crate) fn locks(&self) -> impl Iterator<Item = Offset> {
        self.locks.offsets()
    }

    /// Who holds the locks, a receiver for each locked message.
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

    /// Where the next message will stand.
    pub(crate) fn next_offset(&self) -> Offset {
        self.next
    }

    /// Records what happened to an entry that is here.
    pub(crate) fn record(&self, cx: &mut Context<'_>, offset: Offset, kind: EventKind) {
        let entry = self.entries.get(offset);
        self.record_as(cx, entry.map(|entry| entry.number(offset)), kind);
    }

    /// Records what happened to a message by its number, or to none.
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

/// One message with what the broker knows about it. Where it stands in its life is `state` and nothing else.
#[derive(Debug)]
pub(crate) struct Entry {
    message: Message,
    /// When it was accepted; for a scheduled message that has become active, when it did.
    enqueued_at: Timestamp,
    /// Its number where it first entered the namespace.
    enqueued_number: SequenceNumber,
    /// Whether it first entered elsewhere, under a number of that place.
    is_moved: bool,
    /// None when it does not expire.
    expires_at: Deadline,
    /// The time to live of the topic that it was published by, in milliseconds, which it does not take along.
    ceiling: Option<NonZeroU64>,
    /// Deliveries that failed.
    delivery_count: u32,
    /// How often it was forwarded on its way here.
    hops: u8,
    /// Which partition its number shows (decision D18).
    partition: u8,
    /// Whether it is not forwarded although its store forwards (decisions D3, D22).
    stays: bool,
    state: State,
}

/// Where an entry is, or who has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
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

    pub(crate) fn in_partition(self, partition: u8) -> Self {
        Self { partition, ..self }
    }

    /// The same of one that comes from another entity; from a topic under its time to live.
    pub(crate) fn forwarded(self, hops: u8, ceiling: Option<NonZeroU64>) -> Self {
        Self {
            is_moved: true,
            hops,
            ceiling,
            ..self
        }
    }

    /// The same as a dead letter.
    pub(crate) fn into_dead_letter(self) -> Self {
        Self {
            state: State::Ready,
            is_moved: true,
            ..self
        }
    }

    /// The same of one that was scheduled and becomes active at `now`.
    pub(crate) fn into_active(mut self, now: Timestamp, number: SequenceNumber) -> Self {
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

    /// Whether no receiver has it or is to have it, and it goes nowhere.
    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.state, State::Ready | State::Deferred)
    }

    /// Whether it was deferred and is not locked.
    pub(crate) fn is_set_aside(&self) -> bool {
        self.state == State::Deferred
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

    /// How long it lives by what its entity said when it came, or by what that says now if it brought nothing (decision D7).
    pub(crate) fn lifetime(&self) -> Option<Duration> {
        let begin = self.activates_at().unwrap_or(self.enqueued_at);
        Some(self.expires_at.get()?.since(begin))
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

    /// Where it is in its life, as operators see it.
    pub(crate) fn message_state(&self) -> MessageState {
        match self.state {
            State::Ready | State::Reserved(_) => MessageState::Active,
            State::Locked(_) => MessageState::Locked,
            State::Deferred => MessageState::Deferred,
            State::Scheduled(_) => MessageState::Scheduled,
            State::Forwarding => MessageState::Transfer,
        }
    }

    /// When its time to live ends.
    pub(crate) fn expires_at(&self) -> Option<Timestamp> {
        self.expires_at.get()
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
    fn can_expire(&self) -> bool {
        matches!(
            self.state,
            State::Ready | State::Reserved(_) | State::Forwarding
        ) && self.expires_at != Deadline::NONE
    }
}
