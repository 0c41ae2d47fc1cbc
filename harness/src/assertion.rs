//! Assertions about a namespace, which fail with the reason.
//!
//! Each assertion is a value that is built, awaited, and yields a `Result`; the macros await it and panic at
//! the line of the test. Each looks again and again up to a deadline in real time, and asks only what any
//! client could: a negative one first waits for the namespace to become idle.
//!
//! # Which messages
//!
//! Assertions about messages take what these are like, and are about all of them without: `message_id` and `body`, each
//! a text that is compared exactly, with [`contains`](crate::contains) or [`matches`](crate::matches()); `body_json`, a
//! value of which objects may have more than is expected; `matching`, a predicate of the message as it came in.
//!
//! ```no_run
//! # use servicebus_harness::prelude::*;
//! # use serde_json::json;
//! # async fn test(servicebus: ServiceBus) {
//! let orders = servicebus.queue("orders");
//! assert_delivered!(orders, body_json = json!({"total": 3}), times = 1).await;
//! assert_not_completed!(orders, body = contains("poison")).await;
//! assert_dead_lettered!(orders, matching = |order| order.body.len() > 1000).await;
//! # }
//! ```

mod dead_letters;
mod expectation;
mod failure;
mod hint;
mod kinds;
mod macros;
mod message_count;
mod receivers;
mod recorded;
mod selector;
mod sessions;
mod stored;
mod unsettled_sends;

use std::{future::Future, pin::Pin, time::Duration};

use crate::{background::Stopwatch, clients::SubQueueClient, error::Error};

/// The text by which the harness says that only an emulator could tell.
const UNCHECKABLE: &str = "could not check: ";

pub use expectation::{
    AboutDeadLetters, AboutMessages, Counted, Expectation, Kind, Repeated, Targeted, Timed,
};
pub use failure::AssertionFailed;
pub use kinds::{
    Abandoned, Attached, Completed, DeadLettered, Deferred, Delivered, Expired, Forwarded,
    LockNotRenewed, LockRenewed, NotAbandoned, NotCompleted, NotDeadLettered, NotDeferred,
    NotDelivered, NotExpired, NotForwarded, NotScheduled, Scheduled,
};
pub use message_count::{CountsMessages, Empty, MessageCount, NoCount};
pub use sessions::{SessionOrder, SessionState};
pub use unsettled_sends::UnsettledSends;

pub(crate) use failure::left_behind;

use failure::Report;

/// By how much a time may differ, unless said otherwise: a busy machine takes a while from the one look at its clock to
/// the other.
const TOLERANCE: Duration = Duration::from_secs(10);
/// The pauses between two looks: short at first, for most things have happened already.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];

impl SubQueueClient {
    /// Expects messages in the dead-letter queue.
    pub fn expect_dead_lettered(&self) -> Expectation<DeadLettered> {
        DeadLettered::of(self)
    }

    /// Expects no messages in the dead-letter queue once the namespace is idle.
    pub fn expect_not_dead_lettered(&self) -> Expectation<NotDeadLettered> {
        NotDeadLettered::of(self)
    }

    /// Expects no messages in the queue or subscription; dead letters may be.
    pub fn expect_empty(&self) -> Expectation<Empty> {
        Empty::of(self)
    }

    /// Expects exact numbers of messages.
    pub fn expect_message_count(&self) -> Expectation<NoCount> {
        MessageCount::of(self)
    }

    /// Expects clients of the code under test to receive here.
    pub fn expect_attached(&self) -> Expectation<Attached> {
        Attached::of(self)
    }

    /// Expects messages to have been completed.
    pub fn expect_completed(&self) -> Expectation<Completed> {
        Completed::of(self)
    }

    /// Expects no messages to have been completed once the namespace is idle.
    pub fn expect_not_completed(&self) -> Expectation<NotCompleted> {
        NotCompleted::of(self)
    }

    /// Expects messages to have been delivered to receivers, with a lock or without.
    pub fn expect_delivered(&self) -> Expectation<Delivered> {
        Delivered::of(self)
    }

    /// Expects no messages to have been delivered to receivers once the namespace is idle.
    pub fn expect_not_delivered(&self) -> Expectation<NotDelivered> {
        NotDelivered::of(self)
    }

    /// Expects deliveries to have been abandoned.
    pub fn expect_abandoned(&self) -> Expectation<Abandoned> {
        Abandoned::of(self)
    }

    /// Expects no deliveries to have been abandoned once the namespace is idle.
    pub fn expect_not_abandoned(&self) -> Expectation<NotAbandoned> {
        NotAbandoned::of(self)
    }

    /// Expects locks to have been renewed.
    pub fn expect_lock_renewed(&self) -> Expectation<LockRenewed> {
        LockRenewed::of(self)
    }

    /// Expects no locks to have been renewed once the namespace is idle.
    pub fn expect_lock_not_renewed(&self) -> Expectation<LockNotRenewed> {
        LockNotRenewed::of(self)
    }

    /// Expects deferred messages in the queue.
    pub fn expect_deferred(&self) -> Expectation<Deferred> {
        Deferred::of(self)
    }

    /// Expects no deferred messages in the queue once the namespace is idle.
    pub fn expect_not_deferred(&self) -> Expectation<NotDeferred> {
        NotDeferred::of(self)
    }

