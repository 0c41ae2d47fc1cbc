//! What can happen in a history: as it is drawn ([`Transition`]), and with real names in it ([`Step`]).
//!
//! A transition names queues, receivers, tokens and messages by an index, so that it still means something after
//! others before it were taken out to shrink the history.

use std::fmt;
use std::rc::Rc;

use bytes::Bytes;
use servicebus_broker::{
    EntityDescription, EntityStatus, NamespaceSettings, ReceiveMode, SubQueue,
};

/// Names of queues; a history has the first few. None is ever called the last.
pub(crate) const NAMES: [&str; 5] = ["a", "b", "c", "d", "x"];

/// Most queues of a history.
pub(crate) const QUEUES: usize = 4;

/// The rules of one history.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) queues: Vec<EntityDescription>,
    pub(crate) settings: NamespaceSettings,
}

/// One of those there are, by a number modulo theirs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pick(pub(crate) u32);

#[derive(Debug, Clone)]
pub(crate) enum Transition {
    /// All at once as a batch, or one by one.
    Send(Pick, Vec<Draft>, bool),
    /// At the messages of a queue with sessions a session is wanted: a certain one, or the next.
    Open(Pick, SubQueue, ReceiveMode, Option<u8>),
    /// Where there are sessions.
    Session(Pick, u8, OfSession),
    Consume(Pick, Consume),
    /// With the token's own store, or with another one.
    Settle(Token, bool, Outcome),
    SettleAll(Vec<Token>, Outcome),
    Renew(Vec<Token>),
    ReceiveDeferred(Vec<Number>, ReceiveMode, Pick),
    Cancel(Vec<Number>),
    /// What is older than so many milliseconds.
    DeleteMessages(Pick, SubQueue, usize, i64),
    Update(Pick, Change),
    LoseLocks(Pick),
    Advance(By),
    Timeout(Pick),
    Browse(Pick, SubQueue, u64, usize),
    Reset(Pick),
    Create(Pick),
    Drop(Pick),
    /// The process ends, and another one goes on with what was kept.
    Restart,
}

/// What a client wants of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) enum OfSession {
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

/// What a receiver does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Consume {
    Credit(u32),
    Take(usize),
    /// Leaves what it would take next to another one.
    Skip,
    Close,
}

/// A message before it is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) id: u8,
    pub(crate) time_to_live: Option<u32>,
    /// Milliseconds until it shall be enqueued.
    pub(crate) delay: Option<i64>,
    pub(crate) session: Option<u8>,
    pub(crate) key: Option<u8>,
    pub(crate) size: Size,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    /// Four of them are more than a queue may hold.
    Large,
    /// As much as still fits, and so many bytes more.
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

/// How far time moves.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    Milliseconds(i64),
    /// Onto the next deadline of a queue, or this many milliseconds off it.
    Deadline(Pick, i64),
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Token {
    /// One that was given out; it may have lost its meaning since.
    Given(Pick),
    /// One of the last few, which are most likely still good.
    Recent(usize),
    /// One that was given out, with one bit changed.
    Forged(Pick, u8),
    /// Any sixteen bytes.
    Garbage(u128),
}

/// A number that a client asks for.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Number {
    /// That of a message in the state that is asked for.
    Known(Pick),
    /// Any, in this queue and partition.
    Any(Pick, u8, u64),
}

/// What becomes of a message, with the properties that are set (all of them texts).
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

/// A transition whose names are known.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Send(usize, Vec<Parcel>, bool),
    /// The receiver selects messages with even ids, or takes all.
    Open(Place, u64, ReceiveMode, bool),
    /// A receiver wants a session, or the next.
    Accept(usize, u64, ReceiveMode, Option<u8>),
    Session(usize, u8, OfSession),
    Close(Place, u64),
    Credit(Place, u64, u32),
    Take(Place, u64, usize),
    Skip(Place, u64),
    Settle(Place, Key, Outcome),
    SettleAll(Place, Vec<Key>, Outcome),
    Renew(Place, Vec<Key>),
    /// Of a session, where there are any.
    ReceiveDeferred(Place, Vec<u64>, ReceiveMode, u64, Option<u8>),
    Cancel(usize, Vec<u64>),
    /// What was enqueued before this instant.
    DeleteMessages(Place, usize, i64),
    Update(usize, Box<EntityDescription>),
    LoseLocks(usize),
    /// Time is now this.
    Advance(i64),
    Timeout(usize),
    Browse(Place, u64, usize),
    Reset(usize),
    Create(usize, Box<EntityDescription>),
    Drop(usize),
    Restart,
}

/// A store of a queue.
pub(crate) type Place = (usize, SubQueue);

/// A message, encoded.
#[derive(Clone)]
pub(crate) struct Parcel {
    pub(crate) draft: Draft,
    pub(crate) payload: Bytes,
}

/// A token by its place among those given out, or one that never was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    Given(usize),
    Forged(usize, u8),
    Garbage(u128),
}

/// What an operation answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Answer {
    Done,
    /// The numbers, or why not.
    Sent(Result<Vec<u64>, String>),
    Messages(Vec<Seen>),
    /// Why not, if not.
    Settled(Option<&'static str>),
    /// The ends of the locks; or the place of the first that is lost, none when the entity is disabled.
    Renewed(Result<Vec<i64>, Option<usize>>),
    Deferred(Result<Vec<Seen>, &'static str>),
    /// What was not scheduled.
    Cancelled(Vec<u64>),
    Deleted(usize),
    /// The session and the end of its lock, if it is there already.
    Accepted(Result<Option<(u8, i64)>, String>),
    /// The new end of a lock, the length of a state, or whether it was held.
    Session(Result<Option<i64>, String>),
    Sessions(Vec<u8>),
}

/// A message as a client sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) number: u64,
    pub(crate) enqueued_number: Option<u64>,
    pub(crate) id: u8,
    pub(crate) size: u64,
    pub(crate) delivery_count: u32,
    pub(crate) enqueued_at: i64,
    pub(crate) time_to_live: Option<u64>,
    pub(crate) locked_until: Option<i64>,
    pub(crate) state: Option<i32>,
    /// Where it was dead-lettered, as far as that was looked at.
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

/// The long ones by their length: they would fill the screen.
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

impl fmt::Debug for Parcel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.draft.fmt(formatter)
    }
}
