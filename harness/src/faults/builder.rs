//! Builds a fault: which operations, which of their occurrences, and the effect.

use std::{panic::Location, sync::Arc};

use serde_json::Value;
use servicebus_control_api::{self as api, Filter, Pick, Property};

use super::{Effect, Fault, Operation};
use crate::scripted_faults::ScriptedFault;
use crate::{action::Action, connections::Connections, error::Error, error::control::ControlError};

/// Builds a fault for an operation; all conditions must hold.
#[derive(Debug, Clone)]
#[must_use = "a fault does nothing before it has an effect"]
pub struct FaultBuilder {
    connections: Arc<Connections>,
    operation: Operation,
    /// The conditions on the operation.
    filter: Filter,
    nth: Option<u64>,
    every: Option<u64>,
    times: Option<u64>,
    /// The call as the test's source code has it.
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

    /// Selects operations on this address: a queue, topic or subscription, `orders/$DeadLetterQueue`, or the resource of a
    /// token or of an HTTP request.
    pub fn entity(self, path: impl Into<String>) -> Self {
        self.text("entity", path.into(), |filter| &mut filter.entity)
    }

    /// Selects operations of clients with this container id, as timelines show it.
    pub fn client(self, name: impl Into<String>) -> Self {
        self.text("client", name.into(), |filter| &mut filter.client)
    }

    /// Selects operations of clients with the key of this name (`SharedAccessKeyName`).
    pub fn party(self, key_name: impl Into<String>) -> Self {
        self.text("party", key_name.into(), |filter| &mut filter.party)
    }

    /// Selects operations on the message with this sequence number; a send has none yet.
    pub fn sequence_number(mut self, number: i64) -> Self {
        self.filter.sequence_number = Some(number);
        self.with_source("sequence_number", &number.to_string())
    }

    /// Selects this delivery of a message, counted from 1, and the operations on that delivery.
    pub fn delivery(mut self, delivery: u32) -> Self {
        self.filter.delivery = Some(delivery);
        self.with_source("delivery", &delivery.to_string())
    }

    /// Selects operations on a message with this id.
    pub fn message_id(self, id: impl Into<String>) -> Self {
        self.text("message_id", id.into(), |filter| &mut filter.message_id)
    }

    /// Selects operations on a message of this session, or on the session.
    pub fn session_id(self, id: impl Into<String>) -> Self {
        self.text("session_id", id.into(), |filter| &mut filter.session_id)
    }

    /// Selects operations on a message with this application property: a string, a number or a boolean.
    pub fn application_property(
        mut self,
        name: impl Into<String>,
        value: impl Into<Value>,
    ) -> Self {
        let (name, value) = (name.into(), value.into());
        let written = format!("{name:?}, {value}");
        self.filter.property = Some(Property { name, value });
        self.with_source("application_property", &written)
    }

    /// Selects one operation of `$management`, such as `com.microsoft:peek-message`, or one HTTP method.
    pub fn named(self, name: impl Into<String>) -> Self {
        self.text("named", name.into(), |filter| &mut filter.name)
    }

    /// Fires at the `nth` selected operation, counted from 1, instead of the first.
    pub fn nth(mut self, nth: u64) -> Self {
        self.nth = Some(nth);
        self.with_source("nth", &nth.to_string())
    }

    /// Fires at every `every`th selected operation, [`times`](Self::times) times if set: `every(1)` fires at all.
    pub fn every(mut self, every: u64) -> Self {
        self.every = Some(every);
        self.with_source("every", &every.to_string())
    }

    /// Fires this many times: without [`every`](Self::every) at consecutive operations.
    pub fn times(mut self, times: u64) -> Self {
        self.times = Some(times);
        self.with_source("times", &times.to_string())
    }

    /// Applies this effect.
    #[track_caller]
    pub fn apply(self, effect: Effect) -> Action<'static, Fault> {
        let at = Location::caller();
        Action::new(self.set(effect, at))
    }

    fn text(
        mut self,
        method: &str,
        text: String,
        of: fn(&mut Filter) -> &mut Option<String>,
    ) -> Self {
        let written = format!("{text:?}");
        *of(&mut self.filter) = Some(text);
        self.with_source(method, &written)
    }

    fn with_source(mut self, method: &str, argument: &str) -> Self {
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
        let is_counted = nth.or(every).or(times).is_some();
        let count = if is_counted { "" } else { ".nth(1)" };
        let source_text = format!("{source_text}{count}.{}", effect.to_text());
        let failed = |error| Error::during(format!("set the fault {source_text}"), error);
        effect.check_at(operation).map_err(failed)?;
        let added = add(&connections, fault).await;
        // The emulator's message has the names of the control API.
        let id = added.map_err(|error| failed(error.into()))?;
        connections.scripted_faults.add(ScriptedFault {
            id,
            source_text,
            at,
        });
        let restarts = connections.scripted_faults.restarts();
        Ok(Fault {
            connections,
            id,
            restarts,
        })
    }
}

/// Scripts a fault and returns its id.
pub(crate) async fn add(
    connections: &Arc<Connections>,
    fault: api::Fault,
) -> Result<u64, ControlError> {
    let add =
        |connections: Arc<Connections>| async move { connections.backend.add_fault(&fault).await };
    Ok(connections.run(add).await?.id)
}