    /// Expects scheduled messages in the queue.
    pub fn expect_scheduled(&self) -> Expectation<Scheduled> {
        Scheduled::of(self)
    }

    /// Expects no scheduled messages in the queue once the namespace is idle.
    pub fn expect_not_scheduled(&self) -> Expectation<NotScheduled> {
        NotScheduled::of(self)
    }

    /// Expects messages to have expired, dropped or dead-lettered.
    pub fn expect_expired(&self) -> Expectation<Expired> {
        Expired::of(self)
    }

    /// Expects no messages to have expired once the namespace is idle.
    pub fn expect_not_expired(&self) -> Expectation<NotExpired> {
        NotExpired::of(self)
    }

    /// Expects messages to have been forwarded to another queue.
    pub fn expect_forwarded(&self) -> Expectation<Forwarded> {
        Forwarded::of(self)
    }

    /// Expects no messages to have been forwarded to another queue once the namespace is idle.
    pub fn expect_not_forwarded(&self) -> Expectation<NotForwarded> {
        NotForwarded::of(self)
    }

    /// Expects bounds of how many sends ever waited for their outcome at once.
    pub fn expect_unsettled_sends(&self) -> Expectation<UnsettledSends> {
        UnsettledSends::of(self)
    }

    /// Expects messages of a session in the queue, in an order.
    pub fn expect_session_order(&self, session: impl Into<String>) -> Expectation<SessionOrder> {
        SessionOrder::of(self, session)
    }

    /// Expects something to be kept with a session.
    pub fn expect_session_state(&self, session: impl Into<String>) -> Expectation<SessionState> {
        SessionState::of(self, session)
    }
}

/// What a comparison observes: that it holds, or in the first line why not; nothing where the assertion could not look.
fn observed(checked: &Result<(), AssertionFailed>, expected: &str) -> Option<String> {
    match checked {
        Ok(()) => Some(format!("holds{expected}")),
        Err(failure) => {
            let text = failure.to_string();
            let rendered = text.lines().next().unwrap_or_default();
            (!rendered.contains(UNCHECKABLE)).then(|| rendered.to_owned())
        }
    }
}

/// The future of an assertion.
pub type Checking = Pin<Box<dyn Future<Output = Result<(), AssertionFailed>> + Send>>;

impl<K> Expectation<K> {
    /// Looks until it finds what is expected; else fails with what `failed` says of what it found last.
    async fn expect<T, L, F>(
        &self,
        look: impl Fn() -> L,
        is_expected: impl Fn(&T) -> bool,
        failed: impl FnOnce(T) -> F,
    ) -> Result<(), AssertionFailed>
    where
        L: Future<Output = Result<T, ProbeError>>,
        F: Future<Output = AssertionFailed>,
    {
        let looked = async {
            known(&self.client).await?;
            poll(self.within, look, is_expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => Err(failed(found).await),
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }

    /// Looks once the namespace is idle, and fails where it finds something.
    async fn expect_none<F: Future<Output = AssertionFailed>>(
        &self,
        look: impl Future<Output = Result<usize, ProbeError>>,
        failed: impl FnOnce(usize) -> F,
    ) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.client).await?;
            self.client.wait_idle(self.within).await?;
            look.await
        };
        match looked.await {
            Ok(0) => Ok(()),
            Ok(found) => Err(failed(found).await),
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}

/// How many were found, as a sentence says it.
fn found(number: u64) -> String {
    match number {
        0 => "none".to_owned(),
        some => some.to_string(),
    }
}

/// Checks an expectation; the compiler says what one lacks that expects nothing yet.
#[doc(hidden)]
pub fn checking<K: Kind>(expectation: Expectation<K>) -> Checking {
    expectation.into_future()
}

/// Looks until `look` finds what is expected; else returns what it found last.
async fn poll<T, F>(
    within: Duration,
    look: impl Fn() -> F,
    is_expected: impl Fn(&T) -> bool,
) -> Result<Looked<T>, ProbeError>
where
    F: Future<Output = Result<T, ProbeError>>,
{
    let started = Stopwatch::start();
    let [mut pause, longest] = PAUSES;
    loop {
        let found = look().await?;
        if is_expected(&found) {
            return Ok(Looked::Expected);
        }
        if started.elapsed() >= within {
            return Ok(Looked::Otherwise(found));
        }
        tokio::time::sleep(pause.min(within)).await;
        pause = (pause * 2).min(longest);
    }
}

/// How looking ended.
enum Looked<T> {
    Expected,
    Otherwise(T),
}

/// Why an assertion could not look.
#[derive(Debug, thiserror::Error)]
enum ProbeError {
    #[error(transparent)]
    Failed(#[from] Error),
    #[error("this emulator does not count unsettled sends")]
    NoSends,
    #[error(
        "this emulator keeps no messages, so that only their ids are known of those that are gone; start it with `--record-messages`, as the harness does"
    )]
    NoMessages,
}

/// Fails at once when the queue or subscription does not exist, with the names of those that do.
async fn known(client: &SubQueueClient) -> Result<(), ProbeError> {
    match client.unknown_if(true).await {
        Some(unknown) => Err(Error::from(unknown).into()),
        None => Ok(()),
    }
}
