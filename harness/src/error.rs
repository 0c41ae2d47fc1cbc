//! Why an operation failed: one error for all operations.
//!
//! Programs ask for its [`ErrorKind`]; people read it, also where a test unwraps it: its `Debug` is the same sentence.

pub(crate) mod amqp;
pub(crate) mod control;

use std::{borrow::Cow, error, fmt, panic::Location};

use self::{
    amqp::{AmqpError, Condition},
    control::ControlError,
};

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The queue, topic or subscription does not exist; the text names those that do.
    EntityNotFound,
    /// There is an entity of this name already.
    EntityAlreadyExists,
    /// No deferred or scheduled message has this sequence number.
    MessageNotFound,
    /// The lock of the message has run out, or the message is deleted.
    MessageLockLost,
    /// The lock of the session has run out, or was taken away.
    SessionLockLost,
    /// Another receiver holds the session.
    SessionCannotBeLocked,
    /// Nothing happened in time: no message, no session, no idle namespace, no answer.
    Timeout,
    /// The emulator refused the operation; the text has its condition or status.
    Refused,
    /// The emulator or the namespace does not answer.
    Unreachable,
    /// The answer is not what the interface promises.
    Malformed,
    /// Only an emulator can do it, and the namespace is not one of an emulator.
    Unsupported,
    /// What was asked for cannot be done this way.
    InvalidArgument,
    /// The mode cannot run.
    Mode,
    /// The topology is missing or wrong.
    Topology,
    /// The emulator did not start.
    Start,
    /// The namespace that was named cannot be used.
    Namespace,
    /// A client of the SDK did not connect.
    Connect,
}

type Source = Box<dyn error::Error + Send + Sync>;

/// Why an operation of the harness failed.
pub struct Error {
    kind: ErrorKind,
    /// As it goes on behind "cannot": `send to orders`; empty where the source says it all.
    operation: Cow<'static, str>,
    entity: Option<String>,
    source: Source,
    /// Where the test asked for the operation.
    at: Option<&'static Location<'static>>,
    /// What happened before to what it is about.
    timeline: Option<String>,
}

impl Error {
    /// An error of a sentence of its own.
    pub(crate) fn new(
        kind: ErrorKind,
        entity: impl Into<Option<String>>,
        sentence: impl Into<Source>,
    ) -> Self {
        Self {
            kind,
            operation: Cow::Borrowed(""),
            entity: entity.into(),
            source: sentence.into(),
            at: None,
            timeline: None,
        }
    }

    /// Why a namespace did not start.
    pub(crate) fn start(sentence: impl Into<Source>) -> Self {
        Self::new(ErrorKind::Start, None, sentence)
    }

    /// Why a topology cannot be used.
    pub(crate) fn topology(sentence: impl Into<Source>) -> Self {
        Self::new(ErrorKind::Topology, None, sentence)
    }

    /// Why the namespace that was named cannot be used.
    pub(crate) fn namespace(sentence: impl Into<Source>) -> Self {
        Self::new(ErrorKind::Namespace, None, sentence)
    }

    /// The same, with the line of the test that asked for the operation.
    pub(crate) fn at(self, at: &'static Location<'static>) -> Self {
        Self {
            at: Some(at),
            ..self
        }
    }

    /// The same, with what happened before to what it is about.
    pub(crate) fn with_timeline(self, timeline: Option<String>) -> Self {
        Self { timeline, ..self }
    }

    /// An operation on an entity that failed for this reason.
    pub(crate) fn of(
        operation: impl Into<Cow<'static, str>>,
        entity: &str,
        source: impl Into<Self>,
    ) -> Self {
        Self {
            entity: Some(entity.to_owned()),
            ..Self::during(operation, source)
        }
    }

    /// An operation on the namespace that failed for this reason.
    pub(crate) fn during(operation: impl Into<Cow<'static, str>>, source: impl Into<Self>) -> Self {
        Self {
            operation: operation.into(),
            ..source.into()
        }
    }

    /// Returns what kind of failure it is.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns what was to be done, such as `send to orders`; nothing where the error is about no single operation.
    pub fn operation(&self) -> Option<&str> {
        Some(&*self.operation).filter(|operation| !operation.is_empty())
    }

    /// Returns the path of the queue, topic or subscription it is about, if it is about one.
    pub fn entity(&self) -> Option<&str> {
        self.entity.as_deref()
    }

    /// Returns the AMQP condition by which the emulator refused.
    pub fn condition(&self) -> Option<&Condition> {
        self.source.downcast_ref::<AmqpError>()?.condition()
    }

    /// Returns the HTTP status by which the emulator refused.
    pub fn status(&self) -> Option<u16> {
        self.source.downcast_ref::<ControlError>()?.status()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.operation() {
            Some(operation) => write!(f, "cannot {operation}: {}", self.source),
            None => self.source.fmt(f),
        }
    }
}

/// The sentence, the line of the test and what happened before: it is what a test shows that unwraps the error.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)?;
        if let Some(at) = self.at {
            write!(f, "\n  at {at}")?;
        }
        match &self.timeline {
            Some(timeline) => write!(f, "\n\n{timeline}"),
            None => Ok(()),
        }
    }
}

impl error::Error for Error {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        Some(&*self.source)
    }
}

impl From<AmqpError> for Error {
    fn from(source: AmqpError) -> Self {
        let kind = match &source {
            AmqpError::Unreachable { .. } | AmqpError::Ended(_) => ErrorKind::Unreachable,
            AmqpError::Refused(_) | AmqpError::Rejected(_) | AmqpError::Management { .. } => {
                ErrorKind::Refused
            }
            AmqpError::TimedOut { .. } | AmqpError::Lost(_) => ErrorKind::Timeout,
            AmqpError::Protocol(_) => ErrorKind::Malformed,
        };
        Self::new(kind, None, source)
    }
}

impl From<ControlError> for Error {
    fn from(source: ControlError) -> Self {
        let kind = match &source {
            ControlError::Unreachable { .. } | ControlError::Administration { .. } => {
                ErrorKind::Unreachable
            }
            ControlError::Refused(_) => ErrorKind::Refused,
            ControlError::Malformed { .. } => ErrorKind::Malformed,
            ControlError::Uncheckable { .. } => ErrorKind::Unsupported,
        };
        Self::new(kind, None, source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_what_failed_where_and_why() {
        let error = Error::of(
            "send to orders",
            "orders",
            AmqpError::Protocol("the link was closed".to_owned()),
        );
        assert_eq!(error.kind(), ErrorKind::Malformed);
        assert_eq!(error.operation(), Some("send to orders"));
        assert_eq!(error.entity(), Some("orders"));
        assert_eq!(error.condition(), None);
        assert_eq!(
            format!("{error:?}"),
            "cannot send to orders: the link was closed"
        );
    }
}
