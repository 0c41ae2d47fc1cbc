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

mod attached;
mod expectation;
mod failure;
mod held;
mod hint;
mod kinds;
mod look;
mod macros;
mod message_count;
mod recorded;
mod selector;
mod sessions;
mod unsettled_sends;

use std::{future::Future, pin::Pin, time::Duration};

use crate::clients::SubQueueClient;

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

pub(crate) use look::left_behind;

use failure::{Report, UNCHECKABLE};
use look::{Looked, known, poll};

/// By how much a time may differ, unless said otherwise: a busy machine takes a while from the one look at its clock to
/// the other.
const TOLERANCE: Duration = Duration::from_secs(10);

impl SubQueueClient {
    /// Expects no messages in the queue or subscription; dead letters may be.
    pub fn expect_empty(&self) -> Expectation<Empty> {
        Empty::of(self)
    }

    /// Expects exact numbers of messages.
    pub fn expect_message_count(&self) -> Expectation<NoCount> {
        MessageCount::of(self)
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
