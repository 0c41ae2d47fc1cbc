//! The operations that can get faults, and the effects that they allow.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::EffectKind;

/// An operation of a client that can get a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[non_exhaustive]
pub enum Operation {
    /// A client sends a message or a batch to a queue or topic over AMQP.
    Send,
    /// A message is delivered to a receiver.
    #[serde(rename = "receive")]
    Deliver,
    /// A delivery is settled, in any way.
    Settle,
    /// A delivery is completed.
    Complete,
    /// A delivery is abandoned.
    Abandon,
    /// A delivery is dead-lettered by its receiver.
    DeadLetter,
    /// A delivery is deferred.
    Defer,
    /// The lock of a message or of a session is renewed.
    RenewLock,
    /// A link to an entity or to its `$management` is attached; links to `$cbs` and to the coordinator do not count.
    Attach,
    /// A connection opens.
    Connect,
    /// A client sends a token to `$cbs`.
    Token,
    /// A client sends a request to `$management`; its name is the operation.
    Management,
    /// A transaction is committed or rolled back by its client.
    Discharge,
    /// A client sends a request to the administration API or over REST; its name is the method.
    Http,
}

impl Operation {
    /// Each with its name in the control API, its noun, and its plural.
    const NAMES: [(Self, &'static str, &'static str, &'static str); 14] = [
        (Self::Send, "send", "send", "sends"),
        (Self::Deliver, "receive", "delivery", "deliveries"),
        (Self::Settle, "settle", "settlement", "settlements"),
        (Self::Complete, "complete", "completion", "completions"),
        (Self::Abandon, "abandon", "abandonment", "abandonments"),
        (
            Self::DeadLetter,
            "dead-letter",
            "dead-lettering",
            "dead-letterings",
        ),
        (Self::Defer, "defer", "deferral", "deferrals"),
        (
            Self::RenewLock,
            "renew-lock",
            "renewal of a lock",
            "renewals of locks",
        ),
        (Self::Attach, "attach", "attach", "attaches"),
        (Self::Connect, "connect", "connection", "connections"),
        (Self::Token, "token", "token", "tokens"),
        (
            Self::Management,
            "management",
            "management request",
            "management requests",
        ),
        (Self::Discharge, "discharge", "discharge", "discharges"),
        (Self::Http, "http", "HTTP request", "HTTP requests"),
    ];

    /// Returns all operations.
    pub fn all() -> impl Iterator<Item = Self> {
        Self::NAMES.into_iter().map(|(operation, ..)| operation)
    }

    /// Returns the operation with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|operation| operation.name() == name)
    }

    /// Returns its name in the control API.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    /// Returns its noun and its plural.
    pub fn nouns(self) -> (&'static str, &'static str) {
        let (_, one, several) = self.words();
        (one, several)
    }

    fn words(self) -> (&'static str, &'static str, &'static str) {
        let mut names = Self::NAMES.into_iter();
        let found = names.find(|(operation, ..)| *operation == self);
        found.map_or(("", "", ""), |(_, name, one, several)| (name, one, several))
    }

    /// Returns the effects that it allows.
    pub fn effects(self) -> impl Iterator<Item = EffectKind> {
        EffectKind::all().filter(move |kind| self.allows(*kind))
    }

    /// Returns whether it allows an effect.
    pub fn allows(self, effect: EffectKind) -> bool {
        match effect {
            EffectKind::LoseReply => !matches!(self, Self::Deliver | Self::Connect),
            EffectKind::Reject => !matches!(self, Self::Deliver | Self::Connect | Self::Http),
            EffectKind::Answer => matches!(
                self,
                Self::RenewLock | Self::Token | Self::Management | Self::Http
            ),
            EffectKind::Detach | EffectKind::ExpireToken => {
                !matches!(self, Self::Connect | Self::Http)
            }
            EffectKind::Close | EffectKind::Stall | EffectKind::Crash | EffectKind::Failover => {
                self != Self::Http
            }
            EffectKind::Postpone => !matches!(self, Self::Connect | Self::Http),
            EffectKind::Elsewhere => self == Self::Deliver,
            EffectKind::Drop | EffectKind::Delay => true,
            EffectKind::HoldBack => self == Self::Send,
            EffectKind::LoseLock | EffectKind::LoseSessionLock => {
                matches!(self, Self::Deliver | Self::RenewLock) || self.is_settlement()
            }
            EffectKind::DeliverTwice => {
                matches!(self, Self::Deliver | Self::Settle | Self::Complete)
            }
            EffectKind::RoundTrip => self == Self::Connect,
        }
    }

    /// Returns whether it concerns messages, whose properties can be conditions of a fault.
    pub fn is_about_messages(self) -> bool {
        let others = [Self::Send, Self::Deliver, Self::RenewLock, Self::Management];
        self.is_settlement() || others.contains(&self)
    }

    /// Returns whether it has names: the operation of a management request, the method of an HTTP request.
    pub fn has_names(self) -> bool {
        matches!(self, Self::Management | Self::Http)
    }

    fn is_settlement(self) -> bool {
        matches!(
            self,
            Self::Settle | Self::Complete | Self::Abandon | Self::DeadLetter | Self::Defer
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_serialized_by_its_name() {
        for operation in Operation::all() {
            let written = serde_json::to_value(operation).unwrap();
            assert_eq!(written, operation.name());
            assert_eq!(Operation::named(operation.name()), Some(operation));
        }
    }
}
