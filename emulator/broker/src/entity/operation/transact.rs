//! Work is enlisted in a transaction, and happens when that is committed (semantics §12).
//!
//! A transaction is a value in the hands of the connection that declared it. Verbs of [`Entity`] enlist work in it, in the
//! order in which it will happen; [`commit`](crate::commit) lets it happen. Entities know of it only which locks it is to
//! settle, so that one that is dropped leaves nothing behind but locks that come free when its time is over.
//!
//! All that can be wrong with an operation is found when it comes; what may change until the commit is looked at
//! again there. An operation that fails leaves the transaction as it was.

pub(crate) mod commit;
mod send;
mod settle;

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;

use super::send::SendError;
use super::settle::{Outcome, SettleError};
use crate::entity::Entity;
use crate::ids::{
    EntityId, EntityPath, IdSource, LockToken, Offset, SequenceNumber, SubQueue, TransactionId,
};
use crate::message::Message;
use crate::size_in_use::Reservation;
use crate::time::Timestamp;

/// Most messages that may be sent or scheduled in one transaction (semantics §1).
pub(crate) const MAX_MESSAGES: usize = 100;

/// How long a transaction may last from its first operation (semantics §12).
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Why something was not enlisted; the transaction is as it was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransactError {
    /// It has lasted too long, and will never be committed.
    #[error(
        "The transaction {0} was aborted: it did not complete within {limit} seconds of its first operation.",
        limit = TIME_LIMIT.as_secs()
    )]
    TimedOut(TransactionId),
    /// It works on another queue or topic (semantics §20.2).
    #[error(
        "Local transactions cannot span multiple top-level entities such as queue or topic. The transaction \
         works on '{first}'; '{second}' is another."
    )]
    SecondEntity {
        /// Where the transaction works.
        first: EntityPath,
        /// Where it was asked to work too.
        second: EntityPath,
    },
    /// It works on another partition (semantics §15, §20.2).
    #[error(
        "Local transactions cannot span multiple entities or partitions. The transaction works on the \
         partition {first}; the partition {second} is another."
    )]
    SecondPartition {
        /// Where the transaction works: a key, or the number of a partition.
        first: String,
        /// Where it was asked to work too.
        second: String,
    },
    /// It would have more messages than it may (semantics §1, §20.2).
    #[error(
        "Can't send more than {MAX_MESSAGES} messages in a single transaction: it has {held}, and {added} more \
         were to be added."
    )]
    TooManyMessages {
        /// How many it has.
        held: usize,
        /// How many were to be added.
        added: usize,
    },
    /// A message was to be released, which is not an operation of transactions (semantics §12).
    #[error(
        "A message cannot be released in a transaction, only completed, abandoned, deferred or dead-lettered."
    )]
    Release,
    /// The entity does not accept the messages.
    #[error(transparent)]
    Send(#[from] SendError),
    /// A lock cannot be settled like that.
    #[error(transparent)]
    Settle(#[from] SettleError),
}

/// Sends and settlements that wait to happen together.
#[derive(Debug)]
pub struct Transaction {
    id: TransactionId,
    /// Fixed by the first operation.
    deadline: Option<Timestamp>,
    /// The entities that take part. All belong to the same queue or topic.
    participants: BTreeMap<EntityId, EntityPath>,
    /// How messages are spread over partitions, once that is known.
    partition: Option<Partition>,
    pub(crate) work: Vec<Enlisted>,
    messages: usize,
}

/// Something to do in one entity.
#[derive(Debug)]
pub(crate) struct Enlisted {
    pub(crate) entity: EntityId,
    pub(crate) work: Work,
    /// Bytes of its message, which count at the entity from now on.
    _reservation: Option<Reservation>,
}

/// What is to be done.
#[derive(Debug)]
pub(crate) enum Work {
    /// Accept a message.
    Send { message: Message, partition: u8 },
    /// Accept a message under a number that its sender knows already.
    Schedule {
        message: Message,
        partition: u8,
        offset: Offset,
        /// Where it goes on to when it is due.
        destination: Option<EntityPath>,
    },
    /// Accept a message that goes on to another entity.
    Transfer {
        message: Message,
        partition: u8,
        destination: EntityPath,
    },
    /// Settle a locked message, if it is still under the same lock.
    Settle {
        kind: SubQueue,
        token: LockToken,
        offset: Offset,
        number: SequenceNumber,
        outcome: Outcome,
    },
}

/// The one partition that the work of a transaction belongs to (semantics §15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) number: u8,
    /// The key that its messages have, if one of them has any.
    pub(crate) key: Option<String>,
}

