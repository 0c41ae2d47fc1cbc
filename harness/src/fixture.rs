//! The `rstest` fixture that starts a namespace for a test.
//!
//! Written as `#[rstest]` calls it (`default`, `partial_1`: rstest's "Partial Injection") instead of with `#[fixture]`,
//! because that would build rstest, with its parsers of Rust, TOML and regular expressions, for every user of the harness.
//! Tests that use the fixture depend on rstest themselves, in a version of their choice.

use std::cell::RefCell;
#[cfg(feature = "macros")]
use std::fmt;

use crate::{
    action::Action,
    service_bus::{Builder, ServiceBus},
};

/// Starts a namespace for one test, as an `rstest` fixture.
///
/// Without `#[with]` the namespace has one queue, `queue.1`; with it, the entities of the topology. A
/// [`Builder`](crate::Builder) sets more: TLS, a seed, a leak check, timeouts.
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
#[track_caller]
pub fn servicebus(builder: impl Into<Builder>) -> Action<'static, ServiceBus> {
    builder.into().start()
}

#[doc(hidden)]
pub mod servicebus {
    use crate::{
        action::Action,
        service_bus::{Builder, ServiceBus},
    };

    /// Starts the namespace of an argument named `servicebus`.
    #[track_caller]
    pub fn default() -> Action<'static, ServiceBus> {
        super::servicebus(Builder::default())
    }

    /// Starts it with `#[with(topology)]` or `#[with(builder)]`.
    #[track_caller]
    pub fn partial_1(builder: impl Into<Builder>) -> Action<'static, ServiceBus> {
        super::servicebus(builder)
    }
}

/// Runs the body of a `#[servicebus_harness::test]` on a runtime of its own, with a namespace of its own.
#[cfg(feature = "macros")]
#[doc(hidden)]
#[track_caller]
pub fn run_test<T, F: Future<Output = T>>(
    builder: Builder,
    test: impl FnOnce(ServiceBus) -> F,
) -> T {
    // The error of the previous test on this thread.
    take_returned_error();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("cannot create a runtime: {error}"));
    let starting = builder.start();
    runtime.block_on(async { test(starting.await).await })
}

thread_local! {
    static RETURNED_ERROR: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Records the error that a `#[servicebus_harness::test]` returned, before its namespace ends: a failed check at that end
/// would replace the error.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub fn returned<T, E: fmt::Debug>(returned: Result<T, E>) -> Result<T, E> {
    if let Err(error) = &returned {
        RETURNED_ERROR.set(Some(format!("{error:?}")));
    }
    returned
}

/// Takes the error that the test of this thread has returned, if it was recorded.
pub(crate) fn take_returned_error() -> Option<String> {
    RETURNED_ERROR.take()
}
