// says: a test of `servicebus_harness::test` is an `async fn` with one argument: `servicebus: ServiceBus`
#[servicebus_harness::test]
async fn a_test_without_a_namespace() {}
