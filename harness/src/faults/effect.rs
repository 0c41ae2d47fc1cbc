//! What a fault does to an operation, as a value: the sentences of [`FaultBuilder`](super::FaultBuilder) are made of these.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::text;

/// What becomes of an operation.
#[derive(Debug, Clone, PartialEq)]
#[must_use = "nothing goes wrong before it is applied to something"]
pub struct Effect {
    name: &'static str,
    arguments: Map<String, Value>,
    /// As it is written in a test, without what is said of it behind that.
    call: String,
    /// What is said of it behind that.
    modifiers: String,
}

impl Effect {
    /// Lets it happen, and the client gets no reply.
    pub fn lose_reply() -> Self {
        Self::new("lose-reply", "lose_reply()")
    }

    /// Refuses it with an AMQP condition, such as `amqp:resource-limit-exceeded`; nothing happens.
    pub fn reject(condition: impl Into<String>) -> Self {
        let condition = condition.into();
        let call = format!("reject({condition:?})");
        Self::new("reject", call).with("condition", condition)
    }

    /// Refuses it as the service does when it has too much to do, with its hint to wait 2 s.
    pub fn server_busy() -> Self {
        Self::new("reject", "server_busy()").with("condition", "com.microsoft:server-busy")
    }

    /// Answers a request with a status from 200 to 599, of HTTP or of a management reply; nothing happens.
    pub fn answer(status: u16) -> Self {
        Self::new("answer", format!("answer({status})")).with("status", status)
    }

    /// Closes the link with an AMQP condition; nothing happens, unless it is [`after`](Self::after).
    pub fn detach(condition: impl Into<String>) -> Self {
        let condition = condition.into();
        let call = format!("detach({condition:?})");
        Self::new("detach", call).with("condition", condition)
    }

    /// Closes the connection with an AMQP condition; nothing happens, unless it is [`after`](Self::after).
    pub fn close(condition: impl Into<String>) -> Self {
        let condition = condition.into();
        let call = format!("close({condition:?})");
        Self::new("close", call).with("condition", condition)
    }

    /// Ends the connection without a close frame; nothing happens, unless it is [`after`](Self::after).
    pub fn drop_connection() -> Self {
        Self::new("drop", "drop_connection()")
    }

    /// Lets it wait until the clock of the namespace has advanced by so much. What comes after it does not wait.
    pub fn delay(by: Duration) -> Self {
        Self::lasting("delay", "delay", by, "virtual")
    }

    /// Lets it wait for so long in real time. What comes after it does not wait.
    pub fn delay_real(by: Duration) -> Self {
        Self::lasting("delay", "delay_real", by, "real")
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
        Self::new("hold-back", call).with("behind", later)
    }

    /// Ends the lock of the message as if its time had run out: before a settlement or renewal, after a delivery.
    pub fn lose_lock() -> Self {
        Self::new("lose-lock", "lose_lock()")
    }

    /// Ends the lock of the message's session in the same way.
    pub fn lose_session_lock() -> Self {
        Self::new("lose-session-lock", "lose_session_lock()")
    }

    /// Sends the outcome of a completion, and delivers the message again.
    pub fn redeliver() -> Self {
        Self::new("deliver-twice", "redeliver()")
    }

    /// Ends what the tokens of the connection give, after the operation, as if their time had run out.
    pub fn expire_token() -> Self {
        Self::new("expire-token", "expire_token()")
    }

    /// Reads nothing more from the connection for so long in real time, like a peer that is slow.
    pub fn stop_reading(length: Duration) -> Self {
        Self::lasting("stall", "stop_reading", length, "real")
    }

    /// Lets everything on the connection take so long in real time, there and back together, at most 60 s.
    pub fn latency(length: Duration) -> Self {
        let call = format!("latency({})", text::seconds(length));
        Self::new("round-trip", call).with("seconds", length.as_secs_f64())
    }

    /// Lets the operation happen before the link or the connection is closed; the client gets no reply.
    pub fn after(mut self) -> Self {
        self.modifiers.push_str(".after()");
        self.with("when", "after")
    }

    /// Sets the description of the error.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        let description = description.into();
        let modifier = format!(".description({description:?})");
        self.modifiers.push_str(&modifier);
        self.with("description", description)
    }

    fn new(name: &'static str, call: impl Into<String>) -> Self {
        Self {
            name,
            arguments: Map::new(),
            call: call.into(),
            modifiers: String::new(),
        }
    }

    fn lasting(name: &'static str, method: &str, length: Duration, clock: &str) -> Self {
        let call = format!("{method}({})", text::seconds(length));
        let lasting = Self::new(name, call).with("seconds", length.as_secs_f64());
        lasting.with("clock", clock)
    }

    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.arguments.insert(key.to_owned(), value.into());
        self
    }

    /// Returns the effect as the control API takes it.
    pub(super) fn to_json(&self) -> Value {
        match self.arguments.is_empty() {
            true => self.name.into(),
            false => serde_json::json!({ self.name: self.arguments }),
        }
    }

    /// Returns the end of the sentence that scripts it.
    pub(super) fn to_text(&self) -> String {
        let Self {
            call, modifiers, ..
        } = self;
        match modifiers.is_empty() {
            true => call.clone(),
            false => format!("apply(Effect::{call}{modifiers})"),
        }
    }
}
