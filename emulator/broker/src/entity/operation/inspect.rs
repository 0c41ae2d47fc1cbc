//! Inspection of an entity's messages by an operator, and actions on them by sequence number without holding their locks.

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

/// The state of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// It can be received, now or soon.
    Active,
    /// A receiver holds its lock.
    Locked,
    /// Deferred until a client asks for its sequence number.
    Deferred,
    /// It becomes active later.
    Scheduled,
    /// It waits to be forwarded.
    Transfer,
}

/// A message with all its state.
#[derive(Debug, Clone)]
pub struct InspectedMessage {
    /// The broker properties of a peeked message.
    pub broker_properties: BrokerProperties,
    /// The message.
    pub message: Message,
    /// Its state.
    pub state: MessageState,
    /// When its time to live ends.
    pub expires_at: Option<Timestamp>,
    /// When it becomes active.
    pub activates_at: Option<Timestamp>,
    /// The holder of its lock, and the lock's end.
    pub lock: Option<(ReceiverId, Option<Timestamp>)>,
}

/// An action of an operator on a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageAction {
    /// Delete it.
    Delete,
    /// Move it to the dead-letter queue.
    DeadLetter {
        /// `DeadLetterReason`.
        reason: Option<String>,
        /// `DeadLetterErrorDescription`.
        description: Option<String>,
    },
    /// End its lock as if the lock's time were over.
    LoseLock,
    /// Make a scheduled or deferred message active.
    Activate,
}

/// Why an action on a message failed.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageActionError {
    /// There is no such message.
    #[error("there is no message {}", .0.0)]
    NotFound(SequenceNumber),
    /// The message is in another state.
    #[error("message {number} is {state}; it must be {allowed}")]
    State {
        /// Its sequence number.
        number: SequenceNumber,
        /// Its state.
        state: MessageState,
        /// The states in which the action is possible.
        allowed: &'static str,
    },
    /// The message has no lock but that of its session.
    #[error("message {0} is locked by its session, whose lock can be taken away")]
    UnderSession(SequenceNumber),
    /// Only messages of the queue or subscription itself can be dead-lettered.
    #[error("message {0} is a dead letter already")]
    DeadLetter(SequenceNumber),
    /// Its properties cannot be changed.
    #[error("the properties of message {0} cannot be decoded")]
    Undecodable(SequenceNumber),
}

/// Why a message was not resubmitted; it is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ResubmitError {
    /// It cannot be removed from its store.
    #[error(transparent)]
    Source(#[from] MessageActionError),
    /// The target does not accept it.
    #[error(transparent)]
    Target(#[from] SendError),
    /// Its id is a duplicate at the target.
    #[error("the message is a duplicate there: it needs another message id")]
    Duplicate,
}

/// The location of a message to resubmit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageLocation {
    /// The index of its entity in the given entities.
    pub entity: usize,
    /// The store.
    pub kind: SubQueue,
    /// Its sequence number.
    pub number: SequenceNumber,
}

/// Sends `message` to the entity at index `target` and removes the one that it replaces, or does nothing.
pub fn resubmit(
    entities: &mut [&mut Entity],
    held: MessageLocation,
    target: usize,
    message: Message,
    cx: &mut Context<'_>,
) -> Result<SequenceNumber, ResubmitError> {
    let source = &mut entities[held.entity];
    source.handle_timeout(cx);
    source.check_action(held.kind, held.number, &MessageAction::Delete)?;
    let sent = entities[target].send(cx, message)?;
    let sent = sent.ok_or(ResubmitError::Duplicate)?;
    entities[held.entity].apply_action(cx, held.kind, held.number, &MessageAction::Delete)?;
    Ok(sent)
}

impl InspectedMessage {
    /// Returns its properties as filters see them.
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
    /// Returns messages from `from` on, or from there backwards, without the first `skip` of them. Changes nothing.
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

    /// Returns the message with this sequence number.
    pub fn inspect_one(&self, kind: SubQueue, number: SequenceNumber) -> Option<InspectedMessage> {
        let store = self.store(kind);
        let entry = store.numbered(number)?;
        Some(store.inspected(number.offset(), entry))
    }

    /// Performs an action on the message with this sequence number.
    pub fn apply_action(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        number: SequenceNumber,
        act: &MessageAction,
    ) -> Result<(), MessageActionError> {
        self.client_operation(cx, |entity, cx| {
            let state = entity.check_action(kind, number, act)?;
            let offset = number.offset();
            match act {
                MessageAction::Delete => {
                    if state == MessageState::Scheduled {
                        entity.restart_duplicate_window(offset, None);
                    }
                    let store = entity.store_mut(kind);
                    store.record(cx, offset, EventKind::Deleted);
                    store.remove(offset);
                }
                MessageAction::DeadLetter {
                    reason,
                    description,
                } => {
                    let cause = DeadLetterCause::Client(reason.clone(), description.clone());
                    let dead = entity.dead_letter(cx, offset, cause, &PropertyChanges::new());
                    dead.map_err(|_| MessageActionError::Undecodable(number))?;
                }
                MessageAction::LoseLock => entity.expire_lock(&mut cx.at(cx.now), kind, offset),
                MessageAction::Activate if state == MessageState::Scheduled => {
                    entity.restart_duplicate_window(offset, Some(cx.now));
                    entity.activate(cx, offset)
                }
                MessageAction::Activate => {
                    let store = entity.store_mut(kind);
                    let moved_to = number;
                    store.record(cx, offset, EventKind::Activated { moved_to });
                    store.undefer(offset);
                }
            }
            Ok(())
        })
    }

    /// Returns the offset of the message if its state allows the action.
    fn check_action(
        &self,
        kind: SubQueue,
        number: SequenceNumber,
        act: &MessageAction,
    ) -> Result<MessageState, MessageActionError> {
        use MessageState::{Active, Deferred, Locked, Scheduled, Transfer};
        let store = self.store(kind);
        let entry = store.numbered(number);
        let entry = entry.ok_or(MessageActionError::NotFound(number))?;
        let state = entry.message_state();
        let allowed = match (act, state) {
            (MessageAction::Delete, Locked | Transfer) => {
                Some("neither locked nor about to be forwarded")
            }
            (MessageAction::DeadLetter { .. }, _) if kind != SubQueue::Active => {
                return Err(MessageActionError::DeadLetter(number));
            }
            (MessageAction::DeadLetter { .. }, Locked | Scheduled | Transfer) => {
                Some("active or deferred")
            }
            (MessageAction::LoseLock, Locked) if store.policy().has_sessions() => {
                return Err(MessageActionError::UnderSession(number));
            }
            (MessageAction::LoseLock, Active | Deferred | Scheduled | Transfer) => Some("locked"),
            (MessageAction::Activate, Active | Locked | Transfer) => Some("scheduled or deferred"),
            _ => None,
        };
        match allowed {
            None => Ok(state),
            Some(allowed) => Err(MessageActionError::State {
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
            // The message's lock is that of its session.
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
    /// All states.
    pub const ALL: [Self; 5] = [
        Self::Active,
        Self::Locked,
        Self::Deferred,
        Self::Scheduled,
        Self::Transfer,
    ];

    /// Returns its name.
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
