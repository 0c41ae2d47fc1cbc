//! How the control API says no, or nothing at all.

use std::{fmt, io, net::SocketAddr};

use hyper::StatusCode;
use servicebus_control_api::{ErrorAnswer, ErrorDetails, Problem};

/// Why the control API did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ControlError {
    /// The emulator did not answer.
    #[error("the emulator's control API at {address} does not answer: {source}")]
    Unreachable {
        /// The address that was dialled.
        address: SocketAddr,
        /// What went wrong.
        source: io::Error,
    },
    /// The emulator said no.
    #[error(transparent)]
    Refused(Refusal),
    /// The answer is not what the interface promises.
    #[error("the emulator's answer to {path} is not understood: {source}")]
    Malformed {
        /// The path that was asked.
        path: String,
        /// What is wrong with the answer.
        source: serde_json::Error,
    },
    /// A namespace that runs elsewhere did not answer.
    #[error("the administration API at {host} does not answer: {source}")]
    Administration {
        /// The host and port.
        host: String,
        /// What went wrong.
        source: io::Error,
    },
    /// Only an emulator can tell or do it, and the namespace may not be one of an emulator.
    #[error("could not check: {what}")]
    Uncheckable {
        /// What that is, and why.
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
            | Self::Uncheckable { .. } => None,
        }
    }
}

/// A refusal, as the emulator writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// The HTTP status.
    pub(crate) status: u16,
    /// What the problem is, for people.
    pub(crate) message: String,
    /// Its parts, each with the place it is at.
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
    fn a_refusal_speaks_the_emulators_words() {
        let answer = br#"{"error":{"code":"not-settled","message":"not at rest",
            "problems":[{"path":"orders","value":"1 locked","allowed":"at rest"}]}}"#;
        let refusal = Refusal::new(StatusCode::REQUEST_TIMEOUT, "/x", answer);
        assert_eq!(
            refusal.to_string(),
            "not at rest (status 408)\n  orders: 1 locked"
        );
    }

    #[test]
    fn a_refusal_says_what_is_allowed() {
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
    fn a_refusal_without_words_shows_what_came() {
        let refusal = Refusal::new(StatusCode::BAD_GATEWAY, "/x", b"oops");
        assert_eq!(refusal.to_string(), "/x answered oops (status 502)");
    }
}
