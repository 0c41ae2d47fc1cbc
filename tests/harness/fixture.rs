//! The `rstest` fixture and `#[servicebus_harness::test]`, as the documentation shows them.

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
async fn without_arguments_it_is_the_namespace_of_start(servicebus: ServiceBus) {
    assert_message_count!(servicebus.queue("queue.1"), active = 0).await;
}

#[servicebus_harness::test(topology = orders())]
async fn it_takes_a_topology(servicebus: ServiceBus) {
    let orders = servicebus.queue("orders");
    orders.send("not json").await;
    orders.receive().await.abandon().await;
    assert_dead_lettered!(orders, reason = "MaxDeliveryCountExceeded").await;
}

#[servicebus_harness::test(builder = ServiceBus::builder().topology(orders()).tls(true))]
async fn it_takes_a_builder_and_a_test_may_return_an_error(
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
