//! The operations that can get faults, and the effects that they allow.

use serde::{Deserialize, Serialize};

use super::EffectKind;

/// Declares the operations, each with its name in the control API, its noun, and its plural.
macro_rules! operations {
    ($($(#[$attribute:meta])+ $operation:ident $name:literal, $noun:literal, $plural:literal;)+) => {
        /// An operation of a client that can get a fault.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[non_exhaustive]
        pub enum Operation {
            $($(#[$attribute])+ $operation,)+
        }

        impl Operation {
            /// Returns all operations.
            pub fn all() -> impl Iterator<Item = Self> {
                [$(Self::$operation),+].into_iter()
            }

            /// Returns its name in the control API.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$operation => $name,)+
                }
            }

            /// Returns its noun and its plural.
            pub fn nouns(self) -> (&'static str, &'static str) {
                match self {
                    $(Self::$operation => ($noun, $plural),)+
                }
            }
        }
    };
}

operations! {
    /// A client sends a message or a batch to a queue or topic over AMQP.
    Send "send", "send", "sends";
    /// A message is delivered to a receiver.
    #[serde(rename = "receive")]
    Deliver "receive", "delivery", "deliveries";
    /// A delivery is settled, in any way.
    Settle "settle", "settlement", "settlements";
    /// A delivery is completed.
    Complete "complete", "completion", "completions";
    /// A delivery is abandoned.
    Abandon "abandon", "abandonment", "abandonments";
    /// A delivery is dead-lettered by its receiver.
    DeadLetter "dead-letter", "dead-lettering", "dead-letterings";
    /// A delivery is deferred.
    Defer "defer", "deferral", "deferrals";
    /// The lock of a message or of a session is renewed.
    RenewLock "renew-lock", "renewal of a lock", "renewals of locks";
    /// A link to an entity or to its `$management` is attached; links to `$cbs` and to the coordinator do not count.
    Attach "attach", "attach", "attaches";
    /// A connection opens.
    Connect "connect", "connection", "connections";
    /// A client sends a token to `$cbs`.
    Token "token", "token", "tokens";
    /// A client sends a request to `$management`; its name is the operation.
    Management "management", "management request", "management requests";
    /// A transaction is committed or rolled back by its client.
    Discharge "discharge", "discharge", "discharges";
    /// A client sends a request to the administration API or over REST; its name is the method.
    Http "http", "HTTP request", "HTTP requests";
}

impl Operation {
    /// Returns the operation with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().find(|operation| operation.name() == name)
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
