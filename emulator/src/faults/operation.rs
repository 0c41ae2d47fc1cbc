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
    pub(crate) fn effects(self) -> &'static [Kind] {
        use Kind::{
            Answer, Close, Delay, DeliverTwice, Detach, Drop, ExpireToken, HoldBack, LoseLock,
            LoseReply, LoseSessionLock, Reject, RoundTrip, Stall,
        };
        match self {
            Self::Send => &[
                LoseReply,
                Reject,
                Detach,
                Close,
                Drop,
                Delay,
                HoldBack,
                ExpireToken,
                Stall,
            ],
            Self::Receive => &[
                Detach,
                Close,
                Drop,
                Delay,
                LoseLock,
                LoseSessionLock,
                DeliverTwice,
                ExpireToken,
                Stall,
            ],
            Self::Settle | Self::Complete => &[
                LoseReply,
                Reject,
                Detach,
                Close,
                Drop,
                Delay,
                LoseLock,
                LoseSessionLock,
                DeliverTwice,
                ExpireToken,
                Stall,
            ],
            Self::Abandon | Self::DeadLetter | Self::Defer => &[
                LoseReply,
                Reject,
                Detach,
                Close,
                Drop,
                Delay,
                LoseLock,
                LoseSessionLock,
                ExpireToken,
                Stall,
            ],
            Self::RenewLock => &[
                LoseReply,
                Reject,
                Answer,
                Detach,
                Close,
                Drop,
                Delay,
                LoseLock,
                LoseSessionLock,
                ExpireToken,
                Stall,
            ],
            Self::Token | Self::Management => &[
                LoseReply,
                Reject,
                Answer,
                Detach,
                Close,
                Drop,
                Delay,
                ExpireToken,
                Stall,
            ],
            Self::Attach | Self::Discharge => &[
                LoseReply,
                Reject,
                Detach,
                Close,
                Drop,
                Delay,
                ExpireToken,
                Stall,
            ],
            Self::Connect => &[Close, Drop, Delay, RoundTrip, Stall],
            Self::Http => &[LoseReply, Answer, Drop, Delay],
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
