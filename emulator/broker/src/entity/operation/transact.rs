//! Work is enlisted in a transaction, and happens when that is committed (semantics §12).
//!
//! All that can be wrong with an operation is found when it comes; what may change until the commit is looked at
//! again there. An operation that fails leaves the transaction as it was.

pub(crate) mod commit;
mod send;
mod settle;

use thiserror::Error;

use super::send::SendError;
use super::settle::SettleError;
use crate::transaction::{MAX_MESSAGES, TIME_LIMIT};
use crate::{EntityPath, TransactionId};

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
