//! The effects of faults on operations.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most effects close nothing and have no error"
)]

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::encoding::seconds;

/// The error for a throttled client, with how long the service asks it to wait (semantics §20.2).
const BUSY: &str = "The request was terminated because the entity is being throttled. Error code: 50009. Please wait 2 \
                    seconds and try again.";

/// The effect on an operation: a name, or an object with the name as its only key and the details as its value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// Performs the operation, but drops the reply to the client.
    LoseReply,
    /// Answers with an error instead of performing the operation.
    Reject(ErrorText),
    /// Answers with the status of a reply or an HTTP response instead of performing the operation.
    Answer {
        /// From 200 to 599.
        status: u16,
        /// The error.
        #[serde(flatten)]
        error: ErrorText,
    },
    /// Closes its link.
    Detach {
        /// Whether the operation is performed before.
        when: When,
        /// The error.
        #[serde(flatten)]
        error: ErrorText,
    },
    /// Closes its connection.
    Close {
        /// Whether the operation is performed before.
        when: When,
        /// The error.
        #[serde(flatten)]
        error: ErrorText,
    },
    /// Drops its connection without a close frame.
    Drop {
        /// Whether the operation is performed before.
        when: When,
    },
    /// Delays the operation; later ones do not wait.
    Delay(Wait),
    /// Sends its outcome after this number of later ones of its link.
    HoldBack {
        /// The number of outcomes.
        behind: u32,
    },
    /// Ends the lock of its message as if it had expired: before a settlement, after a delivery.
    LoseLock,
    /// Ends the lock of its session in the same way.
    LoseSessionLock,
    /// Confirms the settlement to the client, and delivers the message again.
    DeliverTwice,
    /// Ends the tokens of its connection after the operation.
    ExpireToken,
    /// Stops reading from its connection for a while.
    Stall(Wait),
    /// Drops all connections of its party at once without a close frame, as when its process is killed.
    Crash {
        /// Whether the operation is performed before.
        when: When,
    },
    /// Postpones the operation until it is released; later ones do not wait.
    Postpone,
    /// Delivers the message to another receiver with credit.
    Elsewhere,
    /// Updates the service: all locks are lost, and all links but those to `$cbs` are detached.
    Failover {
        /// Whether the operation is performed before.
        when: When,
    },
    /// Adds a round-trip latency to its connection.
    RoundTrip {
        /// The latency.
        #[serde(rename = "seconds", with = "seconds")]
        length: Duration,
    },
}

/// Declares the kinds of effects, each with its name in the control API.
macro_rules! kinds {
    ($($kind:ident $name:literal,)+) => {
        /// An effect without its details.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[expect(missing_docs, reason = "each is described at `Effect`")]
        pub enum EffectKind {
            $($kind,)+
        }

        impl EffectKind {
            /// Returns all kinds.
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$kind),+].into_iter()
            }

            /// Returns its name in the control API.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)+
                }
            }
        }

        impl Effect {
            /// Returns it without its details.
            pub fn kind(&self) -> EffectKind {
                match self {
                    $(Self::$kind { .. } => EffectKind::$kind,)+
                }
            }
        }
    };
}

kinds! {
    LoseReply "lose-reply",
    Reject "reject",
    Answer "answer",
    Detach "detach",
    Close "close",
    Drop "drop",
    Delay "delay",
    HoldBack "hold-back",
    LoseLock "lose-lock",
    LoseSessionLock "lose-session-lock",
    DeliverTwice "deliver-twice",
    ExpireToken "expire-token",
    Stall "stall",
    Crash "crash",
    Postpone "postpone",
    Elsewhere "elsewhere",
    Failover "failover",
    RoundTrip "round-trip",
}

/// The error for a client.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorText {
    /// The AMQP condition.
    pub condition: String,
    /// The description.
    pub description: String,
}

/// Whether an operation is performed before its link or connection closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// It is not performed.
    Before,
    /// It is performed, but the client gets no reply.
    After,
}

