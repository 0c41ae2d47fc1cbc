//! The fixture that hands a test its namespace.
//!
//! Written as `#[rstest]` calls it (`default`, `partial_1`: rstest's "Partial Injection") and not with `#[fixture]`, which
//! would have everybody build rstest, with a parser of Rust, of TOML and of regular expressions, before the harness.
//! Whose tests use it brings it along, in a version of their choice.

use crate::{ServiceBus, topology::Topology};

/// Starts a namespace for one test, as an `rstest` fixture.
///
/// Without `#[with]` the namespace has one queue, `queue.1`; with it, what the topology says.
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
pub async fn servicebus(topology: impl Into<Option<Topology>>) -> ServiceBus {
    let mut builder = ServiceBus::builder();
    if let Some(topology) = topology.into() {
        builder = builder.topology(topology);
    }
    match builder.start().await {
        Ok(servicebus) => servicebus,
        Err(error) => panic!("{error}"),
    }
}

#[doc(hidden)]
pub mod servicebus {
    use crate::{ServiceBus, topology::Topology};

    /// What an argument named `servicebus` is given.
    pub async fn default() -> ServiceBus {
        super::servicebus(None).await
    }

    /// What it is given with `#[with(topology)]`.
    pub async fn partial_1(topology: impl Into<Option<Topology>>) -> ServiceBus {
        super::servicebus(topology).await
    }
}
