//! The error of all operations.
//!
//! Programs match its [`ErrorKind`]; `Display` and `Debug` show the same sentence, also in the panic of an `unwrap`.

pub(crate) mod amqp;
pub(crate) mod control;

use std::{borrow::Cow, error, fmt, panic::Location};

use self::{
    amqp::{AmqpError, Condition},
    control::ControlError,
};

/// The kind of a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The queue, topic or subscription does not exist; the message names those that do.
    EntityNotFound,
    /// An entity of this name already exists.
    EntityAlreadyExists,
    /// No deferred or scheduled message has this sequence number.
    MessageNotFound,
    /// The lock of the message has expired, or the message was deleted.
    MessageLockLost,
    /// The lock of the session has expired or was ended.
    SessionLockLost,
    /// Another receiver holds the session.
    SessionCannotBeLocked,
    /// An operation timed out: no message, no session, no idle namespace, or no answer.
    Timeout,
    /// The emulator refused the operation; the message has its condition or status.
    Refused,
    /// The emulator or the namespace does not answer, or has ended.
    Unreachable,
    /// The answer violates the protocol.
    Malformed,
    /// Only an emulator supports the operation, and the namespace does not run in one.
    Unsupported,
    /// An argument is invalid for the operation.
    InvalidArgument,
    /// The mode is not available.
    Mode,
    /// The topology is missing or invalid.
    Topology,
    /// The emulator did not start.
    Start,
    /// The given namespace cannot be used.
    Namespace,
    /// A client of the SDK could not connect.
    Connect,
}

type Source = Box<dyn error::Error + Send + Sync>;

/// The error of a failed operation.
pub struct Error {
    kind: ErrorKind,
    /// The text after "cannot", such as `send to orders`; empty if the source says it all.
    operation: Cow<'static, str>,
    entity: Option<String>,
    source: Source,
    /// The line of the test that called the operation.
    at: Option<&'static Location<'static>>,
    /// The earlier events of its entity.
    timeline: Option<String>,
}

impl Error {
    /// An error that consists of a sentence.
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

    /// The namespace did not start.
    pub(crate) fn start(sentence: impl Into<Source>) -> Self {
        Self::new(ErrorKind::Start, None, sentence)
    }

    /// The topology cannot be used.
    pub(crate) fn topology(sentence: impl Into<Source>) -> Self {
        Self::new(ErrorKind::Topology, None, sentence)
    }

    /// The given namespace cannot be used.
    pub(crate) fn namespace(sentence: impl Into<Source>) -> Self {
        Self::new(ErrorKind::Namespace, None, sentence)
    }

    /// Adds the line of the test that called the operation.
    pub(crate) fn at(self, at: &'static Location<'static>) -> Self {
        Self {
            at: Some(at),
            ..self
        }
    }

    /// Adds the earlier events of the entity.
    pub(crate) fn with_timeline(self, timeline: Option<String>) -> Self {
        Self { timeline, ..self }
    }

    /// A failed operation on an entity.
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

    /// A failed operation on the namespace.
    pub(crate) fn during(operation: impl Into<Cow<'static, str>>, source: impl Into<Self>) -> Self {
        Self {
            operation: operation.into(),
            ..source.into()
        }
    }

    /// Returns the kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the operation, such as `send to orders`; `None` if the error belongs to no single operation.
    pub fn operation(&self) -> Option<&str> {
        Some(&*self.operation).filter(|operation| !operation.is_empty())
    }

    /// Returns the path of the queue, topic or subscription, if the error concerns one.
    pub fn entity(&self) -> Option<&str> {
        self.entity.as_deref()
    }

    /// Returns the AMQP condition with which the emulator refused.
    pub fn condition(&self) -> Option<&Condition> {
        self.source.downcast_ref::<AmqpError>()?.condition()
    }

    /// Returns the HTTP status with which the emulator refused.
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

/// Shows the sentence, the line of the test and the earlier events, for tests that unwrap the error.
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
            AmqpError::Unreachable { .. } | AmqpError::NamespaceEnded(_) | AmqpError::Ended(_) => {
                ErrorKind::Unreachable
            }
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
            ControlError::Unreachable { .. }
            | ControlError::Administration { .. }
            | ControlError::NamespaceEnded(_) => ErrorKind::Unreachable,
            ControlError::Refused(_) => ErrorKind::Refused,
            ControlError::Malformed { .. } => ErrorKind::Malformed,
            ControlError::Unsupported { .. } => ErrorKind::Unsupported,
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
