//! Builds a fault: on which operations, which of them, and what becomes of it.

use std::{panic::Location, sync::Arc, time::Duration};

use serde_json::Value;
use servicebus_control_api::{self as api, Filter, Pick, Property};

use super::{Effect, Fault, Operation};
use crate::fault_script::Set;
use crate::{action::Action, connections::Connections, error::Error, error::control::ControlError};

/// Which operation a fault is for.
#[derive(Debug, Clone)]
#[must_use = "nothing goes wrong before it is said what"]
pub struct FaultBuilder {
    connections: Arc<Connections>,
    operation: Operation,
    /// What it must have.
    filter: Filter,
    nth: Option<u64>,
    every: Option<u64>,
    times: Option<u64>,
    /// As it is written in a test.
    source_text: String,
}

impl FaultBuilder {
    pub(crate) fn new(connections: Arc<Connections>, operation: Operation) -> Self {
        Self {
            connections,
            operation,
            filter: Filter::default(),
            nth: None,
            every: None,
            times: None,
            source_text: format!("on(Operation::{operation:?})"),
        }
    }

    /// Narrows it to operations that concern this address: a queue, topic or subscription, `orders/$DeadLetterQueue`, or
    /// what a token or an HTTP request is for.
    pub fn entity(mut self, path: impl Into<String>) -> Self {
        let path = path.into();
        self.filter.entity = Some(path.clone());
        self.saying("entity", &format!("{path:?}"))
    }

    /// Narrows it to clients that call themselves so: the container id of their connection, as in timelines.
    pub fn client(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.filter.client = Some(name.clone());
        self.saying("client", &format!("{name:?}"))
    }

    /// Narrows it to clients that use the key of this name (`SharedAccessKeyName`).
    pub fn party(mut self, key_name: impl Into<String>) -> Self {
        let key_name = key_name.into();
        self.filter.party = Some(key_name.clone());
        self.saying("party", &format!("{key_name:?}"))
    }

    /// Narrows it to operations on the message with this sequence number: not to sends, which have none yet.
    pub fn sequence_number(mut self, number: i64) -> Self {
        self.filter.sequence_number = Some(number);
        self.saying("sequence_number", &number.to_string())
    }

    /// Narrows it to this delivery of a message, counted from 1, and to what is done with that.
    pub fn delivery(mut self, delivery: u32) -> Self {
        self.filter.delivery = Some(delivery);
        self.saying("delivery", &delivery.to_string())
    }

    /// Narrows it to operations on a message with this id.
    pub fn message_id(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        self.filter.message_id = Some(id.clone());
        self.saying("message_id", &format!("{id:?}"))
    }

    /// Narrows it to operations on a message of this session, or on the session.
    pub fn session_id(mut self, id: impl Into<String>) -> Self {
        let id = id.into();
        self.filter.session_id = Some(id.clone());
        self.saying("session_id", &format!("{id:?}"))
    }

    /// Narrows it to operations on a message with this application property: a text, a number or a boolean.
    pub fn application_property(
        mut self,
        name: impl Into<String>,
        value: impl Into<Value>,
    ) -> Self {
        let (name, value) = (name.into(), value.into());
        let written = format!("{name:?}, {value}");
        self.filter.property = Some(Property { name, value });
        self.saying("application_property", &written)
    }

