//! Why an operation on a mailbox or topic failed, one enum per operation.

use std::{fmt, time::Duration};

use super::{Counts, Mailbox};
use crate::{
    amqp::{AmqpError, Condition},
    control::ControlError,
    kind::{EntityKind, topic_and_name},
    text,
};

/// The condition by which the emulator says that an entity does not exist.
const NOT_FOUND: &str = "amqp:not-found";

/// A queue, topic or subscription that the bus does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEntity {
    /// What was asked for.
    pub kind: EntityKind,
    /// The name that was asked for; that of a subscription has its topic in it.
    pub name: String,
    /// What the bus has instead under this name.
    pub instead: Option<EntityKind>,
    /// Those of this kind that there are, the most similar name first; of a topic's subscriptions, its own.
    pub known: Vec<String>,
}

impl fmt::Display for UnknownEntity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, .. } = self;
        let topic = topic_and_name(name).filter(|_| *kind == EntityKind::Subscription);
        match topic {
            Some((topic, name)) => write!(f, "the topic \"{topic}\" has no {kind} \"{name}\"")?,
            None => write!(f, "there is no {kind} \"{name}\"")?,
        }
        let who = if topic.is_some() { "it" } else { "the bus" };
        match (self.instead, self.known.as_slice()) {
            (Some(instead), _) => write!(f, "; it is a {instead}"),
            (None, []) => write!(f, "; {who} has no {kind}s"),
            (None, known) => write!(f, "; {who} has {}", known.join(", ")),
        }
    }
}

impl std::error::Error for UnknownEntity {}

/// Why a message was not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
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
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
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
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
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
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
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
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
    /// What was put aside is counted by looking where nobody says how much it is, and that failed.
    #[error(transparent)]
    Peek(#[from] PeekError),
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
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
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
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
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

/// Why a session was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum AcceptSessionError {
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
    /// Somebody holds it.
    #[error("{path}: the session {session:?} is held by {}", holder.as_deref().unwrap_or("somebody"))]
    Taken {
        /// Where it is.
        path: String,
        /// The id that was asked for.
        session: String,
        /// The client that holds it, by the name its connection has in the timeline.
        holder: Option<String>,
    },
    /// No session was available in time.
    #[error("{path}: no session was available within {}; it holds {counts}", text::seconds(*within))]
    NoneAvailable {
        /// Where was waited.
        path: String,
        /// How long was waited.
        within: Duration,
        /// What is there instead.
        counts: Counts,
    },
    /// The emulator refused, or did not answer.
    #[error("cannot accept a session of {path}: {source}")]
    Amqp {
        /// Where it was to be.
        path: String,
        /// What the emulator said.
        source: AmqpError,
    },
}

/// Why something about a session that was accepted did not happen.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Its lock had run out, or was taken away.
    #[error("the session {session:?} of {path} is not held any longer")]
    LockLost {
        /// Where it is.
        path: String,
        /// Its id.
        session: String,
    },
    /// The emulator refused, or did not answer.
    #[error("the session {session:?} of {path}: {source}")]
    Amqp {
        /// Where it is.
        path: String,
        /// Its id.
        session: String,
        /// What the emulator said.
        source: AmqpError,
    },
}

/// Why there is no list of sessions.
#[derive(Debug, thiserror::Error)]
pub enum SessionsError {
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
    /// The emulator refused, or did not answer.
    #[error("cannot list the sessions of {path}: {source}")]
    Control {
        /// Where they were to be.
        path: String,
        /// What the emulator said.
        source: ControlError,
    },
}

/// Why a session was not taken away from its holder.
#[derive(Debug, thiserror::Error)]
pub enum LoseSessionError {
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
    /// Nobody holds it, or the emulator did not answer.
    #[error("cannot take the session {session:?} of {path} away: {source}")]
    Control {
        /// Where it is.
        path: String,
        /// Its id.
        session: String,
        /// What the emulator said.
        source: ControlError,
    },
}

/// Why messages were not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteMessagesError {
    /// The queue, topic or subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
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
    /// Finds out whether a refusal means that the entity does not exist.
    pub(super) async fn unknown_by(&self, condition: Option<&Condition>) -> Option<UnknownEntity> {
        let not_found = condition.is_some_and(|condition| condition.condition == NOT_FOUND);
        self.unknown_if(not_found).await
    }

    /// Names the entities there are, when this one is not among them.
    pub(crate) async fn unknown_if(&self, not_found: bool) -> Option<UnknownEntity> {
        if !not_found {
            return None;
        }
        self.catalog().await.missing(self.kind, &self.owner)
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
