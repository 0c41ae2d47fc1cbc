//! Assertions about a namespace, whose failures state the reason.
//!
//! Each assertion is a value that yields a `Result` when it is awaited; the macros await it and panic at the line of the
//! test. An assertion polls the namespace up to a deadline in real time, with requests that any client could make. A
//! negative assertion first waits for the namespace to become idle.
//!
//! # Which messages
//!
//! Assertions about messages take conditions on them, and apply to all messages without a condition: `message_id` and `body`
//! compare a text exactly, or with [`contains`](crate::contains) or [`matches`](crate::matches()); `body_json` compares a
//! JSON value whose objects may have more members than expected; `matching` is a predicate of the received message.
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
mod kinds;
pub(crate) mod macros;
mod namespace_probe;

use std::{future::Future, pin::Pin};

use crate::clients::SubQueueClient;

pub use expectation::{
    AboutDeadLetters, AboutMessages, Counted, Expectation, Kind, Repeated, Targeted, Timed,
};
pub use kinds::{
    Abandoned, Attached, Completed, CountsMessages, DeadLettered, Deferred, Delivered, Empty,
    Expired, Forwarded, LockNotRenewed, LockRenewed, MessageCount, NoCount, NotAbandoned,
    NotCompleted, NotDeadLettered, NotDeferred, NotDelivered, NotExpired, NotForwarded,
    NotScheduled, Scheduled, SessionOrder, SessionState, UnsettledSends,
};
pub use servicebus_assertions::AssertionFailed;

use namespace_probe::NamespaceProbe;

/// The future of an assertion.
pub type Checking = Pin<Box<dyn Future<Output = Result<(), AssertionFailed>> + Send>>;

/// Checks an expectation. An expectation that expects nothing yet does not compile.
#[doc(hidden)]
pub fn checking<K: Kind>(expectation: Expectation<K>) -> Checking {
    expectation.into_future()
}

/// Returns what a comparison observes: the expectation if it holds, else the first line of the failure; `None` if the
/// assertion could not be checked.
fn observed(checked: &Result<(), AssertionFailed>, expected: &str) -> Option<String> {
    match checked {
        Ok(()) => Some(format!("holds{expected}")),
        Err(failure) if failure.is_unchecked() => None,
        Err(failure) => {
            let text = failure.to_string();
            Some(text.lines().next().unwrap_or_default().to_owned())
        }
    }
}

/// Describes the messages at these clients that no receiver has taken.
pub(crate) async fn describe_remaining(clients: &[SubQueueClient]) -> String {
    let mut parts = Vec::new();
    for client in clients {
        let probe = NamespaceProbe::new(client.clone(), None);
        parts.push(servicebus_assertions::describe_remaining(&probe, client.sub_queue()).await);
    }
    parts.join("\n\n")
}
