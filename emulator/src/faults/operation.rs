//! What can be spoiled, and which effects make sense for it.

use serde::Serialize;

use super::effect::Kind;

/// What a client does, as the emulator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Operation {
    /// A transfer to a queue or topic, of one message or a batch.
    Send,
    /// A message is delivered to a receiver.
    Receive,
    /// A delivery is settled, in whichever way.
    Settle,
    Complete,
    Abandon,
    DeadLetter,
    Defer,
    /// The lock of a message or session is renewed.
    RenewLock,
    /// A link to an entity or its `$management` opens.
    Attach,
    /// A connection opens.
    Connect,
    /// A token is put to `$cbs`.
    Token,
    /// A request comes to `$management`.
    Management,
    /// A transaction is committed or rolled back by its client.
    Discharge,
    /// A request comes to the administration API or the REST data plane.
    Http,
}

impl Operation {
    pub(crate) const ALL: [Self; 14] = [
        Self::Send,
        Self::Receive,
        Self::Settle,
        Self::Complete,
        Self::Abandon,
        Self::DeadLetter,
        Self::Defer,
        Self::RenewLock,
        Self::Attach,
        Self::Connect,
        Self::Token,
        Self::Management,
        Self::Discharge,
        Self::Http,
    ];

    /// How the control API calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "receive",
            Self::Settle => "settle",
            Self::Complete => "complete",
            Self::Abandon => "abandon",
            Self::DeadLetter => "dead-letter",
            Self::Defer => "defer",
            Self::RenewLock => "renew-lock",
            Self::Attach => "attach",
            Self::Connect => "connect",
            Self::Token => "token",
            Self::Management => "management",
            Self::Discharge => "discharge",
            Self::Http => "http",
        }
    }

    /// How a timeline calls it.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Receive => "delivery",
            Self::Settle => "settlement",
            Self::Complete => "completion",
            Self::Abandon => "abandonment",
            Self::DeadLetter => "dead-lettering",
            Self::Defer => "deferral",
            Self::RenewLock => "renewal of a lock",
            Self::Attach => "attach",
            Self::Connect => "connection",
            Self::Token => "token",
            Self::Management => "management request",
            Self::Discharge => "discharge",
            Self::Http => "HTTP request",
        }
    }

    /// The effects that make sense for it.
    pub(crate) fn effects(self) -> impl Iterator<Item = Kind> {
        Kind::ALL.into_iter().filter(move |kind| self.allows(*kind))
    }

    pub(crate) fn allows(self, effect: Kind) -> bool {
        match effect {
            Kind::LoseReply => !matches!(self, Self::Receive | Self::Connect),
            Kind::Reject => !matches!(self, Self::Receive | Self::Connect | Self::Http),
            Kind::Answer => matches!(
                self,
                Self::RenewLock | Self::Token | Self::Management | Self::Http
            ),
            Kind::Detach | Kind::ExpireToken => !matches!(self, Self::Connect | Self::Http),
            Kind::Close | Kind::Stall => self != Self::Http,
            Kind::Drop | Kind::Delay => true,
            Kind::HoldBack => self == Self::Send,
            Kind::LoseLock | Kind::LoseSessionLock => matches!(
                self,
                Self::Receive
                    | Self::Settle
                    | Self::Complete
                    | Self::Abandon
                    | Self::DeadLetter
                    | Self::Defer
                    | Self::RenewLock
            ),
            Kind::DeliverTwice => matches!(self, Self::Receive | Self::Settle | Self::Complete),
            Kind::RoundTrip => self == Self::Connect,
        }
    }

    /// Whether it is about messages, whose properties can narrow a fault.
    pub(crate) fn is_about_messages(self) -> bool {
        match self {
            Self::Send
            | Self::Receive
            | Self::Settle
            | Self::Complete
            | Self::Abandon
            | Self::DeadLetter
            | Self::Defer
            | Self::RenewLock
            | Self::Management => true,
            Self::Attach | Self::Connect | Self::Token | Self::Discharge | Self::Http => false,
        }
    }

    /// Whether its kinds have names: the operation of a management request, the method of an HTTP request.
    pub(crate) fn has_names(self) -> bool {
        matches!(self, Self::Management | Self::Http)
    }
}
