//! One assertion of any kind: a value that yields a `Result` when it is awaited.
//!
//! Its [`Kind`], a marker type, defines what it expects; the other traits define which conditions a kind takes.
//! `servicebus-assertions` implements the checks and their messages.

use std::{
    future::IntoFuture,
    marker::PhantomData,
    time::{Duration, SystemTime},
};

use serde_json::Value;
use servicebus_assertions::{Assertion, Kind as AssertionKind, Number, Predicate, Text};

use super::{AssertionFailed, Checking, namespace_probe::NamespaceProbe, observed};
use crate::{
    clients::{EntityClient, SubQueueClient},
    observer::observe,
    received_message::ReceivedMessage,
};

/// An assertion about a queue, subscription or topic, which is checked when it is awaited. All conditions must hold.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Expectation<K> {
    pub(crate) client: SubQueueClient,
    pub(crate) assertion: Assertion,
    predicate: Option<Predicate<ReceivedMessage>>,
    kind: PhantomData<K>,
}

/// What an assertion expects.
#[diagnostic::on_unimplemented(
    message = "the assertion does not expect anything yet",
    label = "name a number of messages, such as `active = 2`"
)]
pub trait Kind: Sized + Send + Sync + 'static {}

/// A kind about messages; see [which](crate::assertion#which-messages).
pub trait AboutMessages: Kind {}
/// A kind about a number of messages.
pub trait Counted: Kind {}
/// A kind about what can happen to a message more than once.
pub trait Repeated: Kind {}
/// A kind about dead-lettered messages.
pub trait AboutDeadLetters: Kind {}
/// A kind about what goes to a client or an entity.
pub trait Targeted: Kind {}
/// A kind about scheduled messages.
pub trait Timed: Kind {}

impl<K> Expectation<K> {
    pub(crate) fn new(client: &impl EntityClient, kind: AssertionKind) -> Self {
        let client: &SubQueueClient = client.as_ref();
        let within = client.connections.within;
        Self {
            assertion: Assertion::new(kind, client.sub_queue().clone(), within),
            client: client.clone(),
            predicate: None,
            kind: PhantomData,
        }
    }

    pub(crate) fn of_kind<L>(self) -> Expectation<L> {
        Expectation {
            client: self.client,
            assertion: self.assertion,
            predicate: self.predicate,
            kind: PhantomData,
        }
    }

    /// Sets how long to wait, in real time, for what is expected, or for the namespace to become idle if nothing is
    /// expected.
    pub fn within(mut self, within: Duration) -> Self {
        self.assertion.within = within;
        self
    }
}

impl<K: AboutMessages> Expectation<K> {
    /// Selects messages with this id.
    pub fn message_id(mut self, id: impl Into<Text>) -> Self {
        self.assertion.which.message_id = Some(id.into());
        self
    }

    /// Selects messages with this body, read as text.
    pub fn body(mut self, body: impl Into<Text>) -> Self {
        self.assertion.which.body = Some(body.into());
        self
    }

    /// Selects messages whose body is JSON that contains `expected`; objects may have more members.
    pub fn body_json(mut self, expected: impl Into<Value>) -> Self {
        self.assertion.which.body_json = Some(expected.into());
        self
    }

    /// Selects messages for which the predicate holds.
    pub fn matching(
        mut self,
        predicate: impl Fn(&ReceivedMessage) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.assertion.which.has_predicate = true;
        self.predicate = Some(Predicate::new(predicate));
        self
    }
}

impl<K: Counted> Expectation<K> {
    /// Expects exactly this number of messages; at least one unless set.
    pub fn count(mut self, count: u64) -> Self {
        self.assertion.number = Number::Exactly(count);
        self
    }
}

impl<K: Repeated> Expectation<K> {
    /// Expects exactly this number of occurrences; at least one unless set.
    pub fn times(mut self, times: u64) -> Self {
        self.assertion.number = Number::Exactly(times);
        self
    }

    /// Expects at least this number of occurrences.
    pub fn at_least(mut self, times: u64) -> Self {
        self.assertion.number = Number::AtLeast(times);
        self
    }
}

impl<K: AboutDeadLetters> Expectation<K> {
    /// Selects dead-lettered messages with this reason.
    pub fn reason(mut self, reason: impl Into<Text>) -> Self {
        self.assertion.reason = Some(reason.into());
        self
    }

    /// Selects dead-lettered messages with this description.
    pub fn description(mut self, description: impl Into<Text>) -> Self {
        self.assertion.description = Some(description.into());
        self
    }
}

impl<K: Targeted> Expectation<K> {
    /// Selects what went to this entity, or to this client, by the name of its connection in the timeline.
    pub fn to(mut self, target: impl Into<Text>) -> Self {
        self.assertion.to = Some(target.into());
        self
    }
}

impl<K: Timed> Expectation<K> {
    /// Selects messages that are scheduled for this time, by the test's own clock.
    pub fn at(mut self, due: SystemTime) -> Self {
        self.assertion.due = Some(due.into());
        self
    }

    /// Selects messages that are due this long after the start of the assertion.
    pub fn due_in(mut self, delay: Duration) -> Self {
        self.assertion.due = Some(delay.into());
        self
    }

    /// Sets by how much the time may differ; 10 s unless set.
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.assertion.tolerance = tolerance;
        self
    }
}

impl<K: Kind> IntoFuture for Expectation<K> {
    type Output = Result<(), AssertionFailed>;
    type IntoFuture = Checking;

    /// Runs on the background runtime, whose time is real.
    fn into_future(self) -> Checking {
        checked(self.client, self.assertion, self.predicate, name::<K>())
    }
}

fn checked(
    client: SubQueueClient,
    assertion: Assertion,
    predicate: Option<Predicate<ReceivedMessage>>,
    kind: &'static str,
) -> Checking {
    Box::pin(async move {
        let what = format!("{kind} of {client}");
        let counts = assertion.counts.iter();
        let counts = counts.map(|(name, number)| format!(" {name} = {number}"));
        let expected = String::from_iter(counts);
        let checking = client.run(move |client| async move {
            let probe = NamespaceProbe::new(client, predicate);
            assertion.check(&probe).await
        });
        let checked = checking.await;
        if let Some(value) = observed(&checked, &expected) {
            observe(what.clone(), value);
        }
        match checked {
            Err(failure) if failure.is_unchecked() => {
                let why = failure.to_string();
                match client.connections.unchecked.skips(&what, &why) {
                    true => Ok(()),
                    false => Err(failure),
                }
            }
            Err(failure) => {
                *client.connections.evidence.lock() = failure.evidence().cloned();
                Err(failure)
            }
            Ok(()) => Ok(()),
        }
    })
}

fn name<K>() -> &'static str {
    let path = std::any::type_name::<K>();
    path.rsplit("::").next().unwrap_or(path)
}
