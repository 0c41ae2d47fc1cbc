//! What becomes of an operation that a fault strikes.

use std::time::Duration;

use serde_json::{Value, json};

use super::Operation;

/// What becomes of an operation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Effect {
    /// It happens, and the client never hears of it.
    LoseReply,
    /// It does not happen, and the client is told why.
    Reject(Words),
    /// The same with the status of a reply or an HTTP response.
    Answer { status: u16, words: Words },
    /// Its link is closed.
    Detach { when: When, words: Words },
    /// Its connection is closed.
    Close { when: When, words: Words },
    /// Its connection ends without a word.
    Drop { when: When },
    /// It happens later; what comes after it does not wait.
    Delay(Wait),
    /// Its outcome is told behind so many later ones of its link.
    HoldBack { behind: u32 },
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
    /// What its connection says and hears takes this long, there and back together.
    RoundTrip(Duration),
}

/// An effect without its particulars.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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
    RoundTrip,
}

/// What a client is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) condition: String,
    pub(crate) description: String,
}

/// Whether an operation happens before its link or connection goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    /// It does not happen.
    Before,
    /// It happens, and the client does not hear of it.
    After,
}

/// A while, and by which clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wait {
    /// The namespace's.
    Virtual(Duration),
    Real(Duration),
}

impl Kind {
    pub(crate) const ALL: [Self; 14] = [
        Self::LoseReply,
        Self::Reject,
        Self::Answer,
        Self::Detach,
        Self::Close,
        Self::Drop,
        Self::Delay,
        Self::HoldBack,
        Self::LoseLock,
        Self::LoseSessionLock,
        Self::DeliverTwice,
        Self::ExpireToken,
        Self::Stall,
        Self::RoundTrip,
    ];

    /// How the control API calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::LoseReply => "lose-reply",
            Self::Reject => "reject",
            Self::Answer => "answer",
            Self::Detach => "detach",
            Self::Close => "close",
            Self::Drop => "drop",
            Self::Delay => "delay",
            Self::HoldBack => "hold-back",
            Self::LoseLock => "lose-lock",
            Self::LoseSessionLock => "lose-session-lock",
            Self::DeliverTwice => "deliver-twice",
            Self::ExpireToken => "expire-token",
            Self::Stall => "stall",
            Self::RoundTrip => "round-trip",
        }
    }
}

impl Effect {
    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::LoseReply => Kind::LoseReply,
            Self::Reject(_) => Kind::Reject,
            Self::Answer { .. } => Kind::Answer,
            Self::Detach { .. } => Kind::Detach,
            Self::Close { .. } => Kind::Close,
            Self::Drop { .. } => Kind::Drop,
            Self::Delay(_) => Kind::Delay,
            Self::HoldBack { .. } => Kind::HoldBack,
            Self::LoseLock => Kind::LoseLock,
            Self::LoseSessionLock => Kind::LoseSessionLock,
            Self::DeliverTwice => Kind::DeliverTwice,
            Self::ExpireToken => Kind::ExpireToken,
            Self::Stall(_) => Kind::Stall,
            Self::RoundTrip(_) => Kind::RoundTrip,
        }
    }

    /// Whether it only takes time, so that another fault may strike the same operation.
    pub(crate) fn only_takes_time(&self) -> bool {
        matches!(self.kind(), Kind::Delay | Kind::RoundTrip)
    }

    /// Whether the operation does not happen, or not now.
    pub(crate) fn prevents(&self) -> bool {
        match self {
            Self::Reject(_) | Self::Answer { .. } | Self::Delay(_) => true,
            Self::Detach { when, .. } | Self::Close { when, .. } | Self::Drop { when } => {
                *when == When::Before
            }
            Self::LoseReply
            | Self::HoldBack { .. }
            | Self::LoseLock
            | Self::LoseSessionLock
            | Self::DeliverTwice
            | Self::ExpireToken
            | Self::Stall(_)
            | Self::RoundTrip(_) => false,
        }
    }

    /// As the control API shows it: its name, or an object with its name as the only key.
    pub(crate) fn to_json(&self) -> Value {
        let name = self.kind().name();
        let metadata = match self {
            Self::LoseReply
            | Self::LoseLock
            | Self::LoseSessionLock
            | Self::DeliverTwice
            | Self::ExpireToken => return name.into(),
            Self::Reject(words) => words.to_json(),
            Self::Answer { status, words } => with(words.to_json(), "status", (*status).into()),
            Self::Detach { when, words } | Self::Close { when, words } => {
                with(words.to_json(), "when", when.name().into())
            }
            Self::Drop { when } => json!({ "when": when.name() }),
            Self::Delay(wait) | Self::Stall(wait) => {
                json!({ "seconds": wait.length().as_secs_f64(), "clock": wait.clock() })
            }
            Self::HoldBack { behind } => json!({ "behind": behind }),
            Self::RoundTrip(length) => json!({ "seconds": length.as_secs_f64() }),
        };
        json!({ name: metadata })
    }

    /// What a timeline says of it.
    pub(crate) fn told(&self, operation: Operation) -> String {
        let noun = operation.noun();
        match self {
            Self::LoseReply => format!("the reply to the {noun} was lost"),
            Self::Reject(words) => format!("the {noun} was rejected with {}", words.condition),
            Self::Answer { status, .. } => {
                format!("the {noun} was answered with the status {status}")
            }
            Self::Detach { when, words } => {
                let (when, condition) = (when.name(), &words.condition);
                format!("the link was detached with {condition} {when} the {noun}")
            }
            Self::Close { when, words } => {
                let (when, condition) = (when.name(), &words.condition);
                format!("the connection was closed with {condition} {when} the {noun}")
            }
            Self::Drop { when } => {
                format!("the connection was dropped {} the {noun}", when.name())
            }
            Self::Delay(wait) => format!("the {noun} was delayed by {}", wait.told()),
            Self::HoldBack { behind } => {
                format!("the outcome of the {noun} was held back behind {behind} later")
            }
            Self::LoseLock => format!("the lock of the message was lost at the {noun}"),
            Self::LoseSessionLock => format!("the lock of the session was lost at the {noun}"),
            Self::DeliverTwice => {
                format!("the message comes again: the {noun} was confirmed in vain")
            }
            Self::ExpireToken => format!("the tokens of the connection ended after the {noun}"),
            Self::Stall(wait) => {
                format!("nothing is read from the connection for {}", wait.told())
            }
            Self::RoundTrip(length) => {
                format!(
                    "round trips of the connection take {} s",
                    length.as_secs_f64()
                )
            }
        }
    }
}

impl Words {
    fn to_json(&self) -> Value {
        json!({ "condition": self.condition, "description": self.description })
    }
}

impl When {
    pub(crate) const ALL: [Self; 2] = [Self::Before, Self::After];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

impl Wait {
    pub(crate) fn length(self) -> Duration {
        match self {
            Self::Virtual(length) | Self::Real(length) => length,
        }
    }

    pub(crate) fn clock(self) -> &'static str {
        match self {
            Self::Virtual(_) => "virtual",
            Self::Real(_) => "real",
        }
    }

    fn told(self) -> String {
        format!("{} s of {} time", self.length().as_secs_f64(), self.clock())
    }
}

fn with(mut object: Value, key: &str, value: Value) -> Value {
    object[key] = value;
    object
}
