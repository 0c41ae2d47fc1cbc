//! What `#[servicebus_harness::test]` writes into a test calls this.

use crate::{Builder, ServiceBus};

/// Runs a test on a runtime of its own, with a namespace of its own.
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
