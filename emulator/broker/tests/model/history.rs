//! The steps of a history: as drawn ([`Transition`]), and with resolved names ([`Step`]).
//!
//! A transition names queues, receivers, tokens and messages by an index, so that it stays meaningful after earlier ones
//! were removed to shrink the history.

use std::fmt;
use std::rc::Rc;

use bytes::Bytes;
use servicebus_broker::{
    EntityDescription, EntityStatus, NamespaceSettings, ReceiveMode, SubQueue,
};

/// Names of queues; a history has the first few. No queue has the last name.
pub(crate) const NAMES: [&str; 5] = ["a", "b", "c", "d", "x"];

/// Most queues of a history.
pub(crate) const QUEUES: usize = 4;

/// The settings of one history.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) queues: Vec<EntityDescription>,
    pub(crate) settings: NamespaceSettings,
}

/// An existing item, by a number modulo their count.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pick(pub(crate) u32);

#[derive(Debug, Clone)]
pub(crate) enum Transition {
    /// All at once as a batch, or one by one.
    Send(Pick, Vec<Draft>, bool),
    /// In a store with sessions, a session is accepted: a named one, or the next.
    Open(Pick, SubQueue, ReceiveMode, Option<u8>),
    /// Where there are sessions.
    Session(Pick, u8, SessionUse),
    Consume(Pick, Consume),
    /// With the token's own store, or with another one.
    Settle(Token, bool, Outcome),
    SettleAll(Vec<Token>, Outcome),
    Renew(Vec<Token>),
    ReceiveDeferred(Vec<Number>, ReceiveMode, Pick),
    Cancel(Vec<Number>),
    /// Messages older than so many milliseconds.
    DeleteMessages(Pick, SubQueue, usize, i64),
    Update(Pick, Change),
    LoseLocks(Pick),
    Advance(TimeStep),
    Timeout(Pick),
    Browse(Pick, SubQueue, u64, usize),
    Reset(Pick),
    Create(Pick),
    Drop(Pick),
    /// The process ends, and another one continues from the stored state.
    Restart,
}

/// What a client wants of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SessionUse {
    Renew,
    Lose,
    State,
    /// To so many bytes, or to none.
    SetState(Option<usize>),
    /// Those with messages, or those whose state was set at most so many milliseconds ago.
    List(Option<i64>, usize, usize),
    Browse(u64, usize),
    Delete(usize),
}

/// The action of a receiver.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Consume {
    Credit(u32),
    Take(usize),
    /// Gives what it would take next to another one.
    Skip,
    Close,
}

/// A message before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) id: u8,
    pub(crate) time_to_live: Option<u32>,
    /// Milliseconds until it becomes active.
    pub(crate) delay: Option<i64>,
    pub(crate) session: Option<u8>,
    pub(crate) key: Option<u8>,
    pub(crate) size: Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    /// Four of them exceed the size of a queue.
    Large,
    /// The remaining size, and so many bytes more.
    Filling(u8),
}

/// What an update changes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Nothing,
    Status(EntityStatus),
    LockSeconds(u64),
    MaxDeliveryCount(u32),
    TimeToLiveSeconds(Option<u64>),
    DeadLettersExpired(bool),
    WindowSeconds(u64),
    ForwardTo(Option<usize>),
    ForwardDeadLetters(Option<usize>),
    IdleSeconds(Option<u64>),
}

/// How far time advances.
#[derive(Debug, Clone, Copy)]
pub(crate) enum TimeStep {
    Milliseconds(i64),
    /// Onto the next deadline of a queue, or this many milliseconds off it.
    Deadline(Pick, i64),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Token {
    /// An issued token, which may be invalid by now.
    Given(Pick),
    /// One of the last few, which are most likely valid.
    Recent(usize),
    /// An issued token with one bit changed.
    Forged(Pick, u8),
    /// Any sixteen bytes.
    Garbage(u128),
}

/// A sequence number in a request.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    /// That of a message in the state that is asked for.
    Known(Pick),
    /// Any, in this queue and partition.
    Any(Pick, u8, u64),
}

/// The outcome of a message, with the properties that are set (all of them texts).
#[derive(Debug, Clone)]
pub(crate) enum Outcome {
    Complete,
    Abandon(Properties),
    Release,
    Defer(Properties),
    DeadLetter(Option<&'static str>, Option<&'static str>, Properties),
}

