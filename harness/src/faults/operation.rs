//! The operations that a fault can be set on, by their names in the control API and in failures.

/// What a client does that a fault can be set on, as the emulator sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// A message or a batch is sent to a queue or topic over AMQP.
    Send,
    /// A message is delivered to a receiver.
    Deliver,
    /// A delivery is settled, in whichever way.
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
    /// A link to an entity or to its `$management` opens; those to `$cbs` and to the coordinator do not count.
    Attach,
    /// A connection opens.
    Connect,
    /// A token is put to `$cbs`.
    Token,
    /// A request comes to `$management`; [`named`](super::FaultBuilder::named) tells which.
    Management,
    /// A transaction is committed or rolled back by its client.
    Discharge,
    /// A request comes to the administration API or over REST; [`named`](super::FaultBuilder::named) tells by which method.
    Http,
}

impl Operation {
    /// Returns the name by which the control API knows the operation.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Deliver => "receive",
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

    /// Returns what one of them and what several are called.
    pub(super) fn nouns(self) -> (&'static str, &'static str) {
        match self {
            Self::Send => ("send", "sends"),
            Self::Deliver => ("delivery", "deliveries"),
            Self::Settle => ("settlement", "settlements"),
            Self::Complete => ("completion", "completions"),
            Self::Abandon => ("abandonment", "abandonments"),
            Self::DeadLetter => ("dead-lettering", "dead-letterings"),
            Self::Defer => ("deferral", "deferrals"),
            Self::RenewLock => ("renewal of a lock", "renewals of locks"),
            Self::Attach => ("attach", "attaches"),
            Self::Connect => ("connection", "connections"),
            Self::Token => ("token", "tokens"),
            Self::Management => ("management request", "management requests"),
            Self::Discharge => ("discharge", "discharges"),
            Self::Http => ("HTTP request", "HTTP requests"),
        }
    }
}
