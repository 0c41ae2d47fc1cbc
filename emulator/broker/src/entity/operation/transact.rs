//! Transactions: work is enlisted and takes effect together at the commit (semantics §12).
//!
//! The connection that declared a transaction owns it as a value. Operations of [`Entity`] enlist work in it, in the order
//! in which it will take effect; [`commit`](crate::commit) applies it. Entities only know which locks it will settle, so
//! that a dropped transaction leaves only locks that become free when its time is over.
//!
//! Errors are found when work is enlisted; the commit checks again what may have changed. An operation that fails leaves the
//! transaction unchanged.

pub(crate) mod commit;
mod send;
mod settle;

use std::collections::BTreeMap;
use std::sync::Arc;
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

/// Maximum number of messages that one transaction sends or schedules (semantics §1).
pub(crate) const MAX_MESSAGES: usize = 100;

/// Maximum duration of a transaction from its first operation (semantics §12).
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(120);

/// Why work was not enlisted; the transaction is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransactError {
    /// The transaction has lasted too long, and will never be committed.
    #[error(
        "The transaction {0} was aborted: it did not complete within {limit} seconds of its first operation.",
        limit = TIME_LIMIT.as_secs()
    )]
    TimedOut(TransactionId),
    /// The transaction works on another queue or topic (semantics §20.2).
    #[error(
        "Local transactions cannot span multiple top-level entities such as queue or topic. The transaction \
         works on '{first}'; '{second}' is another."
    )]
    SecondEntity {
        /// The entity of the transaction.
        first: EntityPath,
        /// The further entity.
        second: EntityPath,
    },
    /// The transaction works on another partition (semantics §15, §20.2).
    #[error(
        "Local transactions cannot span multiple entities or partitions. The transaction works on the \
         partition {first}; the partition {second} is another."
    )]
    SecondPartition {
        /// The partition of the transaction: a key, or a number.
        first: String,
        /// The further partition.
        second: String,
    },
    /// The transaction would exceed the limit of messages (semantics §1, §20.2).
    #[error(
        "Can't send more than {MAX_MESSAGES} messages in a single transaction: it has {held}, and {added} more \
         were to be added."
    )]
    TooManyMessages {
        /// Messages in the transaction.
        held: usize,
        /// Further messages.
        added: usize,
    },
    /// A transaction cannot release messages (semantics §12).
    #[error(
        "A message cannot be released in a transaction, only completed, abandoned, deferred or dead-lettered."
    )]
    Release,
    /// The entity does not accept the messages.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The lock cannot be settled in this way.
    #[error(transparent)]
    Settle(#[from] SettleError),
}

/// Sends and settlements that take effect together.
#[derive(Debug)]
pub struct Transaction {
    id: TransactionId,
    /// Set by the first operation.
    deadline: Option<Timestamp>,
    /// The entities that take part. All belong to the same queue or topic.
    participants: BTreeMap<EntityId, EntityPath>,
    /// The partition of the messages, once known.
    partition: Option<Partition>,
    pub(crate) work: Vec<Enlisted>,
    messages: usize,
    /// Bytes of the outcomes of its settlements.
    outcomes: usize,
}

/// Work in one entity.
#[derive(Debug)]
pub(crate) struct Enlisted {
    pub(crate) entity: EntityId,
    pub(crate) work: Work,
    /// The bytes of its message, which count at the entity from now on.
    _reservation: Option<Reservation>,
}

/// The kinds of work.
#[derive(Debug)]
pub(crate) enum Work {
    /// Accept a message.
    Send { message: Message, partition: u8 },
    /// Accept a message under a sequence number that its sender knows already.
    Schedule {
        message: Message,
        partition: u8,
        offset: Offset,
        /// The entity to which it is forwarded when it is due.
        destination: Option<EntityPath>,
    },
    /// Accept a message that is forwarded to another entity.
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
        /// That of all locks that were settled by one operation.
        outcome: Arc<Outcome>,
    },
}

/// The one partition of a transaction's work (semantics §15).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Partition {
    pub(crate) number: u8,
    /// The partition key of its messages, if one of them has any.
    pub(crate) key: Option<String>,
}

impl Transaction {
    /// Creates a transaction without work, whose time has not begun.
    pub fn declare(ids: &mut dyn IdSource) -> Self {
        Self {
            id: TransactionId::new(ids),
            deadline: None,
            participants: BTreeMap::new(),
            partition: None,
            work: Vec::new(),
            messages: 0,
            outcomes: 0,
        }
    }

    /// Returns its id.
    pub fn id(&self) -> TransactionId {
        self.id
    }

    /// Returns the entities in which it has work: the commit and the rollback need them.
    pub fn participants(&self) -> impl Iterator<Item = (EntityId, &EntityPath)> {
        self.participants.iter().map(|(&id, path)| (id, path))
    }

    /// Returns when its time is over; `None` before its first operation.
    pub fn deadline(&self) -> Option<Timestamp> {
        self.deadline
    }

    /// Returns the bytes that its settlements occupy; its messages count at their entities.
    pub fn held(&self) -> usize {
        self.work.len() * size_of::<Enlisted>() + self.outcomes
    }

    /// Drops its work, whose bytes count nowhere any more. The caller has rolled it back at its [participants]; it can be
    /// committed no more, because its time is over.
    ///
    /// [participants]: Self::participants
    pub fn drop_work(&mut self) {
        self.participants.clear();
        self.work.clear();
        self.outcomes = 0;
    }

    /// Checks whether work with so many messages may be enlisted at `now` in this entity.
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

    /// Returns whether it sends messages to an entity.
    pub(crate) fn sends_to(&self, entity: EntityId) -> bool {
        let mut work = self.work.iter();
        work.any(|enlisted| enlisted.entity == entity && enlisted.work.message().is_some())
    }

    /// Adds checked work; the first work starts the transaction's time.
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

    /// Counts the bytes of an outcome of one or more settlements.
    pub(crate) fn hold(&mut self, outcome: &Outcome) {
        self.outcomes += outcome.bytes();
    }

    /// Starts the transaction's time unless it has begun; returns when it is over.
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
    /// Returns the common partition of the transaction and of further work, as far as either is known.
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

    /// Returns its name for errors: its key, which the sender knows.
    fn name(self) -> String {
        self.key.map_or_else(
            || format!("number {}", self.number),
            |key| format!("'{key}'"),
        )
    }
}
