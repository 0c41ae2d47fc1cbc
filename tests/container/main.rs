//! The image, and the harness's mode that runs it. Needs a container engine, the command `docker`, and the image that
//! `emulator/image/build` makes; what is missing is a failure.
//!
//! Some of the harness's own tests are run here again, with buses in the container.

#![expect(
    clippy::large_futures,
    reason = "every future of the SDK is, and each is awaited by a test alone"
)]

mod docker;

mod compose;
mod image;
mod killed;
mod refusals;
mod restart;
mod sharing;
mod tls;

#[path = "../harness/client.rs"]
mod client;
#[path = "../harness/clock.rs"]
mod clock;
#[path = "../harness/errors.rs"]
mod errors;
#[path = "../harness/receiving.rs"]
mod receiving;
#[path = "../harness/scheduling.rs"]
mod scheduling;

use errors::{assert_contains, assert_error, error_of};
use servicebus_harness::prelude::*;

/// A queue that gives up on a message after three deliveries.
fn orders() -> Topology {
    let queue = Queue::new("orders").max_delivery_count(3);
    Topology::new().queue(queue.dead_lettering_on_message_expiration(true))
}

/// A bus with that queue, in the container of this test run.
async fn namespace_with_orders() -> (ServiceBus, QueueClient) {
    let builder = ServiceBus::builder().mode(Mode::Container);
    let servicebus = builder.topology(orders()).start().await;
    let orders = servicebus.queue("orders");
    (servicebus, orders)
}
