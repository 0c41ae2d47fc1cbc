//! Assertions that the emulator checks for a client.

use serde::{Deserialize, Serialize};

/// Whether an assertion holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AssertionResult {
    /// Whether it holds.
    pub holds: bool,
    /// The failure, as a test should print it: what was expected and found, what the entity holds, how its messages came
    /// there, and a hint.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// Declares the kinds, each with its name and the fields that it takes beside those of every kind.
macro_rules! kinds {
    ($($kind:ident $name:literal $fields:literal,)+) => {
        /// What an assertion expects. The names are those of the harness's macros, without `assert_` and in camel case.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the macros of the harness describe them")]
        pub enum AssertionKind {
            $($kind,)+
        }

        impl AssertionKind {
            /// All kinds, ordered by name.
            pub const ALL: [Self; 24] = [$(Self::$kind,)+];

            /// Returns the name, such as `dead_lettered`.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }

            /// Returns the names of the fields that it takes beside those of every kind, separated by spaces.
            pub fn fields(self) -> &'static str {
                match self {
                    $(Self::$kind => $fields,)+
                }
            }
        }
    };
}

kinds! {
    Abandoned "abandoned" "message_id body body_json times at_least",
    Attached "attached" "to count",
    Completed "completed" "message_id body body_json count",
    DeadLettered "dead_lettered" "reason description message_id body body_json count",
    Deferred "deferred" "message_id body body_json count",
    Delivered "delivered" "message_id body body_json to times at_least",
    Empty "empty" "",
    Expired "expired" "message_id body body_json count",
    Forwarded "forwarded" "message_id body body_json to count",
    LockNotRenewed "lock_not_renewed" "message_id body body_json",
    LockRenewed "lock_renewed" "message_id body body_json times at_least",
    MessageCount "message_count" "active dead_letter transfer_dead_letter scheduled locked deferred transfer",
    NotAbandoned "not_abandoned" "message_id body body_json",
    NotCompleted "not_completed" "message_id body body_json",
    NotDeadLettered "not_dead_lettered" "reason description message_id body body_json",
    NotDeferred "not_deferred" "message_id body body_json",
    NotDelivered "not_delivered" "message_id body body_json to",
    NotExpired "not_expired" "message_id body body_json",
    NotForwarded "not_forwarded" "message_id body body_json to",
    NotScheduled "not_scheduled" "message_id body body_json at due_in tolerance",
    Scheduled "scheduled" "message_id body body_json count at due_in tolerance",
    SessionOrder "session_order" "session bodies",
    SessionState "session_state" "session text bytes json set",
    UnsettledSends "unsettled_sends" "count at_least at_most",
}

impl AssertionKind {
    /// Returns the kind with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns the fields that it takes beside those of every kind.
    pub fn takes(self) -> impl Iterator<Item = &'static str> {
        self.fields().split_whitespace()
    }

    /// Returns whether it expects that something did not happen.
    pub fn is_negative(self) -> bool {
        self.name().contains("not_")
    }
}
