//! Assertions that the emulator checks for a client.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether an assertion holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct AssertionResult {
    /// Whether it holds.
    pub holds: bool,
    /// The failure, as a test should print it: what was expected and found, what the entity holds, how its messages came
    /// there, and a hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}
