//! What an operator sees of the messages of an entity, and does to them by their numbers, without holding their locks.

use std::fmt;

use servicebus_codec::DecodeError;
use thiserror::Error;

use super::dead_letter::DeadLetterCause;
use super::peek::seen;
use super::send::SendError;
use crate::context::Context;
use crate::entity::Entity;
use crate::event::EventKind;
use crate::filter::{Properties, System};
use crate::ids::{Offset, ReceiverId, SequenceNumber, SubQueue};
use crate::message::{BrokerProperties, Message, PropertyChanges};
use crate::store::{Entry, MessageStore};
use crate::time::Timestamp;

/// Where a message is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// It can be received, or is about to be.
    Active,
    /// A receiver holds its lock.
    Locked,
    /// It is set aside until a client asks for its number.
    Deferred,
    /// It becomes active later.
    Scheduled,
    /// It waits to be forwarded.
    Transfer,
}

/// A message with everything that the broker knows of it.
#[derive(Debug, Clone)]
pub struct InspectedMessage {
    /// As on a peeked message.
    pub broker_properties: BrokerProperties,
    /// The message itself.
    pub message: Message,
    /// Where it is in its life.
    pub state: MessageState,
    /// When its time to live ends.
    pub expires_at: Option<Timestamp>,
    /// When it becomes active.
    pub activates_at: Option<Timestamp>,
    /// Who holds its lock, and when that ends.
    pub lock: Option<(ReceiverId, Option<Timestamp>)>,
}

/// What an operator does to a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// It is gone.
    Delete,
    /// It moves to the dead-letter queue.
    DeadLetter {
        /// `DeadLetterReason`.
        reason: Option<String>,
        /// `DeadLetterErrorDescription`.
        description: Option<String>,
    },
    /// Its lock ends as if its time had run out.
    LoseLock,
    /// It is scheduled or deferred, and can be received from now on.
    Activate,
}

/// Why nothing was done to a message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ActError {
    /// It is not there.
    #[error("there is no message {0}")]
    NotFound(SequenceNumber),
    /// It is somewhere else in its life.
    #[error("message {number} is {state}; it must be {allowed}")]
    State {
        /// Which.
        number: SequenceNumber,
        /// Where it is.
        state: MessageState,
        /// Where it would have to be.
        allowed: &'static str,
    },
    /// The lock is that of its session.
    #[error("message {0} is locked by its session, whose lock can be taken away")]
    UnderSession(SequenceNumber),
    /// Only messages of the queue or subscription itself become dead letters.
    #[error("message {0} is a dead letter already")]
    DeadLetter(SequenceNumber),
    /// Its properties cannot be changed.
    #[error("the properties of message {0} cannot be decoded")]
    Undecodable(SequenceNumber),
}

/// Why a message was not sent again; it is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResubmitError {
    /// It cannot be taken from where it is.
    #[error(transparent)]
    Source(#[from] ActError),
    /// It is not accepted where it is to go.
    #[error(transparent)]
    Target(#[from] SendError),
    /// Its id was seen before where it is to go.
    #[error("the message is a duplicate there: it needs another message id")]
    Duplicate,
}

/// Where a message is that is sent again: the place of its entity among those at hand, its store and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Held {
    /// Which of the entities.
    pub entity: usize,
    /// Which of its stores.
    pub kind: SubQueue,
    /// Which message.
    pub number: SequenceNumber,
}

/// Sends `message` to the entity at `target` and removes the one that it takes the place of, or does nothing.
pub fn resubmit(
    entities: &mut [&mut Entity],
    held: Held,
    target: usize,
    message: Message,
    cx: &mut Context<'_>,
) -> Result<SequenceNumber, ResubmitError> {
    let source = &mut entities[held.entity];
    source.handle_timeout(cx);
    source.check_act(held.kind, held.number, &Act::Delete)?;
    let sent = entities[target].send(cx, message)?;
    let sent = sent.ok_or(ResubmitError::Duplicate)?;
    entities[held.entity].act(cx, held.kind, held.number, &Act::Delete)?;
    Ok(sent)
}

impl InspectedMessage {
    /// Its properties as filters see them.
    pub fn filter_view(&self) -> Result<Properties<'_>, DecodeError> {
        let known = &self.broker_properties;
        self.message.filter_view(&System {
            sequence_number: Some(known.sequence_number),
            enqueued_sequence_number: known.enqueued_sequence_number,
            enqueued_at: Some(known.enqueued_at),
            expires_at: self.expires_at,
            locked_until: self.lock.and_then(|(_, until)| until),
            lock_token: None,
            delivery_count: known.delivery_count,
            state: known.state.unwrap_or_default(),
            size: self.message.size(),
            time_to_live: self.expires_at.map(|until| until.since(known.enqueued_at)),
            dead_letter_source: self.message.dead_letter_source(),
            force_persistence: self.message.is_durable(),
        })
    }
}

