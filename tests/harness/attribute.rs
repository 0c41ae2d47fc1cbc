//! `#[servicebus_harness::test]`.

use servicebus_harness::prelude::*;

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
