//! What a fault does to an operation, as a value: the sentences of [`FaultBuilder`](super::FaultBuilder) are made of these.

use std::time::Duration;

use servicebus_control_api::{self as api, ErrorText, Wait, When};

use crate::{
    error::{Error, ErrorKind},
    text,
};

/// What becomes of an operation.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "nothing goes wrong before it is applied to something"]
pub struct Effect {
    effect: api::Effect,
    /// As it is written in a test, without what is said of it behind that.
    call: String,
    /// What is said of it behind that.
    modifiers: String,
    /// The first of these that it cannot have.
    misplaced: Option<&'static str>,
}

impl Effect {
    /// Lets it happen, and the client gets no reply.
    pub fn lose_reply() -> Self {
        Self::new(api::Effect::LoseReply, "lose_reply()")
    }

    /// Refuses it with an AMQP condition, such as `amqp:resource-limit-exceeded`; nothing happens.
    pub fn reject(condition: impl Into<String>) -> Self {
        let condition = condition.into();
        let call = format!("reject({condition:?})");
        Self::new(api::Effect::Reject(ErrorText::new(condition)), call)
    }

    /// Refuses it as the service does when it has too much to do, with its hint to wait 2 s.
    pub fn server_busy() -> Self {
        let busy = ErrorText::new("com.microsoft:server-busy");
        Self::new(api::Effect::Reject(busy), "server_busy()")
    }

    /// Answers a request with a status from 200 to 599, of HTTP or of a management reply; nothing happens.
    pub fn answer(status: u16) -> Self {
        let error = ErrorText::new("amqp:internal-error");
        let effect = api::Effect::Answer { status, error };
        Self::new(effect, format!("answer({status})"))
    }

    /// Closes the link with an AMQP condition; nothing happens, unless it is [`after`](Self::after).
    pub fn detach(condition: impl Into<String>) -> Self {
        let condition = condition.into();
        let call = format!("detach({condition:?})");
        let effect = api::Effect::Detach {
            when: When::Before,
            error: ErrorText::new(condition),
        };
        Self::new(effect, call)
    }

    /// Closes the connection with an AMQP condition; nothing happens, unless it is [`after`](Self::after).
    pub fn close(condition: impl Into<String>) -> Self {
        let condition = condition.into();
        let call = format!("close({condition:?})");
        let effect = api::Effect::Close {
            when: When::Before,
            error: ErrorText::new(condition),
        };
        Self::new(effect, call)
    }

    /// Ends the connection without a close frame; nothing happens, unless it is [`after`](Self::after).
    pub fn drop_connection() -> Self {
        let when = When::Before;
        Self::new(api::Effect::Drop { when }, "drop_connection()")
    }

    /// Ends all connections of the client without a close frame, as when its process crashes; nothing happens, unless it is
    /// [`after`](Self::after).
    pub fn crash() -> Self {
        let when = When::Before;
        Self::new(api::Effect::Crash { when }, "crash()")
    }

    /// Does what an update of the service does: all locks of messages and sessions are lost and all links are detached, before
    /// the operation, unless it is [`after`](Self::after).
    pub fn failover() -> Self {
        let when = When::Before;
        Self::new(api::Effect::Failover { when }, "failover()")
    }

    /// Lets it wait until nothing else can happen: until a clock that steps by itself would move, or the test asks the control
    /// API for it (`postponed/release`).
    pub fn postpone() -> Self {
        Self::new(api::Effect::Postpone, "postpone()")
    }

    /// Gives a delivery to another receiver that has asked for messages; where there is none, nothing changes.
    pub fn elsewhere() -> Self {
        Self::new(api::Effect::Elsewhere, "elsewhere()")
    }

    /// Lets it wait until the clock of the namespace has advanced by so much. What comes after it does not wait.
    pub fn delay(by: Duration) -> Self {
        let call = format!("delay({})", text::seconds(by));
        Self::new(api::Effect::Delay(Wait::Virtual(by)), call)
    }

    /// Lets it wait for so long in real time. What comes after it does not wait.
    pub fn delay_real(by: Duration) -> Self {
        let call = format!("delay_real({})", text::seconds(by));
        Self::new(api::Effect::Delay(Wait::Real(by)), call)
    }

    /// Sends the outcome of a send only after the next outcome of its link.
    pub fn reorder_outcome() -> Self {
        Self::reorder_outcome_behind(1)
    }

    /// Sends the outcome of a send only after so many later ones of its link, up to 1,000.
    pub fn reorder_outcome_behind(later: u32) -> Self {
        let call = match later {
            1 => "reorder_outcome()".to_owned(),
            later => format!("reorder_outcome_behind({later})"),
        };
        Self::new(api::Effect::HoldBack { behind: later }, call)
    }

    /// Ends the lock of the message as if its time had run out: before a settlement or renewal, after a delivery.
    pub fn lose_lock() -> Self {
        Self::new(api::Effect::LoseLock, "lose_lock()")
    }

    /// Ends the lock of the message's session in the same way.
    pub fn lose_session_lock() -> Self {
        Self::new(api::Effect::LoseSessionLock, "lose_session_lock()")
    }

    /// Sends the outcome of a completion, and delivers the message again.
    pub fn redeliver() -> Self {
        Self::new(api::Effect::DeliverTwice, "redeliver()")
    }

    /// Ends what the tokens of the connection give, after the operation, as if their time had run out.
    pub fn expire_token() -> Self {
        Self::new(api::Effect::ExpireToken, "expire_token()")
    }

    /// Reads nothing more from the connection for so long in real time, like a peer that is slow.
    pub fn stop_reading(length: Duration) -> Self {
        let call = format!("stop_reading({})", text::seconds(length));
        Self::new(api::Effect::Stall(Wait::Real(length)), call)
    }

    /// Lets everything on the connection take so long in real time, there and back together, at most 60 s.
    pub fn latency(length: Duration) -> Self {
        let call = format!("latency({})", text::seconds(length));
        Self::new(api::Effect::RoundTrip { length }, call)
    }

    /// Lets the operation happen before the link or the connection is closed; the client gets no reply.
    pub fn after(mut self) -> Self {
        self.modifiers.push_str(".after()");
        match self.effect.when_mut() {
            Some(when) => *when = When::After,
            None => self.misplaced = self.misplaced.or(Some("after")),
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
            None => self.misplaced = self.misplaced.or(Some("description")),
        }
        self
    }

    fn new(effect: api::Effect, call: impl Into<String>) -> Self {
        Self {
            effect,
            call: call.into(),
            modifiers: String::new(),
            misplaced: None,
        }
    }

    /// Returns the effect as the control API takes it, or why it takes no such effect.
    pub(crate) fn checked(&self) -> Result<api::Effect, Error> {
        let Some(modifier) = self.misplaced else {
            return Ok(self.effect.clone());
        };
        let sentence = format!("Effect::{} cannot have `{modifier}`", self.call);
        Err(Error::new(ErrorKind::InvalidArgument, None, sentence))
    }

    /// Returns the end of the sentence that scripts it.
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
