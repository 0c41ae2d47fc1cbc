//! The fixture that hands a test its bus.

use crate::{ServiceBus, topology::Topology};

/// Starts a bus for one test, as an `rstest` fixture.
///
/// Without `#[with]` the bus has one queue, `queue.1`; with it, what the topology says.
///
/// ```
/// use rstest::rstest;
/// use servicebus_harness::prelude::*;
///
/// #[rstest]
/// #[tokio::test]
/// async fn a_test(
///     #[future(awt)]
///     #[with(Topology::new().queue(Queue::new("orders")))]
///     servicebus: ServiceBus,
/// ) {
///     servicebus.queue("orders").send("hello").await;
/// }
/// ```
#[rstest::fixture]
pub async fn servicebus(#[default(None)] topology: impl Into<Option<Topology>>) -> ServiceBus {
    let mut builder = ServiceBus::builder();
    if let Some(topology) = topology.into() {
        builder = builder.topology(topology);
    }
    match builder.start().await {
        Ok(servicebus) => servicebus,
        Err(error) => panic!("{error}"),
    }
}
