//! The fixture that hands a test its namespace.
//!
//! Written as `#[rstest]` calls it (`default`, `partial_1`: rstest's "Partial Injection") and not with `#[fixture]`, which
//! would have everybody build rstest, with a parser of Rust, of TOML and of regular expressions, before the harness.
//! Whose tests use it brings it along, in a version of their choice.

use std::cell::RefCell;
#[cfg(feature = "macros")]
use std::fmt;

use crate::{
    action::Action,
    service_bus::{Builder, ServiceBus},
};

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

    /// What an argument named `servicebus` is given.
    #[track_caller]
    pub fn default() -> Action<'static, ServiceBus> {
        super::servicebus(Builder::default())
    }

    /// What it is given with `#[with(topology)]` or `#[with(builder)]`.
    #[track_caller]
    pub fn partial_1(builder: impl Into<Builder>) -> Action<'static, ServiceBus> {
        super::servicebus(builder)
    }
}

/// What `#[servicebus_harness::test]` writes into a test: runs it on a runtime of its own, with a namespace of its own.
#[cfg(feature = "macros")]
#[doc(hidden)]
#[track_caller]
pub fn run_test<T, F: Future<Output = T>>(
    builder: Builder,
    test: impl FnOnce(ServiceBus) -> F,
) -> T {
    // That of the test before, where one thread runs several.
    take_returned_error();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build();
    let runtime = runtime.unwrap_or_else(|error| panic!("cannot make a runtime: {error}"));
    let starting = builder.start();
    runtime.block_on(async { test(starting.await).await })
}

thread_local! {
    static RETURNED_ERROR: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What `#[servicebus_harness::test]` calls when a test has returned, while its namespace is still there: a check that fails at the
/// end of that takes the place of the error.
#[cfg(feature = "macros")]
#[doc(hidden)]
pub fn returned<T, E: fmt::Debug>(returned: Result<T, E>) -> Result<T, E> {
    if let Err(error) = &returned {
        RETURNED_ERROR.set(Some(format!("{error:?}")));
    }
    returned
}

/// Takes the error that the test of this thread has returned, if it has and that is known.
pub(crate) fn take_returned_error() -> Option<String> {
    RETURNED_ERROR.take()
}
