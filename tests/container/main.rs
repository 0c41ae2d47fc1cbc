//! The image, and the harness's mode that runs it. Needs a container engine, the `docker` command, and the image that
//! `emulator/image/build` makes; what is missing is a failure.

#[path = "../harness/child.rs"]
mod child;
mod docker;

mod image;
mod killed;
mod refusals;
mod sharing;

use servicebus_harness::prelude::*;

/// A bus in the container of this test run.
async fn bus(topology: Topology) -> ServiceBus {
    let builder = ServiceBus::builder().mode(Mode::Container);
    let started = builder.topology(topology).start().await;
    started.unwrap_or_else(|error| panic!("{error}"))
}

/// A queue that gives up on a message after three deliveries.
fn orders() -> Topology {
    let queue = Queue::new("orders").max_delivery_count(3);
    Topology::new().queue(queue.dead_lettering_on_message_expiration(true))
}
