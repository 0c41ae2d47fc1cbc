//! What becomes of an operation on which a fault takes effect.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "most effects close nothing and have no error"
)]

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::encoding::seconds;

/// What a throttled client reads, with how long the service asks it to wait (semantics §20.2).
const BUSY: &str = "The request was terminated because the entity is being throttled. Error code: 50009. Please wait 2 \
                    seconds and try again.";

/// What becomes of an operation: a name, or an object with the name as its only key and the details under it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effect {
    /// It happens, and the client gets no reply.
    LoseReply,
    /// It does not happen, and the client gets an error.
    Reject(ErrorText),
    /// The same with the status of a reply or an HTTP response.
    Answer {
        /// From 200 to 599.
        status: u16,
        /// The error.
        #[serde(flatten)]
        error: ErrorText,
    },
    /// Its link is closed.
    Detach {
        /// Whether the operation happens before.
        when: When,
        /// The error.
        #[serde(flatten)]
        error: ErrorText,
    },
    /// Its connection is closed.
    Close {
        /// Whether the operation happens before.
        when: When,
        /// The error.
        #[serde(flatten)]
        error: ErrorText,
    },
    /// Its connection ends without a close frame.
    Drop {
        /// Whether the operation happens before.
        when: When,
    },
    /// It happens later; what comes after it does not wait.
    Delay(Wait),
    /// Its outcome is sent behind so many later ones of its link.
    HoldBack {
        /// How many.
        behind: u32,
    },
    /// The lock of its message ends as if its time had run out: before a settlement, after a delivery.
    LoseLock,
    /// The same of the session.
    LoseSessionLock,
    /// The client is told that its message is done, and the message comes again.
    DeliverTwice,
    /// The tokens of its connection end, after it.
    ExpireToken,
    /// Nothing is read from its connection for a while.
    Stall(Wait),
    /// All connections of its party end at once without a close frame, as when its process is killed.
    Crash {
        /// Whether the operation happens before.
        when: When,
    },
    /// It waits until it is released; what comes after it does not wait.
    Postpone,
    /// The message goes to another receiver that has asked for messages.
    Elsewhere,
    /// The service is updated: all locks are lost, and all links but those to `$cbs` are detached.
    Failover {
        /// Whether the operation happens before.
        when: When,
    },
    /// What its connection says and hears takes this long, there and back together.
    RoundTrip {
        /// How long.
        #[serde(rename = "seconds", with = "seconds")]
        length: Duration,
    },
}

/// An effect without its details.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "each is described at `Effect`")]
pub enum EffectKind {
    LoseReply,
    Reject,
    Answer,
    Detach,
    Close,
    Drop,
    Delay,
    HoldBack,
    LoseLock,
    LoseSessionLock,
    DeliverTwice,
    ExpireToken,
    Stall,
    Crash,
    Postpone,
    Elsewhere,
    Failover,
    RoundTrip,
}

/// The error that a client gets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorText {
    /// The AMQP condition.
    pub condition: String,
    /// What is said of it.
    pub description: String,
}

/// Whether an operation happens before its link or connection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum When {
    /// It does not happen.
    Before,
    /// It happens, and the client does not hear of it.
    After,
}

/// A while, and by which clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "clock", content = "seconds", rename_all = "kebab-case")]
pub enum Wait {
    /// The namespace's.
    #[serde(with = "seconds")]
    Virtual(Duration),
    /// That of the machine.
    #[serde(with = "seconds")]
    Real(Duration),
}

impl EffectKind {
    const NAMES: [(Self, &'static str); 18] = [
        (Self::LoseReply, "lose-reply"),
        (Self::Reject, "reject"),
        (Self::Answer, "answer"),
        (Self::Detach, "detach"),
        (Self::Close, "close"),
        (Self::Drop, "drop"),
        (Self::Delay, "delay"),
        (Self::HoldBack, "hold-back"),
        (Self::LoseLock, "lose-lock"),
        (Self::LoseSessionLock, "lose-session-lock"),
        (Self::DeliverTwice, "deliver-twice"),
        (Self::ExpireToken, "expire-token"),
        (Self::Stall, "stall"),
        (Self::Crash, "crash"),
        (Self::Postpone, "postpone"),
        (Self::Elsewhere, "elsewhere"),
        (Self::Failover, "failover"),
        (Self::RoundTrip, "round-trip"),
    ];

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.into_iter().map(|(kind, _)| kind)
    }

    /// Returns the effect of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|kind| kind.name() == name)
    }

    /// Returns the name by which the control API knows the effect.
    pub fn name(self) -> &'static str {
        let mut names = Self::NAMES.into_iter();
        names
            .find(|(kind, _)| *kind == self)
            .map_or("", |(_, name)| name)
    }
}

impl Effect {
    /// Returns it without its details.
    pub fn kind(&self) -> EffectKind {
        match self {
            Self::LoseReply => EffectKind::LoseReply,
            Self::Reject(_) => EffectKind::Reject,
            Self::Answer { .. } => EffectKind::Answer,
            Self::Detach { .. } => EffectKind::Detach,
            Self::Close { .. } => EffectKind::Close,
            Self::Drop { .. } => EffectKind::Drop,
            Self::Delay(_) => EffectKind::Delay,
            Self::HoldBack { .. } => EffectKind::HoldBack,
            Self::LoseLock => EffectKind::LoseLock,
            Self::LoseSessionLock => EffectKind::LoseSessionLock,
            Self::DeliverTwice => EffectKind::DeliverTwice,
            Self::ExpireToken => EffectKind::ExpireToken,
            Self::Stall(_) => EffectKind::Stall,
            Self::Crash { .. } => EffectKind::Crash,
            Self::Postpone => EffectKind::Postpone,
            Self::Elsewhere => EffectKind::Elsewhere,
            Self::Failover { .. } => EffectKind::Failover,
            Self::RoundTrip { .. } => EffectKind::RoundTrip,
        }
    }

    /// Whether it only takes time, so that another fault may take effect on the same operation.
    pub fn only_takes_time(&self) -> bool {
        matches!(
            self,
            Self::Delay(_) | Self::Postpone | Self::RoundTrip { .. }
        )
    }

    /// Whether the operation does not happen, or not now.
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

    /// Returns the error that the client gets, where it gets one.
    pub fn error_mut(&mut self) -> Option<&mut ErrorText> {
        match self {
            Self::Reject(error)
            | Self::Answer { error, .. }
            | Self::Detach { error, .. }
            | Self::Close { error, .. } => Some(error),
            _ => None,
        }
    }

    /// Returns when the link or connection goes, where one does.
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

    /// The condition of an effect where none is given, if it need not be.
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
    /// An error with the description that is usual for its condition.
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
    /// All of them.
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
    /// Returns for how long.
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
