//! The effect of a fault on an operation, as a value; [`FaultBuilder`](super::FaultBuilder) has a method for each.

use std::time::Duration;

use servicebus_control_api::{self as api, ErrorText, Wait, When};

use crate::{
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

impl Effect {
    /// Performs the operation, but drops the reply to the client.
    pub fn lose_reply() -> Self {
        Self::new(api::Effect::LoseReply, "lose_reply()")
    }

    /// Rejects the operation, without performing it, with an AMQP condition such as `amqp:resource-limit-exceeded`.
    pub fn reject(condition: impl Into<String>) -> Self {
        let condition = condition.into();
        let call = format!("reject({condition:?})");
        Self::new(api::Effect::Reject(ErrorText::new(condition)), call)
    }

    /// Rejects the operation as an overloaded service does, with its hint to wait 2 s.
    pub fn server_busy() -> Self {
        let busy = ErrorText::new("com.microsoft:server-busy");
        Self::new(api::Effect::Reject(busy), "server_busy()")
    }

    /// Answers a request, without performing it, with a status from 200 to 599, of HTTP or of a management reply.
    pub fn answer(status: u16) -> Self {
        let error = ErrorText::new("amqp:internal-error");
        let effect = api::Effect::Answer { status, error };
        Self::new(effect, format!("answer({status})"))
    }

    /// Closes the link with an AMQP condition, without performing the operation unless it is [`after`](Self::after).
    pub fn detach(condition: impl Into<String>) -> Self {
        let condition = condition.into();
        let call = format!("detach({condition:?})");
        let effect = api::Effect::Detach {
            when: When::Before,
            error: ErrorText::new(condition),
        };
        Self::new(effect, call)
    }

    /// Closes the connection with an AMQP condition, without performing the operation unless it is [`after`](Self::after).
    pub fn close(condition: impl Into<String>) -> Self {
        let condition = condition.into();
        let call = format!("close({condition:?})");
        let effect = api::Effect::Close {
            when: When::Before,
            error: ErrorText::new(condition),
        };
        Self::new(effect, call)
    }

    /// Drops the connection without a close frame, and without performing the operation unless it is [`after`](Self::after).
    pub fn drop_connection() -> Self {
        let when = When::Before;
        Self::new(api::Effect::Drop { when }, "drop_connection()")
    }

    /// Drops all connections of the client without a close frame, as when its process crashes, and without performing the
    /// operation unless it is [`after`](Self::after).
    pub fn crash() -> Self {
        let when = When::Before;
        Self::new(api::Effect::Crash { when }, "crash()")
    }

    /// Updates the service: all locks of messages and sessions are lost and all links are detached, before the operation
    /// unless it is [`after`](Self::after).
    pub fn failover() -> Self {
        let when = When::Before;
        Self::new(api::Effect::Failover { when }, "failover()")
    }

    /// Postpones the operation until nothing else can happen: until a clock that steps by itself would move, or the test
    /// requests it from the control API (`postponed/release`).
    pub fn postpone() -> Self {
        Self::new(api::Effect::Postpone, "postpone()")
    }

    /// Delivers the message to another receiver with credit; without one, nothing changes.
    pub fn elsewhere() -> Self {
        Self::new(api::Effect::Elsewhere, "elsewhere()")
    }

    /// Delays the operation until the clock of the namespace has advanced by `by`. Later operations do not wait.
    pub fn delay(by: Duration) -> Self {
        let call = format!("delay({})", text::seconds(by));
        Self::new(api::Effect::Delay(Wait::Virtual(by)), call)
    }

    /// Delays the operation in real time. Later operations do not wait.
    pub fn delay_real(by: Duration) -> Self {
        let call = format!("delay_real({})", text::seconds(by));
        Self::new(api::Effect::Delay(Wait::Real(by)), call)
    }

    /// Sends the outcome of a send after the next outcome of its link.
    pub fn reorder_outcome() -> Self {
        Self::reorder_outcome_behind(1)
    }

    /// Sends the outcome of a send after `later` further outcomes of its link, up to 1,000.
    pub fn reorder_outcome_behind(later: u32) -> Self {
        let call = match later {
            1 => "reorder_outcome()".to_owned(),
            later => format!("reorder_outcome_behind({later})"),
        };
        Self::new(api::Effect::HoldBack { behind: later }, call)
    }

    /// Ends the lock of the message as if it had expired: before a settlement or renewal, after a delivery.
    pub fn lose_lock() -> Self {
        Self::new(api::Effect::LoseLock, "lose_lock()")
    }

    /// Ends the lock of the message's session as if it had expired, at the same moments.
    pub fn lose_session_lock() -> Self {
        Self::new(api::Effect::LoseSessionLock, "lose_session_lock()")
    }

    /// Sends the outcome of a completion, and delivers the message again.
    pub fn redeliver() -> Self {
        Self::new(api::Effect::DeliverTwice, "redeliver()")
    }

    /// Ends the authorization by the tokens of the connection, after the operation, as if they had expired.
    pub fn expire_token() -> Self {
        Self::new(api::Effect::ExpireToken, "expire_token()")
    }

    /// Stops reading from the connection for `length` in real time, like a slow peer.
    pub fn stop_reading(length: Duration) -> Self {
        let call = format!("stop_reading({})", text::seconds(length));
        Self::new(api::Effect::Stall(Wait::Real(length)), call)
    }

    /// Adds a round-trip latency to the connection, in real time, at most 60 s.
    pub fn latency(length: Duration) -> Self {
        let call = format!("latency({})", text::seconds(length));
        Self::new(api::Effect::RoundTrip { length }, call)
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

    fn new(effect: api::Effect, call: impl Into<String>) -> Self {
        Self {
            effect,
            call: call.into(),
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