impl Transaction {
    /// A transaction without work, whose time has not begun.
    pub fn declare(ids: &mut dyn IdSource) -> Self {
        Self {
            id: TransactionId::new(ids),
            deadline: None,
            participants: BTreeMap::new(),
            partition: None,
            work: Vec::new(),
            messages: 0,
        }
    }

    /// Its name.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// The entities in which it has work: those whose entities it needs to be committed or rolled back.
    pub fn participants(&self) -> impl Iterator<Item = (EntityId, &EntityPath)> {
        self.participants.iter().map(|(&id, path)| (id, path))
    }

    /// When it will have lasted too long; none before its first operation.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// Whether work may be enlisted at `now` in this entity, with so many messages.
    pub(crate) fn check(
        &self,
        now: Timestamp,
        entity: &EntityPath,
        messages: usize,
    ) -> Result<(), TransactError> {
        if self.is_over(now) {
            return Err(TransactError::TimedOut(self.id));
        }
        if let Some(first) = self.participants.values().next() {
            let (first, second) = (first.top_level(), entity.top_level());
            if first != second {
                return Err(TransactError::SecondEntity { first, second });
            }
        }
        if self.messages + messages > MAX_MESSAGES {
            return Err(TransactError::TooManyMessages {
                held: self.messages,
                added: messages,
            });
        }
        Ok(())
    }

    pub(crate) fn is_over(&self, now: Timestamp) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    pub(crate) fn partition(&self) -> Option<&Partition> {
        self.partition.as_ref()
    }

    pub(crate) fn set_partition(&mut self, partition: Partition) {
        self.partition = Some(partition);
    }

    /// Whether an entity is to take in messages.
    pub(crate) fn sends_to(&self, entity: EntityId) -> bool {
        let mut work = self.work.iter();
        work.any(|enlisted| enlisted.entity == entity && enlisted.work.message().is_some())
    }

    /// Adds work that was checked, and lets the time begin if it is the first.
    pub(crate) fn enlist(&mut self, now: Timestamp, entity: &Entity, work: Work) {
        self.begin(now);
        let id = entity.id();
        self.participants
            .entry(id)
            .or_insert_with(|| entity.path().clone());
        let message = work.message();
        self.messages += usize::from(message.is_some());
        let reservation = message.map(|message| entity.reserve_bytes(message.size()));
        self.work.push(Enlisted {
            entity: id,
            work,
            _reservation: reservation,
        });
    }

    /// Lets the time begin unless it has; returns when it will be over.
    pub(crate) fn begin(&mut self, now: Timestamp) -> Timestamp {
        *self.deadline.get_or_insert(now + TIME_LIMIT)
    }
}

impl Work {
    fn message(&self) -> Option<&Message> {
        match self {
            Self::Send { message, .. }
            | Self::Schedule { message, .. }
            | Self::Transfer { message, .. } => Some(message),
            Self::Settle { .. } => None,
        }
    }
}

impl Partition {
    /// Where work belongs to that belongs to both, as far as either is known.
    pub(crate) fn join(own: Option<Self>, wanted: Self) -> Result<Self, TransactError> {
        let Some(own) = own else {
            return Ok(wanted);
        };
        let keys_differ = match (&own.key, &wanted.key) {
            (Some(own), Some(wanted)) => own != wanted,
            (None, _) | (_, None) => false,
        };
        if own.number != wanted.number || keys_differ {
            return Err(TransactError::SecondPartition {
                first: own.name(),
                second: wanted.name(),
            });
        }
        Ok(Self {
            key: own.key.or(wanted.key),
            ..own
        })
    }

    /// What to call it: by its key, which its sender knows.
    fn name(self) -> String {
        self.key.map_or_else(
            || format!("number {}", self.number),
            |key| format!("'{key}'"),
        )
    }
}
