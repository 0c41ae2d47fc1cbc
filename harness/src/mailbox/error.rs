//! Why an operation on a queue failed, one enum per operation.

use std::time::Duration;

use super::{Counts, Mailbox};
use crate::{
    amqp::{AmqpError, Condition},
    control::ControlError,
    text,
};

/// The condition by which the emulator says that an entity does not exist.
const NOT_FOUND: &str = "amqp:not-found";

/// A queue that the bus does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("there is no queue \"{name}\"; {}", known_text(known))]
pub struct UnknownQueue {
    /// The name that was asked for.
    pub name: String,
    /// The queues there are, the most similar name first.
    pub known: Vec<String>,
}

fn known_text(known: &[String]) -> String {
    match known {
        [] => "the bus has no queues".to_owned(),
        known => format!("the bus has {}", known.join(", ")),
    }
}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The queue does not exist.
    #[error(transparent)]
    UnknownQueue(#[from] UnknownQueue),
    /// The emulator refused the link or rejected the message, or did not answer.
    #[error("cannot send to {path}: {source}")]
    Amqp {
        /// Where it was sent to.
        path: String,
        /// What the emulator said.
        source: AmqpError,
    },
}

/// Why messages were not scheduled; none of them was.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    /// The queue does not exist.
    #[error(transparent)]
    UnknownQueue(#[from] UnknownQueue),
    /// The emulator refused.
    #[error("cannot schedule to {path}: {source}")]
    Amqp {
        /// Where they were to be.
        path: String,
        /// What the emulator said.
        source: AmqpError,
    },
    /// The emulator did not answer with a number for each.
    #[error("{path} answered with {found} numbers for {expected} scheduled messages")]
    Miscounted {
        /// Where they were to be.
        path: String,
        /// How many messages there were.
        expected: usize,
        /// How many numbers came.
        found: usize,
    },
}

/// Why a scheduled message was not taken back.
#[derive(Debug, thiserror::Error)]
pub enum CancelError {
    /// The queue does not exist.
    #[error(transparent)]
    UnknownQueue(#[from] UnknownQueue),
    /// It never was, is active by now, or was taken back before.
    #[error(
        "{path} holds no scheduled message {number}; {}",
        numbers_text("scheduled", scheduled)
    )]
    NotScheduled {
        /// Where it was to be.
        path: String,
        /// The number that was asked for.
        number: i64,
        /// The numbers that can be taken back.
        scheduled: Vec<i64>,
    },
    /// The emulator refused, or did not answer.
    #[error("cannot cancel the scheduled message {number} of {path}: {source}")]
    Amqp {
        /// Where it was to be.
        path: String,
        /// The number that was asked for.
        number: i64,
        /// What the emulator said.
        source: AmqpError,
    },
}

fn numbers_text(state: &str, numbers: &[i64]) -> String {
    let listed = || Vec::from_iter(numbers.iter().map(i64::to_string)).join(", ");
    match numbers {
        [] => format!("none is {state}"),
        [only] => format!("only {only} is {state}"),
        _ => format!("{} are {state}", listed()),
    }
}

