//! The effect of a fault on an operation, as a value; [`FaultBuilder`] has a method for each.

use std::time::Duration;

use servicebus_control_api::{self as api, EffectKind, ErrorText, Operation, Wait, When};

use super::{Fault, FaultBuilder};
use crate::{
    action::Action,
    error::{Error, ErrorKind},
    text,
};

/// The effect of a fault on an operation.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "an effect does nothing before it is applied to an operation"]
pub struct Effect {
    effect: api::Effect,
    /// The constructor call as the test's source code has it, without modifiers.
    call: String,
    /// The modifiers after it.
    modifiers: String,
    /// The first modifier that the effect does not support.
    invalid_modifier: Option<&'static str>,
}

/// Defines the constructor of each effect, and the method of the builder that applies it.
macro_rules! effects {
    ($($(#[$about:meta])+ $name:ident($($argument:ident: $type:ty)?) = $effect:expr;)+) => {
        impl Effect {
            $(
                $(#[$about])+
                pub fn $name($($argument: $type)?) -> Self {
                    let arguments: &[&str] = &[$(stringify!($argument))?];
                    Self::new($effect, stringify!($name), !arguments.is_empty())
                }
            )+
        }

        impl FaultBuilder {
            $(
                $(#[$about])+
                #[track_caller]
                pub fn $name(self $(, $argument: $type)?) -> Action<'static, Fault> {
                    self.apply(Effect::$name($($argument)?))
                }
            )+
        }
    };
}

effects! {
    /// Performs the operation, but drops the reply to the client.
    lose_reply() = api::Effect::LoseReply;
    /// Rejects the operation, without performing it, with an AMQP condition such as `amqp:resource-limit-exceeded`.
    reject(condition: impl Into<String>) = api::Effect::Reject(ErrorText::new(condition));
    /// Rejects the operation as an overloaded service does, with its hint to wait 2 s.
    server_busy() = api::Effect::Reject(ErrorText::new("com.microsoft:server-busy"));
    /// Answers a request, without performing it, with a status from 200 to 599, of HTTP or of a management reply.
    answer(status: u16) =
        api::Effect::Answer { status, error: ErrorText::new("amqp:internal-error") };
    /// Closes the link with an AMQP condition, without performing the operation unless it is [`after`](Effect::after).
    detach(condition: impl Into<String>) =
        api::Effect::Detach { when: BEFORE, error: ErrorText::new(condition) };
    /// Closes the connection with an AMQP condition, without performing the operation unless it is
    /// [`after`](Effect::after).
    close(condition: impl Into<String>) =
        api::Effect::Close { when: BEFORE, error: ErrorText::new(condition) };
    /// Drops the connection without a close frame, and without performing the operation unless it is
    /// [`after`](Effect::after).
    drop_connection() = api::Effect::Drop { when: BEFORE };
    /// Drops all connections of the client without a close frame, as when its process crashes, and without performing the
    /// operation unless it is [`after`](Effect::after).
    crash() = api::Effect::Crash { when: BEFORE };
    /// Updates the service: all locks of messages and sessions are lost and all links are detached, before the operation
    /// unless it is [`after`](Effect::after).
    failover() = api::Effect::Failover { when: BEFORE };
    /// Postpones the operation until nothing else can happen: until a clock that steps by itself would move, or the test
    /// requests it from the control API (`postponed/release`).
    postpone() = api::Effect::Postpone;
    /// Delivers the message to another receiver with credit; without one, nothing changes.
    elsewhere() = api::Effect::Elsewhere;
    /// Delays the operation until the clock of the namespace has advanced by `by`. Later operations do not wait.
    delay(by: Duration) = api::Effect::Delay(Wait::Virtual(by));
    /// Delays the operation in real time. Later operations do not wait.
    delay_real(by: Duration) = api::Effect::Delay(Wait::Real(by));
    /// Sends the outcome of a send after the next outcome of its link.
    reorder_outcome() = api::Effect::HoldBack { behind: 1 };
    /// Ends the lock of the message as if it had expired: before a settlement or renewal, after a delivery. Operations on
    /// entities with sessions do not match, because messages have the lock of their session there.
    lose_lock() = api::Effect::LoseLock;
    /// Ends the lock of the message's session as if it had expired, at the same moments.
    lose_session_lock() = api::Effect::LoseSessionLock;
    /// Sends the outcome of a completion, and delivers the message again; in a transaction at once, whether it is committed
    /// or rolled back.
    redeliver() = api::Effect::DeliverTwice;
    /// Ends the authorization by the tokens of the connection, after the operation, as if they had expired.
    expire_token() = api::Effect::ExpireToken;
    /// Stops reading from the connection for `length` in real time, like a slow peer.
    stop_reading(length: Duration) = api::Effect::Stall(Wait::Real(length));
}

/// The operation is not performed before an effect that ends a link or connection, unless the test says so.
const BEFORE: When = When::Before;

impl Effect {
    /// Sends the outcome of a send after `later` further outcomes of its link, up to 1,000.
    pub fn reorder_outcome_behind(later: u32) -> Self {
        match later {
            1 => Self::reorder_outcome(),
            behind => Self::new(
                api::Effect::HoldBack { behind },
                "reorder_outcome_behind",
                true,
            ),
        }
    }

    /// Adds a round-trip latency to the connection, in real time, at most 60 s.
    pub fn latency(length: Duration) -> Self {
        Self::new(api::Effect::RoundTrip { length }, "latency", true)
    }

    /// Performs the operation before the link or the connection closes; the client gets no reply.
    pub fn after(mut self) -> Self {
        self.modifiers.push_str(".after()");
        match self.effect.when_mut() {
            Some(when) => *when = When::After,
            None => self.invalid_modifier = self.invalid_modifier.or(Some("after")),
        }
        self
    }

    /// Sets the description of the error.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        let description = description.into();
        let modifier = format!(".description({description:?})");
        self.modifiers.push_str(&modifier);
        match self.effect.error_mut() {
            Some(error) => error.description = description,
            None => self.invalid_modifier = self.invalid_modifier.or(Some("description")),
        }
        self
    }

    fn new(effect: api::Effect, constructor: &str, has_argument: bool) -> Self {
        let argument = match has_argument {
            true => argument(&effect),
            false => String::new(),
        };
        Self {
            effect,
            call: format!("{constructor}({argument})"),
            modifiers: String::new(),
            invalid_modifier: None,
        }
    }

    /// Returns the effect for the control API, or an error for an unsupported modifier.
    pub(crate) fn checked(&self) -> Result<api::Effect, Error> {
        let Some(modifier) = self.invalid_modifier else {
            return Ok(self.effect.clone());
        };
        let sentence = format!("Effect::{} cannot have `{modifier}`", self.call);
        Err(Error::new(ErrorKind::InvalidArgument, None, sentence))
    }

    /// Refuses an effect that the operation does not allow. The emulator does so too, but with the names of the control API.
    pub(crate) fn check_at(&self, operation: Operation) -> Result<(), Error> {
        if operation.allows(self.effect.kind()) {
            return Ok(());
        }
        let allowed: Vec<String> = operation.effects().map(constructor).collect();
        let sentence = format!(
            "Effect::{} is not possible at Operation::{operation:?}; possible: {}",
            self.call,
            allowed.join(", ")
        );
        Err(Error::new(ErrorKind::InvalidArgument, None, sentence))
    }

    /// Returns the source code that applies the effect.
    pub(crate) fn to_text(&self) -> String {
        let Self {
            call, modifiers, ..
        } = self;
        match modifiers.is_empty() {
            true => call.clone(),
            false => format!("apply(Effect::{call}{modifiers})"),
        }
    }
}

/// Returns the name of the constructor of an effect.
fn constructor(kind: EffectKind) -> String {
    let name = match kind {
        EffectKind::Drop => "drop_connection",
        EffectKind::HoldBack => "reorder_outcome",
        EffectKind::DeliverTwice => "redeliver",
        EffectKind::Stall => "stop_reading",
        EffectKind::RoundTrip => "latency",
        kind => kind.name(),
    };
    name.replace('-', "_")
}

/// Returns the argument of the constructor as the test's source code has it.
fn argument(effect: &api::Effect) -> String {
    match effect {
        api::Effect::Reject(error)
        | api::Effect::Detach { error, .. }
        | api::Effect::Close { error, .. } => format!("{:?}", error.condition),
        api::Effect::Answer { status, .. } => status.to_string(),
        api::Effect::HoldBack { behind } => behind.to_string(),
        api::Effect::Delay(Wait::Virtual(length) | Wait::Real(length))
        | api::Effect::Stall(Wait::Virtual(length) | Wait::Real(length))
        | api::Effect::RoundTrip { length } => text::seconds(*length),
        _ => String::new(),
    }
}