impl Entity {
    /// The messages from `from` on, or from there back, without the first `skip` of them. It changes nothing.
    pub fn inspect(
        &self,
        kind: SubQueue,
        from: SequenceNumber,
        newest_first: bool,
        skip: usize,
    ) -> impl Iterator<Item = InspectedMessage> {
        let store = self.store(kind);
        let entries: Box<dyn Iterator<Item = (Offset, &Entry)>> = match newest_first {
            false => Box::new(store.from(from.offset())),
            true => Box::new(store.back_from(from.offset())),
        };
        let entries = entries.skip(skip);
        entries.map(|(offset, entry)| store.inspected(offset, entry))
    }

    /// The message of this number.
    pub fn inspect_one(&self, kind: SubQueue, number: SequenceNumber) -> Option<InspectedMessage> {
        let store = self.store(kind);
        let entry = store.numbered(number)?;
        Some(store.inspected(number.offset(), entry))
    }

    /// Does something to the message of this number.
    pub fn act(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        number: SequenceNumber,
        act: &Act,
    ) -> Result<(), ActError> {
        self.verb(cx, |entity, cx| {
            let state = entity.check_act(kind, number, act)?;
            let offset = number.offset();
            match act {
                Act::Delete => {
                    let store = entity.store_mut(kind);
                    store.record(cx, offset, EventKind::Deleted);
                    store.remove(offset);
                }
                Act::DeadLetter {
                    reason,
                    description,
                } => {
                    let cause = DeadLetterCause::Client(reason.clone(), description.clone());
                    let dead = entity.dead_letter(cx, offset, cause, &PropertyChanges::new());
                    dead.map_err(|_| ActError::Undecodable(number))?;
                }
                Act::LoseLock => entity.expire_lock(&mut cx.at(cx.now), kind, offset),
                Act::Activate if state == MessageState::Scheduled => entity.activate(cx, offset),
                Act::Activate => {
                    let store = entity.store_mut(kind);
                    let moved_to = number;
                    store.record(cx, offset, EventKind::Activated { moved_to });
                    store.undefer(offset);
                }
            }
            Ok(())
        })
    }

    /// Where the message is in its life, if this can be done to it.
    fn check_act(
        &self,
        kind: SubQueue,
        number: SequenceNumber,
        act: &Act,
    ) -> Result<MessageState, ActError> {
        use MessageState::{Active, Deferred, Locked, Scheduled, Transfer};
        let store = self.store(kind);
        let entry = store.numbered(number);
        let entry = entry.ok_or(ActError::NotFound(number))?;
        let state = entry.message_state();
        let allowed = match (act, state) {
            (Act::Delete, Locked | Transfer) => Some("neither locked nor about to be forwarded"),
            (Act::DeadLetter { .. }, _) if kind != SubQueue::Active => {
                return Err(ActError::DeadLetter(number));
            }
            (Act::DeadLetter { .. }, Locked | Scheduled | Transfer) => Some("active or deferred"),
            (Act::LoseLock, Locked) if store.policy().has_sessions() => {
                return Err(ActError::UnderSession(number));
            }
            (Act::LoseLock, Active | Deferred | Scheduled | Transfer) => Some("locked"),
            (Act::Activate, Active | Locked | Transfer) => Some("scheduled or deferred"),
            _ => None,
        };
        match allowed {
            None => Ok(state),
            Some(allowed) => Err(ActError::State {
                number,
                state,
                allowed,
            }),
        }
    }
}

impl MessageStore {
    fn numbered(&self, number: SequenceNumber) -> Option<&Entry> {
        let offset = number.offset();
        let entry = self.get(offset);
        entry.filter(|entry| entry.number(offset) == number)
    }

    fn inspected(&self, offset: Offset, entry: &Entry) -> InspectedMessage {
        let lock = entry.lock().map(|lock| {
            // Under a session it is the lock of the session that ends.
            let session = self.sessions().and_then(|sessions| sessions.of(offset));
            let session = session.and_then(|session| session.lock());
            let until = lock.until.get().or_else(|| session.map(|lock| lock.until));
            (session.map_or(lock.receiver, |lock| lock.receiver), until)
        });
        InspectedMessage {
            broker_properties: seen(self.policy(), offset, entry),
            message: entry.message().clone(),
            state: entry.message_state(),
            expires_at: entry.expires_at(),
            activates_at: entry.activates_at(),
            lock,
        }
    }
}

impl MessageState {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Active,
        Self::Locked,
        Self::Deferred,
        Self::Scheduled,
        Self::Transfer,
    ];

    /// What it is called.
    pub fn name(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Locked => "locked",
            Self::Deferred => "deferred",
            Self::Scheduled => "scheduled",
            Self::Transfer => "transfer",
        }
    }
}

impl fmt::Display for MessageState {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