/// A duration, and its clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "clock", content = "seconds", rename_all = "kebab-case")]
pub enum Wait {
    /// By the clock of the namespace.
    #[serde(with = "seconds")]
    Virtual(Duration),
    /// By the clock of the machine.
    #[serde(with = "seconds")]
    Real(Duration),
}

impl EffectKind {
    /// Returns the effect with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name() == name)
    }
}

impl Effect {
    /// Returns whether it only takes time, so that another fault may affect the same operation.
    pub fn only_takes_time(&self) -> bool {
        matches!(
            self,
            Self::Delay(_) | Self::Postpone | Self::RoundTrip { .. }
        )
    }

    /// Returns whether it prevents or postpones the operation.
    pub fn prevents(&self) -> bool {
        match self {
            Self::Reject(_) | Self::Answer { .. } | Self::Delay(_) | Self::Postpone => true,
            Self::Detach { when, .. }
            | Self::Close { when, .. }
            | Self::Drop { when }
            | Self::Crash { when }
            | Self::Failover { when } => *when == When::Before,
            _ => false,
        }
    }

    /// Returns the error for the client, if it has one.
    pub fn error_mut(&mut self) -> Option<&mut ErrorText> {
        match self {
            Self::Reject(error)
            | Self::Answer { error, .. }
            | Self::Detach { error, .. }
            | Self::Close { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns when the link or connection closes, if it closes one.
    pub fn when_mut(&mut self) -> Option<&mut When> {
        match self {
            Self::Detach { when, .. }
            | Self::Close { when, .. }
            | Self::Drop { when }
            | Self::Crash { when }
            | Self::Failover { when } => Some(when),
            _ => None,
        }
    }

    /// Returns the default condition of an effect, if it has one.
    pub fn default_condition(kind: EffectKind) -> Option<&'static str> {
        match kind {
            EffectKind::Answer => Some("amqp:internal-error"),
            EffectKind::Detach => Some("amqp:link:detach-forced"),
            EffectKind::Close => Some("amqp:connection:forced"),
            _ => None,
        }
    }
}

impl ErrorText {
    /// Creates an error with the usual description of its condition.
    pub fn new(condition: impl Into<String>) -> Self {
        let condition = condition.into();
        let description = match condition.as_str() {
            "com.microsoft:server-busy" => BUSY.to_owned(),
            other => format!("This was scripted: {other}."),
        };
        Self {
            condition,
            description,
        }
    }
}

impl When {
    /// Both values.
    pub const ALL: [Self; 2] = [Self::Before, Self::After];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

impl Wait {
    /// Returns the duration.
    pub fn length(self) -> Duration {
        match self {
            Self::Virtual(length) | Self::Real(length) => length,
        }
    }

    /// Returns the name of the clock.
    pub fn clock(self) -> &'static str {
        match self {
            Self::Virtual(_) => "virtual",
            Self::Real(_) => "real",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn effects_have_the_form_of_the_control_api() {
        let half = Duration::from_millis(500);
        for (effect, expected) in [
            (Effect::LoseReply, json!("lose-reply")),
            (
                Effect::Drop { when: When::After },
                json!({"drop": {"when": "after"}}),
            ),
            (
                Effect::Delay(Wait::Real(half)),
                json!({"delay": {"seconds": 0.5, "clock": "real"}}),
            ),
            (
                Effect::RoundTrip { length: half },
                json!({"round-trip": {"seconds": 0.5}}),
            ),
            (
                Effect::Answer {
                    status: 410,
                    error: ErrorText::new("amqp:not-found"),
                },
                json!({"answer": {
                    "status": 410,
                    "condition": "amqp:not-found",
                    "description": "This was scripted: amqp:not-found.",
                }}),
            ),
        ] {
            assert_eq!(serde_json::to_value(&effect).unwrap(), expected);
            assert_eq!(serde_json::from_value::<Effect>(expected).unwrap(), effect);
        }
    }
}
