//! The fixture that hands a test its namespace.
//!
//! Written as `#[rstest]` calls it (`default`, `partial_1`: rstest's "Partial Injection") and not with `#[fixture]`, which
//! would have everybody build rstest, with a parser of Rust, of TOML and of regular expressions, before the harness.
//! Whose tests use it brings it along, in a version of their choice.

use crate::service_bus::{Builder, ServiceBus};

/// Starts a namespace for one test, as an `rstest` fixture.
///
/// Without `#[with]` the namespace has one queue, `queue.1`; with it, what the topology says. A
/// [`Builder`](crate::Builder) says more: TLS, a seed, a leak check, how long to wait.
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
///
/// #[rstest]
/// #[tokio::test]
/// async fn a_test_that_leaves_nothing_behind(
///     #[future(awt)]
///     #[with(ServiceBus::builder().leak_check(true).seed(7))]
///     servicebus: ServiceBus,
/// ) {
///     servicebus.queue("queue.1").receive_within(std::time::Duration::ZERO).result().await.unwrap_err();
/// }
/// ```
pub async fn servicebus(builder: impl Into<Builder>) -> ServiceBus {
    builder.into().start().await
}

#[doc(hidden)]
pub mod servicebus {
    use crate::service_bus::{Builder, ServiceBus};

    /// What an argument named `servicebus` is given.
    pub async fn default() -> ServiceBus {
        super::servicebus(Builder::default()).await
    }

    /// What it is given with `#[with(topology)]` or `#[with(builder)]`.
    pub async fn partial_1(builder: impl Into<Builder>) -> ServiceBus {
        super::servicebus(builder).await
    }
}

/// What `#[servicebus_harness::test]` writes into a test: runs it on a runtime of its own, with a namespace of its own.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub fn run_test<T, F: Future<Output = T>>(
    builder: Builder,
    test: impl FnOnce(ServiceBus) -> F,
) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("cannot make a runtime: {error}"));
    runtime.block_on(async {
        let servicebus = builder.start().await;
        test(servicebus).await
    })
}