/// Texts by name.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Properties(pub(crate) Vec<(&'static str, Rc<str>)>);

/// A transition with resolved names.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(usize, Vec<EncodedMessage>, bool),
    /// The receiver selects messages with even ids, or takes all.
    Open(StoreAddress, u64, ReceiveMode, bool),
    /// A receiver wants a session, or the next.
    Accept(usize, u64, ReceiveMode, Option<u8>),
    Session(usize, u8, SessionUse),
    Close(StoreAddress, u64),
    Credit(StoreAddress, u64, u32),
    Take(StoreAddress, u64, usize),
    Skip(StoreAddress, u64),
    Settle(StoreAddress, Key, Outcome),
    SettleAll(StoreAddress, Vec<Key>, Outcome),
    Renew(StoreAddress, Vec<Key>),
    /// Of a session, where there are any.
    ReceiveDeferred(StoreAddress, Vec<u64>, ReceiveMode, u64, Option<u8>),
    Cancel(usize, Vec<u64>),
    /// What was enqueued before this instant.
    DeleteMessages(StoreAddress, usize, i64),
    Update(usize, Box<EntityDescription>),
    LoseLocks(usize),
    /// Time is now this.
    Advance(i64),
    Timeout(usize),
    Browse(StoreAddress, u64, usize),
    Reset(usize),
    Create(usize, Box<EntityDescription>),
    Drop(usize),
    Restart,
}

/// A store of a queue.
pub(crate) type StoreAddress = (usize, SubQueue);

/// A message, encoded.
#[derive(Clone)]
pub(crate) struct EncodedMessage {
    pub(crate) draft: Draft,
    pub(crate) payload: Bytes,
}

/// A token by its position among the issued ones, or one that was never issued.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Given(usize),
    Forged(usize, u8),
    Garbage(u128),
}

/// The result of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    /// The sequence numbers, or the error.
    Sent(Result<Vec<u64>, String>),
    Messages(Vec<ObservedMessage>),
    /// The error, if any.
    Settled(Option<&'static str>),
    /// The ends of the locks; or the index of the first lost one, `None` if the entity is disabled.
    Renewed(Result<Vec<i64>, Option<usize>>),
    Deferred(Result<Vec<ObservedMessage>, &'static str>),
    /// What was not scheduled.
    Cancelled(Vec<u64>),
    Deleted(usize),
    /// The session and the end of its lock, if it is granted already.
    Accepted(Result<Option<(u8, i64)>, String>),
    /// The new end of a lock, the length of a state, or whether it was held.
    Session(Result<Option<i64>, String>),
    Sessions(Vec<u8>),
}

/// A message as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ObservedMessage {
    pub(crate) number: u64,
    pub(crate) enqueued_number: Option<u64>,
    pub(crate) id: u8,
    pub(crate) size: u64,
    pub(crate) delivery_count: u32,
    pub(crate) enqueued_at: i64,
    pub(crate) time_to_live: Option<u64>,
    pub(crate) locked_until: Option<i64>,
    pub(crate) state: Option<i32>,
    /// Where it was dead-lettered, if that was compared.
    pub(crate) source: Option<usize>,
    pub(crate) properties: Properties,
}

impl Pick {
    pub(crate) fn of<T>(self, all: &[T]) -> Option<&T> {
        let length = u64::try_from(all.len()).ok()?;
        all.get(((u64::from(self.0) * length) >> 32) as usize)
    }
}

impl Properties {
    pub(crate) fn set(&mut self, name: &'static str, text: Rc<str>) {
        match self.0.binary_search_by_key(&name, |(name, _)| name) {
            Ok(at) => self.0[at].1 = text,
            Err(at) => self.0.insert(at, (name, text)),
        }
    }
}

/// Prints long texts by their length, since they would fill the screen.
impl fmt::Debug for Properties {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut map = formatter.debug_map();
        for (name, text) in &self.0 {
            match text.len() {
                0..200 => map.entry(name, text),
                length => map.entry(name, &format_args!("[{length} bytes]")),
            };
        }
        map.finish()
    }
}

impl fmt::Debug for EncodedMessage {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.draft.fmt(formatter)
    }
}