/// Why a queue was not looked into.
#[derive(Debug, thiserror::Error)]
pub enum PeekError {
    /// The queue does not exist.
    #[error(transparent)]
    UnknownQueue(#[from] UnknownQueue),
    /// The emulator refused, or did not answer.
    #[error("cannot peek {path}: {source}")]
    Amqp {
        /// Where was looked.
        path: String,
        /// What the emulator said.
        source: AmqpError,
    },
}

/// Why messages were not counted.
#[derive(Debug, thiserror::Error)]
pub enum CountsError {
    /// The queue does not exist.
    #[error(transparent)]
    UnknownQueue(#[from] UnknownQueue),
    /// The emulator refused, or did not answer.
    #[error("cannot count the messages of {path}: {source}")]
    Control {
        /// What was to be counted.
        path: String,
        /// What the emulator said.
        source: ControlError,
    },
}

/// Why there is no timeline.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// The queue does not exist.
    #[error(transparent)]
    UnknownQueue(#[from] UnknownQueue),
    /// The emulator refused, or did not answer.
    #[error("cannot get the timeline of {path}: {source}")]
    Control {
        /// Whose timeline it was to be.
        path: String,
        /// What the emulator said.
        source: ControlError,
    },
}

/// Why no message was received.
#[derive(Debug, thiserror::Error)]
pub enum ReceiveError {
    /// The queue does not exist.
    #[error(transparent)]
    UnknownQueue(#[from] UnknownQueue),
    /// None was ready in time.
    #[error("{path}: no message came within {}; it holds {counts}", text::seconds(*within))]
    Nothing {
        /// Where was waited.
        path: String,
        /// How long was waited.
        within: Duration,
        /// What is there instead.
        counts: Counts,
    },
    /// No message of this number is deferred, or somebody has it.
    #[error("{path} holds no deferred message {number} that can be received; {}", deferred_text(*number, deferred))]
    NotDeferred {
        /// Where it was to come from.
        path: String,
        /// The number that was asked for.
        number: i64,
        /// The numbers of all that are deferred.
        deferred: Vec<i64>,
    },
    /// The emulator refused, or did not answer.
    #[error("cannot receive from {path}: {source}")]
    Amqp {
        /// Where it was to come from.
        path: String,
        /// What the emulator said.
        source: AmqpError,
    },
}

fn deferred_text(number: i64, deferred: &[i64]) -> String {
    match deferred.contains(&number) {
        true => "it is locked".to_owned(),
        false => numbers_text("deferred", deferred),
    }
}

/// Why a received message was not settled.
#[derive(Debug, thiserror::Error)]
pub enum SettleError {
    /// The lock had run out, or the message was gone.
    #[error("the lock on {message} of {path} was lost before it was settled")]
    LockLost {
        /// Where it was received from.
        path: String,
        /// The message.
        message: String,
    },
    /// The emulator refused, or did not answer.
    #[error("cannot settle {message} of {path}: {source}")]
    Amqp {
        /// Where it was received from.
        path: String,
        /// The message.
        message: String,
        /// What the emulator said.
        source: AmqpError,
    },
}

/// Why the lock of a received message was not prolonged.
#[derive(Debug, thiserror::Error)]
pub enum RenewError {
    /// The lock had run out, or the message was gone.
    #[error("the lock on {message} of {path} was lost before it was renewed")]
    LockLost {
        /// Where it was received from.
        path: String,
        /// The message.
        message: String,
    },
    /// The emulator refused, or did not answer.
    #[error("cannot renew the lock on {message} of {path}: {source}")]
    Amqp {
        /// Where it was received from.
        path: String,
        /// The message.
        message: String,
        /// What the emulator said.
        source: AmqpError,
    },
}

/// Why messages were not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteMessagesError {
    /// The queue does not exist.
    #[error(transparent)]
    UnknownQueue(#[from] UnknownQueue),
    /// The emulator refused, or did not answer.
    #[error("cannot delete {count} messages of {path}: {source}")]
    Amqp {
        /// Where they are.
        path: String,
        /// How many were to be deleted.
        count: u32,
        /// What the emulator said.
        source: AmqpError,
    },
    /// What is left could not be counted.
    #[error(transparent)]
    Counts(#[from] CountsError),
}

/// Why a queue was not emptied.
#[derive(Debug, thiserror::Error)]
pub enum PurgeError {
    /// The messages could not be received.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// What is left could not be counted.
    #[error(transparent)]
    Counts(#[from] CountsError),
}

impl Mailbox {
    /// Finds out whether a refusal means that the queue does not exist.
    pub(super) async fn unknown_by(&self, condition: Option<&Condition>) -> Option<UnknownQueue> {
        let not_found = condition.is_some_and(|condition| condition.condition == NOT_FOUND);
        self.unknown_if(not_found).await
    }

    /// Names the queues there are, when this one is not among them.
    pub(crate) async fn unknown_if(&self, not_found: bool) -> Option<UnknownQueue> {
        if !not_found {
            return None;
        }
        self.catalog().await.missing(&self.queue)
    }

    pub(super) async fn receive_error(&self, source: AmqpError) -> ReceiveError {
        match self.unknown_by(source.condition()).await {
            Some(unknown) => unknown.into(),
            None => ReceiveError::Amqp {
                path: self.path.clone(),
                source,
            },
        }
    }

    pub(super) async fn nothing_came(&self, within: Duration) -> ReceiveError {
        ReceiveError::Nothing {
            path: self.path.clone(),
            within,
            counts: self.try_counts().await.unwrap_or_default(),
        }
    }
}