    /// Narrows it to one operation of `$management`, such as `com.microsoft:peek-message`, or one method of HTTP.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.filter.name = Some(name.clone());
        self.saying("named", &format!("{name:?}"))
    }

    /// Picks another than the first of them, counted from 1.
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = Some(nth);
        self.saying("nth", &nth.to_string())
    }

    /// Fires at every so many of them, beginning with that, until [`times`](Self::times) says how often: `every(1)` fires at
    /// them all.
    pub fn every(mut self, every: u64) -> Self {
        self.every = Some(every);
        self.saying("every", &every.to_string())
    }

    /// Fires at so many of them: without [`every`](Self::every), one after the other.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self.saying("times", &times.to_string())
    }

    /// Lets it happen, and the client gets no reply.
    ///
    /// # Panics
    ///
    /// When the emulator refuses the fault; so do all that follow.
    #[track_caller]
    pub fn lose_reply(self) -> Action<'static, Fault> {
        self.apply(Effect::lose_reply())
    }

    /// Refuses it with an AMQP condition.
    #[track_caller]
    pub fn reject(self, condition: impl Into<String>) -> Action<'static, Fault> {
        self.apply(Effect::reject(condition))
    }

    /// Refuses it as the service does when it has too much to do.
    #[track_caller]
    pub fn server_busy(self) -> Action<'static, Fault> {
        self.apply(Effect::server_busy())
    }

    /// Answers a request with a status, and does nothing.
    #[track_caller]
    pub fn answer(self, status: u16) -> Action<'static, Fault> {
        self.apply(Effect::answer(status))
    }

    /// Closes the link instead.
    #[track_caller]
    pub fn detach(self, condition: impl Into<String>) -> Action<'static, Fault> {
        self.apply(Effect::detach(condition))
    }

    /// Closes the connection instead.
    #[track_caller]
    pub fn close(self, condition: impl Into<String>) -> Action<'static, Fault> {
        self.apply(Effect::close(condition))
    }

    /// Ends the connection instead, without a close frame.
    #[track_caller]
    pub fn drop_connection(self) -> Action<'static, Fault> {
        self.apply(Effect::drop_connection())
    }

    /// Ends all connections of the client instead, without a close frame, as when its process crashes.
    #[track_caller]
    pub fn crash(self) -> Action<'static, Fault> {
        self.apply(Effect::crash())
    }

    /// Updates the service instead: all locks are lost and all links are detached.
    #[track_caller]
    pub fn failover(self) -> Action<'static, Fault> {
        self.apply(Effect::failover())
    }

    /// Lets it wait until nothing else can happen.
    #[track_caller]
    pub fn postpone(self) -> Action<'static, Fault> {
        self.apply(Effect::postpone())
    }

    /// Gives a delivery to another receiver.
    #[track_caller]
    pub fn elsewhere(self) -> Action<'static, Fault> {
        self.apply(Effect::elsewhere())
    }

    /// Lets it wait until the clock of the namespace has advanced by so much.
    #[track_caller]
    pub fn delay(self, by: Duration) -> Action<'static, Fault> {
        self.apply(Effect::delay(by))
    }

    /// Lets it wait for so long in real time.
    #[track_caller]
    pub fn delay_real(self, by: Duration) -> Action<'static, Fault> {
        self.apply(Effect::delay_real(by))
    }

    /// Sends the outcome of a send only after the next outcome of its link.
    #[track_caller]
    pub fn reorder_outcome(self) -> Action<'static, Fault> {
        self.apply(Effect::reorder_outcome())
    }

    /// Ends the lock of the message.
    #[track_caller]
    pub fn lose_lock(self) -> Action<'static, Fault> {
        self.apply(Effect::lose_lock())
    }

    /// Ends the lock of the session.
    #[track_caller]
    pub fn lose_session_lock(self) -> Action<'static, Fault> {
        self.apply(Effect::lose_session_lock())
    }

    /// Delivers a message again although it was completed.
    #[track_caller]
    pub fn redeliver(self) -> Action<'static, Fault> {
        self.apply(Effect::redeliver())
    }

    /// Ends what the tokens of the connection give.
    #[track_caller]
    pub fn expire_token(self) -> Action<'static, Fault> {
        self.apply(Effect::expire_token())
    }

    /// Reads nothing more from the connection for so long in real time.
    #[track_caller]
    pub fn stop_reading(self, length: Duration) -> Action<'static, Fault> {
        self.apply(Effect::stop_reading(length))
    }

    /// Does this to it.
    ///
    /// # Panics
    ///
    /// When the emulator refuses the fault.
    #[track_caller]
    pub fn apply(self, effect: Effect) -> Action<'static, Fault> {
        let at = Location::caller();
        Action::new(self.set(effect, at))
    }

    fn saying(mut self, method: &str, argument: &str) -> Self {
        self.source_text += &format!(".{method}({argument})");
        self
    }

    async fn set(self, effect: Effect, at: &'static Location<'static>) -> Result<Fault, Error> {
        let Self {
            connections,
            operation,
            filter,
            nth,
            every,
            times,
            source_text,
        } = self;
        let fault = api::Fault {
            operation,
            filter,
            pick: Pick::counted(nth, every, times, effect.checked()?),
        };
        let id = add(&connections, fault).await?;
        let is_counted = nth.or(every).or(times).is_some();
        let count = if is_counted { "" } else { ".nth(1)" };
        connections.script.add(Set {
            id,
            source_text: format!("{source_text}{count}.{}", effect.to_text()),
            at,
        });
        Ok(Fault { connections, id })
    }
}

/// Scripts a fault, and returns its id.
pub(crate) async fn add(
    connections: &Arc<Connections>,
    fault: api::Fault,
) -> Result<u64, ControlError> {
    let add =
        |connections: Arc<Connections>| async move { connections.backend.add_fault(&fault).await };
    Ok(connections.run(add).await?.id)
}
