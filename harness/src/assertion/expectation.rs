//! One assertion of any kind: a value that is built, awaited, and yields a `Result`.
//!
//! What it expects is its [`Kind`], a marker. The other traits say which narrowings a kind takes. What it means and says is
//! that of `servicebus-assertions`.

use std::{
    future::IntoFuture,
    marker::PhantomData,
    time::{Duration, SystemTime},
};

use serde_json::Value;
use servicebus_assertions::{Assertion, Kind as AssertionKind, Number, Predicate, Text};

use super::{AssertionFailed, Checking, looking::Looking, observed};
use crate::{
    clients::{EntityClient, SubQueueClient},
    observer::observe,
    received_message::ReceivedMessage,
};

/// An assertion about a queue, subscription or topic. It asserts when it is awaited.
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
    message = "the assertion does not say yet what it expects",
    label = "name a number of messages, such as `active = 2`"
)]
pub trait Kind: Sized + Send + Sync + 'static {}

/// It is about messages; see [which](crate::assertion#which-messages).
pub trait AboutMessages: Kind {}
/// It is about a number of messages.
pub trait Counted: Kind {}
/// It is about what can happen to a message more than once.
pub trait Repeated: Kind {}
/// It is about dead letters.
pub trait AboutDeadLetters: Kind {}
/// It is about what goes to a client or an entity.
pub trait Targeted: Kind {}
/// It is about scheduled messages.
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

    /// Waits so long, in real time: for what is expected, or for the namespace to become idle where nothing is.
    pub fn within(mut self, within: Duration) -> Self {
        self.assertion.within = within;
        self
    }
}

impl<K: AboutMessages> Expectation<K> {
    /// Means messages with this id only.
    pub fn message_id(mut self, id: impl Into<Text>) -> Self {
        self.assertion.which.message_id = Some(id.into());
        self
    }

    /// Means messages with this body only, read as text.
    pub fn body(mut self, body: impl Into<Text>) -> Self {
        self.assertion.which.body = Some(body.into());
        self
    }

    /// Means messages only whose body is JSON with everything that is expected in it; objects may have more.
    pub fn body_json(mut self, expected: impl Into<Value>) -> Self {
        self.assertion.which.body_json = Some(expected.into());
        self
    }

    /// Means messages only of which this is true.
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
    /// Expects exactly so many messages; one at least, unless said.
    pub fn count(mut self, count: u64) -> Self {
        self.assertion.number = Number::Exactly(count);
        self
    }
}

impl<K: Repeated> Expectation<K> {
    /// Expects it exactly so many times; once at least, unless said.
    pub fn times(mut self, times: u64) -> Self {
        self.assertion.number = Number::Exactly(times);
        self
    }

    /// Expects it so many times or more.
    pub fn at_least(mut self, times: u64) -> Self {
        self.assertion.number = Number::AtLeast(times);
        self
    }
}

impl<K: AboutDeadLetters> Expectation<K> {
    /// Means dead letters with this reason only.
    pub fn reason(mut self, reason: impl Into<Text>) -> Self {
        self.assertion.reason = Some(reason.into());
        self
    }

    /// Means dead letters with this description only.
    pub fn description(mut self, description: impl Into<Text>) -> Self {
        self.assertion.description = Some(description.into());
        self
    }
}

impl<K: Targeted> Expectation<K> {
    /// Means what went to this entity only, or to this client, by the name its connection has in the timeline.
    pub fn to(mut self, target: impl Into<Text>) -> Self {
        self.assertion.to = Some(target.into());
        self
    }
}

impl<K: Timed> Expectation<K> {
    /// Means messages only that are scheduled for this time, by the test's own clock.
    pub fn at(mut self, due: SystemTime) -> Self {
        self.assertion.due = Some(due.into());
        self
    }

    /// Means messages only that are due so long from when the assertion starts.
    pub fn due_in(mut self, delay: Duration) -> Self {
        self.assertion.due = Some(delay.into());
        self
    }

    /// Lets the time differ by so much; by ten seconds unless said otherwise.
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.assertion.tolerance = tolerance;
        self
    }
}

impl<K: Kind> IntoFuture for Expectation<K> {
    type Output = Result<(), AssertionFailed>;
    type IntoFuture = Checking;

    /// Looks on the background runtime, where time is real.
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
            let looking = Looking::new(client, predicate);
            assertion.check(&looking).await
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

/// The name of a kind, as a comparison shows it.
fn name<K>() -> &'static str {
    let path = std::any::type_name::<K>();
    path.rsplit("::").next().unwrap_or(path)
}
