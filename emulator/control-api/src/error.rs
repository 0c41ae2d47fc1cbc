//! Error responses: `{"error":{"code","message","problems"}}`.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All error codes.
#[cfg(feature = "schema")]
const CODES: [&str; 22] = [
    "cannot-listen",
    "conflict",
    "cross-site",
    "internal-error",
    "invalid-argument",
    "invalid-body",
    "invalid-query",
    "last-namespace",
    "limit-reached",
    "malformed-request",
    "memory-limit",
    "method-not-allowed",
    "no-control-token",
    "no-tls",
    "not-advanced",
    "not-found",
    "not-settled",
    "refused",
    "request-timeout",
    "too-many",
    "unauthorized",
    "unknown-host",
];

/// The body of every error response.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Error"))]
pub struct ErrorAnswer {
    /// The error.
    pub error: ErrorDetails,
}

/// What is wrong with a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ErrorDetails {
    /// The error code, for programs.
    #[cfg_attr(feature = "schema", schemars(extend("enum" = CODES)))]
    pub code: String,
    /// A description, for people.
    pub message: String,
    /// The single problems; empty if the message says all.
    pub problems: Vec<Problem>,
    /// The message with its problems as one text, for people.
    pub text: String,
}

/// One problem of a request.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Problem {
    /// The place: a parameter, a member of the body, a place in the namespace.
    pub path: String,
    /// The value that was found there.
    pub value: Value,
    /// What is allowed there.
    pub allowed: String,
}

/// The `allowed` text of a problem about the state of the namespace instead of the request.
const IDLE: &str = "idle";

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = &self.path;
        match self.value.as_str() {
            Some(text) => write!(f, "{path}: {text}")?,
            None => write!(f, "{path}: {}", self.value)?,
        }
        match self.allowed.as_str() {
            "" | IDLE => Ok(()),
            allowed => write!(f, " is not allowed; allowed: {allowed}"),
        }
    }
}

impl Problem {
    /// Formats the problem in a line: `Queues[0].Properties.LockDuration "PT1S": 5 s (PT5S) to 5 min (PT5M)`.
    pub fn in_line(&self) -> String {
        let Self { path, allowed, .. } = self;
        let value = match self.value.as_str() {
            Some(text) => text.to_owned(),
            None if self.value.is_null() => String::new(),
            None => self.value.to_string(),
        };
        // A problem of the whole body has no path.
        let place = format!("{path} {value}");
        match place.trim() {
            "" => allowed.clone(),
            place => format!("{place}: {allowed}"),
        }
    }

    /// Creates a problem: the value at a path is not allowed.
    pub fn new(
        path: impl Into<String>,
        value: impl Into<Value>,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into(),
            value: value.into(),
            allowed: allowed.into(),
        }
    }
}
