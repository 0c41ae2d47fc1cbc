//! The `rstest` fixture and `#[servicebus_harness::test]`, as the documentation shows them.

use std::panic::catch_unwind;

use rstest::rstest;
use servicebus_harness::prelude::*;

#[rstest]
#[tokio::test]
async fn a_poison_order_is_dead_lettered(
    #[future(awt)]
    #[with(Topology::file("tests/harness/fixtures/orders.json"))]
    servicebus: ServiceBus,
) {
    let orders = servicebus.queue("orders");
    orders.send("not json").await;
    for _ in 0..3 {
        orders.receive().await.abandon().await;
    }
    assert_dead_lettered!(
        servicebus.queue("orders"),
        reason = "MaxDeliveryCountExceeded"
    )
    .await;
}

#[rstest]
#[tokio::test]
async fn a_topology_can_be_built_in_place(
    #[future(awt)]
    #[with(Topology::new().queue(Queue::new("invoices")))]
    servicebus: ServiceBus,
) {
    servicebus.queue("invoices").send("hello").await;
    assert_message_count!(servicebus.queue("invoices"), active = 1).await;
}

#[rstest]
#[tokio::test]
async fn without_a_topology_there_is_one_queue(#[future(awt)] servicebus: ServiceBus) {
    servicebus.queue("queue.1").send("hello").await;
    assert_message_count!(servicebus.queue("queue.1"), active = 1).await;
}

fn orders() -> Topology {
    Topology::new().queue(Queue::new("orders").max_delivery_count(1))
}

#[servicebus_harness::test]
async fn the_attribute_without_arguments_uses_the_default_namespace(servicebus: ServiceBus) {
    assert_message_count!(servicebus.queue("queue.1"), active = 0).await;
}

#[servicebus_harness::test(topology = orders())]
async fn the_attribute_takes_a_topology(servicebus: ServiceBus) {
    let orders = servicebus.queue("orders");
    orders.send("not json").await;
    orders.receive().await.abandon().await;
    assert_dead_lettered!(orders, reason = "MaxDeliveryCountExceeded").await;
}

#[servicebus_harness::test(builder = ServiceBus::builder().topology(orders()).tls(true))]
async fn the_attribute_takes_a_builder_and_a_test_may_return_an_error(
    servicebus: ServiceBus,
) -> Result<(), servicebus_harness::Error> {
    assert!(
        !servicebus
            .connection_string()
            .contains("UseDevelopmentEmulator")
    );
    servicebus.queue("orders").send("an order").result().await?;
    Ok(())
}

/// What it starts is reported where it cannot be started.
#[servicebus_harness::test(topology = Topology::new().queue(Queue::new("orders").max_delivery_count(0)))]
#[should_panic(expected = "MaxDeliveryCount")]
async fn a_topology_with_a_mistake_fails_the_test(servicebus: ServiceBus) {
    drop(servicebus);
}

/// How a test of the attribute fails that starts with this and does that.
fn failure<F: Future<Output = Result<(), String>>>(
    builder: servicebus_harness::Builder,
    test: impl FnOnce(ServiceBus) -> F + std::panic::UnwindSafe,
) -> String {
    let builder = std::panic::AssertUnwindSafe(builder);
    let failed = catch_unwind(|| servicebus_harness::run_test({ builder }.0, test));
    *failed
        .unwrap_err()
        .downcast::<String>()
        .expect("it fails with a text")
}

#[test]
fn an_error_that_a_test_returns_is_shown_with_the_fault_that_never_fired() {
    let text = failure(ServiceBus::builder(), async |servicebus: ServiceBus| {
        let returned: Result<(), String> = async {
            servicebus.faults().on(Operation::Send).lose_reply().await;
            Err("no database".to_owned())
        }
        .await;
        servicebus_harness::returned(returned)
    });
    let begins = "the test returned the error \"no database\"\n\na fault never fired: on(Operation::Send).nth(1).lose_reply()\n  no send came\n  scripted at tests/harness/fixture.rs:";
    assert!(text.starts_with(begins), "{text}");
    assert!(text.ends_with("remove the fault with `remove()`"), "{text}");
}

#[tokio::test]
async fn a_start_that_fails_names_the_line_of_the_test() {
    let wrong = || Topology::new().queue(Queue::new("orders").max_delivery_count(0));
    let line = line!() + 1;
    let error = servicebus(wrong()).result().await.unwrap_err();
    let place = format!("\n  at tests/harness/fixture.rs:{line}:");
    assert!(format!("{error:?}").contains(&place), "{error:?}");
}

#[test]
fn a_start_that_fails_under_the_attribute_names_a_line_of_the_test() {
    let wrong = Topology::new().queue(Queue::new("orders").max_delivery_count(0));
    let builder = ServiceBus::builder().topology(wrong);
    let text = failure(builder, async |_| Ok(()));
    assert!(text.contains("\n  at tests/harness/fixture.rs:"), "{text}");
}
