//! The sentence that scripts a fault: on which operations, which of them, and what becomes of it.

use std::{panic::Location, sync::Arc, time::Duration};

use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Effect, Fault, Operation, script::Set};
use crate::{bus::or_panic, control::ControlError, doors::Doors};

/// Which operation is to be spoiled.
#[derive(Debug, Clone)]
#[must_use = "nothing goes wrong before it is said what"]
pub struct FaultOn {
    doors: Arc<Doors>,
    operation: Operation,
    /// What it must have, and which of them it is, as the control API takes it.
    asked: Map<String, Value>,
    /// As it is written in a test.
    words: String,
    has_count: bool,
}

impl FaultOn {
    pub(super) fn new(doors: Arc<Doors>, operation: Operation) -> Self {
        Self {
            doors,
            operation,
            asked: Map::new(),
            words: format!("on(Operation::{operation:?})"),
            has_count: false,
        }
    }

    /// Narrows it to operations that concern this address: a queue, topic or subscription, `orders/$DeadLetterQueue`, or
    /// what a token or an HTTP request is for.
    pub fn entity(self, path: impl Into<String>) -> Self {
        self.asking("entity", path.into())
    }

    /// Narrows it to clients that call themselves so: the container id of their connection, as in timelines.
    pub fn client(self, name: impl Into<String>) -> Self {
        self.asking("client", name.into())
    }

    /// Narrows it to operations on a message with this id.
    pub fn message_id(self, id: impl Into<String>) -> Self {
        self.asking("message_id", id.into())
    }

    /// Narrows it to operations on a message of this session, or on the session.
    pub fn session_id(self, id: impl Into<String>) -> Self {
        self.asking("session_id", id.into())
    }

    /// Narrows it to operations on a message with this application property: a text, a number or a boolean.
    pub fn property(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        let (name, value) = (name.into(), value.into());
        self.words += &format!(".property({name:?}, {value})");
        let property = json!({ "name": name, "value": value });
        self.asked.insert("property".to_owned(), property);
        self
    }

    /// Narrows it to one operation of `$management`, such as `com.microsoft:peek-message`, or one method of HTTP.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        let name = name.into();
        self.words += &format!(".named({name:?})");
        self.asked.insert("name".to_owned(), name.into());
        self
    }

    /// Picks another than the first of them, counted from 1.
    pub fn nth(self, nth: u64) -> Self {
        self.counting("nth", nth)
    }

    /// Strikes every so many of them, beginning with that, until [`times`](Self::times) says how often: `every(1)` strikes
    /// them all.
    pub fn every(self, every: u64) -> Self {
        self.counting("every", every)
    }

    /// Strikes so many of them: without [`every`](Self::every), one after the other.
    pub fn times(self, times: u64) -> Self {
        self.counting("times", times)
    }

    /// Lets it happen, and the client never hears of it.
    ///
    /// # Panics
    ///
    /// When the emulator refuses the fault; so do all that follow.
    #[track_caller]
    pub fn lose_reply(self) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::lose_reply())
    }

    /// Refuses it with an AMQP condition.
    #[track_caller]
    pub fn reject(self, condition: impl Into<String>) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::reject(condition))
    }

    /// Refuses it as the service does when it has too much to do.
    #[track_caller]
    pub fn server_busy(self) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::server_busy())
    }

    /// Answers a request with a status, and does nothing.
    #[track_caller]
    pub fn answer(self, status: u16) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::answer(status))
    }

    /// Closes the link instead.
    #[track_caller]
    pub fn detach(self, condition: impl Into<String>) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::detach(condition))
    }

    /// Closes the connection instead.
    #[track_caller]
    pub fn close(self, condition: impl Into<String>) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::close(condition))
    }

    /// Ends the connection instead, without a word.
    #[track_caller]
    pub fn drop_connection(self) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::drop_connection())
    }

    /// Lets it wait until the clock of the bus has gone on by so much.
    #[track_caller]
    pub fn delay(self, by: Duration) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::delay(by))
    }

    /// Lets it wait for so long in real time.
    #[track_caller]
    pub fn delay_real(self, by: Duration) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::delay_real(by))
    }

    /// Tells the outcome of a send only behind the next outcome of its link.
    #[track_caller]
    pub fn hold_back(self) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::hold_back())
    }

    /// Ends the lock of the message.
    #[track_caller]
    pub fn lose_lock(self) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::lose_lock())
    }

    /// Ends the lock of the session.
    #[track_caller]
    pub fn lose_session_lock(self) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::lose_session_lock())
    }

    /// Lets a message come again although it was completed.
    #[track_caller]
    pub fn deliver_twice(self) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::deliver_twice())
    }

    /// Ends what the tokens of the connection give.
    #[track_caller]
    pub fn expire_token(self) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::expire_token())
    }

    /// Reads nothing more from the connection for so long in real time.
    #[track_caller]
    pub fn stall(self, length: Duration) -> impl Future<Output = Fault> + Send {
        self.apply(Effect::stall(length))
    }

    /// Does this to it.
    ///
    /// # Panics
    ///
    /// When the emulator refuses the fault.
    #[track_caller]
    pub fn apply(self, effect: Effect) -> impl Future<Output = Fault> + Send {
        let at = Location::caller();
        or_panic(at, self.set(effect, at))
    }

    /// Does this to it, or says why that cannot be scripted.
    #[track_caller]
    pub fn try_apply(
        self,
        effect: Effect,
    ) -> impl Future<Output = Result<Fault, ControlError>> + Send {
        self.set(effect, Location::caller())
    }

    fn asking(mut self, key: &str, text: String) -> Self {
        self.words += &format!(".{key}({text:?})");
        self.asked.insert(key.to_owned(), text.into());
        self
    }

    fn counting(mut self, key: &str, number: u64) -> Self {
        self.words += &format!(".{key}({number})");
        self.asked.insert(key.to_owned(), number.into());
        self.has_count = true;
        self
    }

    async fn set(
        self,
        effect: Effect,
        at: &'static Location<'static>,
    ) -> Result<Fault, ControlError> {
        let Self {
            doors,
            operation,
            mut asked,
            words,
            has_count,
        } = self;
        asked.insert("operation".to_owned(), operation.name().into());
        asked.insert("effect".to_owned(), effect.to_json());
        let id = post(&doors, asked.into()).await?;
        let count = if has_count { "" } else { ".nth(1)" };
        doors.script.add(Set {
            id,
            operation,
            words: format!("{words}{count}.{}", effect.words()),
            at,
        });
        Ok(Fault { doors, id })
    }
}

/// Scripts a fault, and returns its id.
pub(super) async fn post(doors: &Arc<Doors>, body: Value) -> Result<u64, ControlError> {
    #[derive(Debug, Deserialize)]
    struct Numbered {
        id: u64,
    }
    let add =
        |doors: Arc<Doors>| async move { doors.control.post::<Numbered>("faults", &body).await };
    let Numbered { id } = doors.run(add).await?;
    Ok(id)
}
