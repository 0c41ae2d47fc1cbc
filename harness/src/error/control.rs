//! Errors of the control API.

use std::{fmt, io, net::SocketAddr};

use hyper::StatusCode;
use servicebus_control_api::{ErrorAnswer, ErrorDetails, Problem};

use crate::liveness::NamespaceEnded;

/// Why a request to the control API failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    #[error("the emulator's control API at {address} does not answer: {source}")]
    Unreachable {
        address: SocketAddr,
        source: io::Error,
    },
    #[error(transparent)]
    Refused(Refusal),
    #[error("the emulator's answer to {path} is not understood: {source}")]
    Malformed {
        path: String,
        source: serde_json::Error,
    },
    /// A namespace that runs elsewhere did not answer.
    #[error("the administration API at {host} does not answer: {source}")]
    Administration {
        /// The host, with its address and port.
        host: String,
        source: io::Error,
    },
    /// The request came too late.
    #[error(transparent)]
    NamespaceEnded(#[from] NamespaceEnded),
    /// Only an emulator supports the request, and the namespace may not run in one.
    #[error("could not check: {what}")]
    Unsupported {
        /// The request, and the reason.
        what: String,
    },
}

impl ControlError {
    /// Returns the HTTP status of a refusal.
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Refused(refusal) => Some(refusal.status),
            Self::Unreachable { .. }
            | Self::Malformed { .. }
            | Self::Administration { .. }
            | Self::NamespaceEnded(_)
            | Self::Unsupported { .. } => None,
        }
    }
}

/// A refusal in the emulator's own format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status.
    pub(crate) status: u16,
    /// A description of the problem.
    pub(crate) message: String,
    /// The single problems, each with its place.
    pub(crate) problems: Vec<String>,
}

impl Refusal {
    pub(crate) fn new(status: StatusCode, path: &str, answer: &[u8]) -> Self {
        let ErrorAnswer { error } = serde_json::from_slice(answer).unwrap_or_default();
        let ErrorDetails {
            mut message,
            problems,
            ..
        } = error;
        if message.is_empty() {
            message = format!("{path} answered {}", String::from_utf8_lossy(answer));
        }
        Self {
            status: status.as_u16(),
            message,
            problems: problems.iter().map(Problem::to_string).collect(),
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (status {})", self.message, self.status)?;
        self.problems
            .iter()
            .try_for_each(|problem| write!(f, "\n  {problem}"))
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_shows_the_emulators_message() {
        let answer = br#"{"error":{"code":"not-settled","message":"not idle",
            "problems":[{"path":"orders","value":"1 locked","allowed":"idle"}]}}"#;
        let refusal = Refusal::new(StatusCode::REQUEST_TIMEOUT, "/x", answer);
        assert_eq!(
            refusal.to_string(),
            "not idle (status 408)\n  orders: 1 locked"
        );
    }

    #[test]
    fn a_refusal_shows_the_allowed_values() {
        let answer =
            br#"{"error":{"code":"invalid-argument","message":"the properties are not allowed",
            "problems":[{"path":"MaxDeliveryCount","value":"0","allowed":"1 to 2147483647"}]}}"#;
        let refusal = Refusal::new(StatusCode::BAD_REQUEST, "/x", answer);
        assert_eq!(
            refusal.problems,
            ["MaxDeliveryCount: 0 is not allowed; allowed: 1 to 2147483647"]
        );
    }

    #[test]
    fn a_refusal_without_a_message_shows_the_body() {
        let refusal = Refusal::new(StatusCode::BAD_GATEWAY, "/x", b"oops");
        assert_eq!(refusal.to_string(), "/x answered oops (status 502)");
    }
}
