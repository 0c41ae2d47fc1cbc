//! Errors of the AMQP connection, as the emulator or the client library reports them.

use std::{fmt, io, net::SocketAddr, time::Duration};

use fe2o3_amqp::{
    connection::{ConnectionStopReason, OpenError},
    link::{
        DetachError, IllegalLinkStateError, LinkStateError, ReceiverAttachError, RecvError,
        SendError, SenderAttachError, SessionStopReason,
    },
    session::BeginError,
    types::{definitions, primitives::Value},
};

use servicebus_assertions::without_tracking;

use crate::{liveness::NamespaceEnded, text};

/// The entity does not exist.
pub(crate) const NOT_FOUND: &str = "amqp:not-found";
/// The message does not exist.
pub(crate) const MESSAGE_NOT_FOUND: &str = "com.microsoft:message-not-found";
pub(crate) const MESSAGE_LOCK_LOST: &str = "com.microsoft:message-lock-lost";
pub(crate) const SESSION_LOCK_LOST: &str = "com.microsoft:session-lock-lost";
/// Another receiver holds the session.
pub(crate) const SESSION_CANNOT_BE_LOCKED: &str = "com.microsoft:session-cannot-be-locked";
/// No session became available in time.
pub(crate) const TIMEOUT: &str = "com.microsoft:timeout";

/// An error of the emulator: a condition and a description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// The symbol, such as `amqp:not-found`.
    pub condition: String,
    /// The description; may be empty.
    pub description: String,
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.description.as_str() {
            "" => f.write_str(&self.condition),
            description => {
                let description = without_tracking(description);
                write!(f, "{}: {description}", self.condition)
            }
        }
    }
}

impl From<definitions::Error> for Condition {
    fn from(error: definitions::Error) -> Self {
        let condition = match serde_amqp::to_value(&error.condition) {
            Ok(Value::Symbol(symbol)) => symbol.0,
            other => format!("{other:?}"),
        };
        Self {
            condition,
            description: error.description.unwrap_or_default(),
        }
    }
}

/// Why an exchange over AMQP failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum AmqpError {
    #[error("the emulator's AMQP endpoint at {address} does not answer: {source}")]
    Unreachable {
        address: SocketAddr,
        source: io::Error,
    },
    /// The operation came too late.
    #[error(transparent)]
    NamespaceEnded(#[from] NamespaceEnded),
    /// The emulator closed a connection, a session or a link with an error.
    #[error("{0}")]
    Refused(Condition),
    #[error("rejected{}", .0.as_ref().map(|condition| format!(": {condition}")).unwrap_or_default())]
    Rejected(Option<Condition>),
    /// The emulator answered a management request with an error.
    #[error("status {status}: {condition}")]
    Management {
        status: i32,
        /// The condition, with the description of the status.
        condition: Condition,
    },
    #[error("no answer within {}", text::seconds(*within))]
    TimedOut { within: Duration },
    /// A fault dropped the answer.
    #[error("no answer: {0}")]
    Lost(String),
    /// The connection or the link ended before the answer.
    #[error("{0}")]
    Ended(String),
    /// A violation of the protocol.
    #[error("{0}")]
    Protocol(String),
}

impl AmqpError {
    /// Returns the condition of the emulator.
    pub(crate) fn condition(&self) -> Option<&Condition> {
        match self {
            Self::Refused(condition)
            | Self::Rejected(Some(condition))
            | Self::Management { condition, .. } => Some(condition),
            Self::Rejected(None)
            | Self::NamespaceEnded(_)
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Lost(_)
            | Self::Ended(_)
            | Self::Protocol(_) => None,
        }
    }

    /// Returns whether the emulator sent this condition.
    pub(crate) fn is(&self, condition: &str) -> bool {
        let found = self.condition();
        found.is_some_and(|found| found.condition == condition)
    }

    /// The connection ended during the exchange.
    pub(crate) fn ended() -> Self {
        Self::Ended("the connection ended before there was an answer".to_owned())
    }

    fn refused(error: definitions::Error) -> Self {
        Self::Refused(error.into())
    }

    fn connection_stopped(reason: ConnectionStopReason) -> Self {
        match reason {
            ConnectionStopReason::RemoteClosedWithError(error)
            | ConnectionStopReason::ClosedWithError(error) => Self::refused(error),
            other => Self::Protocol(format!("the connection stopped: {other:?}")),
        }
    }

    fn session_stopped(reason: SessionStopReason) -> Self {
        match reason {
            SessionStopReason::RemoteEndedWithError(error)
            | SessionStopReason::EndedWithError(error) => Self::refused(error),
            SessionStopReason::ConnectionStopped(reason) => Self::connection_stopped(reason),
            other => Self::Protocol(format!("the session stopped: {other:?}")),
        }
    }
}

/// Extracts the emulator's condition from errors of the client library; others keep their text.
macro_rules! from {
    ($($error:ident { $($kind:ident => $taken:expr),* })+) => {$(
        impl From<$error> for AmqpError {
            fn from(error: $error) -> Self {
                match error {
                    $($error::$kind(inner) => $taken(inner),)*
                    other => Self::Protocol(other.to_string()),
                }
            }
        }
    )+};
}

from! {
    OpenError { RemoteClosedWithError => Self::refused }
    BeginError { RemoteEndedWithError => Self::refused, ConnectionStopped => Self::connection_stopped }
    SenderAttachError { RemoteClosedWithError => Self::refused, SessionStopped => Self::session_stopped }
    ReceiverAttachError { RemoteClosedWithError => Self::refused, SessionStopped => Self::session_stopped }
    LinkStateError {
        RemoteClosedWithError => Self::refused,
        RemoteDetachedWithError => Self::refused,
        SessionStopped => Self::session_stopped
    }
    IllegalLinkStateError { SessionStopped => Self::session_stopped }
    SendError { LinkStateError => Self::from, Detached => Self::from }
    RecvError { LinkStateError => Self::from }
}

impl From<DetachError> for AmqpError {
    fn from(error: DetachError) -> Self {
        LinkStateError::from(error).into()
    }
}
