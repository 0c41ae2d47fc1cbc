//! The `rstest` fixture, as the documentation shows it.

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
