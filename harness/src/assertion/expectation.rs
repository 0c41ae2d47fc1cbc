//! One assertion of any kind: a value that is built, awaited, and yields a `Result`.
//!
//! What it expects is its [`Kind`], a marker. The other traits say which narrowings a kind takes.

use std::{
    future::IntoFuture,
    time::{Duration, SystemTime},
};

use serde_json::Value;

use super::{AssertionFailed, Checking, TOLERANCE, observed, recorded::Number, selector::Selector};
use crate::{
    clients::{EntityClient, ScheduledEnqueueTime, SubQueueClient},
    matcher::Predicate,
    matcher::Text,
    observer::observe,
    received_message::ReceivedMessage,
};

/// An assertion about a queue, subscription or topic. It asserts when it is awaited.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Expectation<K> {
    pub(crate) client: SubQueueClient,
    pub(crate) kind: K,
    pub(crate) criteria: Criteria,
}

/// What was said of an assertion beside its kind.
#[derive(Debug, Clone)]
pub(crate) struct Criteria {
    pub(crate) which: Selector,
    pub(crate) reason: Option<Text>,
    pub(crate) description: Option<Text>,
    pub(crate) target: Option<Text>,
    pub(crate) due: Option<ScheduledEnqueueTime>,
    pub(crate) tolerance: Duration,
    pub(crate) number: Number,
    pub(crate) within: Duration,
}

/// What an assertion expects.
#[diagnostic::on_unimplemented(
    message = "the assertion does not say yet what it expects",
    label = "name a number of messages, such as `active = 2`"
)]
pub trait Kind: Sized + Send + Sync + 'static {
    /// Looks until it is true or the time is over.
    #[doc(hidden)]
    fn check(
        expectation: Expectation<Self>,
    ) -> impl Future<Output = Result<(), AssertionFailed>> + Send;

    /// Returns what is found when it is true, where its name does not say that.
    #[doc(hidden)]
    fn expected(&self) -> String {
        String::new()
    }
}

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
    pub(crate) fn new(client: &impl EntityClient, kind: K) -> Self {
        Self {
            client: client.as_ref().clone(),
            kind,
            criteria: Criteria {
                which: Selector::default(),
                reason: None,
                description: None,
                target: None,
                due: None,
                tolerance: TOLERANCE,
                number: Number::AtLeast(1),
                within: client.as_ref().connections.within,
            },
        }
    }

    pub(crate) fn with_kind<L>(self, kind: impl FnOnce(K) -> L) -> Expectation<L> {
        Expectation {
            kind: kind(self.kind),
            client: self.client,
            criteria: self.criteria,
        }
    }

    /// Waits so long, in real time: for what is expected, or for the namespace to become idle where nothing is.
    pub fn within(mut self, within: Duration) -> Self {
        self.criteria.within = within;
        self
    }
}

impl<K: AboutMessages> Expectation<K> {
    /// Means messages with this id only.
    pub fn message_id(mut self, id: impl Into<Text>) -> Self {
        self.criteria.which.message_id = Some(id.into());
        self
    }

    /// Means messages with this body only, read as text.
    pub fn body(mut self, body: impl Into<Text>) -> Self {
        self.criteria.which.body = Some(body.into());
        self
    }

    /// Means messages only whose body is JSON with everything that is expected in it; objects may have more.
    pub fn body_json(mut self, expected: impl Into<Value>) -> Self {
        self.criteria.which.body_json = Some(expected.into());
        self
    }

    /// Means messages only of which this is true.
    pub fn matching(
        mut self,
        predicate: impl Fn(&ReceivedMessage) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.criteria.which.predicate = Some(Predicate::new(predicate));
        self
    }
}

impl<K: Counted> Expectation<K> {
    /// Expects exactly so many messages; one at least, unless said.
    pub fn count(mut self, count: u64) -> Self {
        self.criteria.number = Number::Exactly(count);
        self
    }
}

impl<K: Repeated> Expectation<K> {
    /// Expects it exactly so many times; once at least, unless said.
    pub fn times(mut self, times: u64) -> Self {
        self.criteria.number = Number::Exactly(times);
        self
    }

    /// Expects it so many times or more.
    pub fn at_least(mut self, times: u64) -> Self {
        self.criteria.number = Number::AtLeast(times);
        self
    }
}

impl<K: AboutDeadLetters> Expectation<K> {
    /// Means dead letters with this reason only.
    pub fn reason(mut self, reason: impl Into<Text>) -> Self {
        self.criteria.reason = Some(reason.into());
        self
    }

    /// Means dead letters with this description only.
    pub fn description(mut self, description: impl Into<Text>) -> Self {
        self.criteria.description = Some(description.into());
        self
    }
}

impl<K: Targeted> Expectation<K> {
    /// Means what went to this entity only, or to this client, by the name its connection has in the timeline.
    pub fn to(mut self, target: impl Into<Text>) -> Self {
        self.criteria.target = Some(target.into());
        self
    }
}

impl<K: Timed> Expectation<K> {
    /// Means messages only that are scheduled for this time, by the test's own clock.
    pub fn at(mut self, due: SystemTime) -> Self {
        self.criteria.due = Some(due.into());
        self
    }

    /// Means messages only that are due so long from when the assertion starts.
    pub fn due_in(mut self, delay: Duration) -> Self {
        self.criteria.due = Some(delay.into());
        self
    }

    /// Lets the time differ by so much; by ten seconds unless said otherwise.
    pub fn tolerance(mut self, tolerance: Duration) -> Self {
        self.criteria.tolerance = tolerance;
        self
    }
}

impl<K: Kind> IntoFuture for Expectation<K> {
    type Output = Result<(), AssertionFailed>;
    type IntoFuture = Checking;

    /// Looks on the background runtime, where time is real.
    fn into_future(self) -> Checking {
        let client = self.client.clone();
        Box::pin(async move {
            let what = format!("{} of {client}", name::<K>());
            let expected = self.kind.expected();
            let checked = client.run(|_| K::check(self)).await;
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
                checked => checked,
            }
        })
    }
}

/// The name of a kind, as a comparison shows it.
fn name<K>() -> &'static str {
    let path = std::any::type_name::<K>();
    path.rsplit("::").next().unwrap_or(path)
}
