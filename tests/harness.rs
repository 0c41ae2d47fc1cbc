//! The harness's own promises: isolation, modes, clean-up, and failures that explain themselves.
//!
//! A file per promise. No test sleeps: a test advances the clock, or waits for a condition with a
//! deadline.

mod waiting;

mod assertions;
mod client;
mod clock;
mod entities;
mod environment;
mod errors;
mod examples;
mod exported;
mod failure_texts;
mod failures;
mod faults;
mod fixture;
mod handles;
mod health;
mod inspector;
mod isolation;
mod keep;
mod leaks;
mod leftovers;
mod matchers;
mod modes;
mod namespace;
mod only_address;
mod process;
mod readme;
mod receivers;
mod receiving;
mod restart;
mod scheduling;
mod sentences;
mod served_assertions;
mod sessions;
mod shared;
mod topics;
mod transactions;
mod unsettled_sends;
mod wire;

use errors::{assert_contains, assert_error, error_of};
use servicebus_harness::prelude::*;

/// A queue that gives up on a message after three deliveries.
fn orders() -> Topology {
    let queue = Queue::new("orders").max_delivery_count(3);
    Topology::new().queue(queue.dead_lettering_on_message_expiration(true))
}

/// A namespace with that queue.
async fn namespace_with_orders() -> (ServiceBus, QueueClient) {
    let servicebus = ServiceBus::builder().topology(orders()).start().await;
    let orders = servicebus.queue("orders");
    (servicebus, orders)
}

/// That namespace with the message `o-17` in its queue.
async fn namespace_with_order() -> (ServiceBus, QueueClient) {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("{}").message_id("o-17")).await;
    (servicebus, orders)
}

/// What a future gives, which must come in time.
fn within<F: Future>(future: F) -> impl Future<Output = F::Output> {
    servicebus_test_support::client::within("an answer", future)
}
