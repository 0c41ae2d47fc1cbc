//! A container that ends and comes back with what its namespace held.

use servicebus_harness::{EventKind, prelude::*};

use crate::orders;

#[tokio::test]
async fn accepted_messages_survive_a_container_restart() {
    let builder = ServiceBus::builder().mode(Mode::Container).durable();
    let servicebus = builder.topology(orders()).start().await;
    let orders = servicebus.queue("orders");
    let string = servicebus.connection_string().to_owned();
    orders.send("kept").await;
    servicebus.restart().await;
    assert_message_count!(orders, active = 1).await;
    orders.send("kept, too").await;
    servicebus.crash().await;

    assert_eq!(servicebus.connection_string(), string);
    assert_message_count!(orders, active = 2).await;
    orders.receive().await.complete().await;
    assert_completed!(orders, count = 1).await;
    let timeline = servicebus.timeline(&orders).await;
    let [restarted, crashed] = [EventKind::Restarted, EventKind::Crashed];
    assert_eq!(
        (timeline.count(&restarted), timeline.count(&crashed)),
        (1, 1)
    );
    servicebus.stop().await;
}
