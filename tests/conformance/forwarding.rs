//! Auto-forwarding: messages and dead letters go on to another queue, four times at most (D3).
//!
//! Source: service-bus-auto-forwarding, service-bus-dead-letter-queues.

use servicebus_harness::azservicebus::{ServiceBusMessage, ServiceBusReceiverOptions};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    Client, abandon, assert_refused, bodies, body, complete, complete_all, connected, dead_letters,
    receive, receive_nothing, receive_one, receiver, send, start, tiny, topology,
    transfer_dead_letters,
};

#[tokio::test]
async fn a_forwarded_message_is_unchanged_with_a_new_sequence_number() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["direct"]).await;
    let mut sent = ServiceBusMessage::new("over");
    sent.set_message_id("o-17").unwrap();
    sent.set_subject("placed".to_owned());
    send(&mut client, "inbox", [sent]).await;
    assert_empty!(servicebus.queue("inbox")).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let messages = receive(&mut receiver, 2).await;
    assert_eq!(bodies(&messages), ["direct", "over"]);
    assert_eq!(messages[1].message_id().as_deref(), Some("o-17"));
    assert_eq!(messages[1].subject(), Some("placed"));
    assert_eq!(messages[1].sequence_number(), 2);
    assert_eq!(messages[1].enqueued_sequence_number(), 1);
    assert_eq!(messages[1].delivery_count(), Some(1));
    complete_all(&mut receiver, &messages).await;
}

#[tokio::test]
async fn a_forwarded_dead_letter_has_reason_and_source() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "complaints", ["bad"]).await;
    let mut complaints = receiver(&mut client, "complaints").await;
    let message = receive_one(&mut complaints).await;
    abandon(&mut complaints, &message).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(message.dead_letter_source(), Some("complaints"));
    assert_eq!(
        message.dead_letter_reason(),
        Some("MaxDeliveryCountExceeded")
    );
    complete(&mut receiver, &message).await;
    assert_message_count!(servicebus.queue("complaints"), active = 0, dead_letter = 0).await;
}

#[tokio::test]
async fn the_fifth_forward_is_dead_lettered_at_its_source() {
    let (_servicebus, mut client) = connected(bus()).await;
    send(&mut client, "hop2", ["four"]).await;
    send(&mut client, "hop1", ["five"]).await;
    let mut last = receiver(&mut client, "hop6").await;
    let message = receive_one(&mut last).await;
    assert_eq!(body(&message), "four");
    complete(&mut last, &message).await;
    receive_nothing(&mut last).await;
    let description = expect_failed(&mut client, "hop5", "MaxTransferHopCountExceeded").await;
    assert_eq!(
        description,
        "The maximum number of allowed hops when forwarding between queues. Value is set to 4."
    );
}

#[tokio::test]
async fn a_message_without_a_target_is_dead_lettered_by_its_source() {
    let (servicebus, mut client) = connected(bus()).await;
    servicebus.queue("orders").delete().await;
    send(&mut client, "inbox", ["lost"]).await;
    expect_failed(&mut client, "inbox", "MessagingEntityNotFoundException").await;
}

#[tokio::test]
async fn a_message_for_a_disabled_target_is_dead_lettered_by_its_source() {
    let (servicebus, mut client) = connected(bus()).await;
    let disable = |queue: Queue| queue.status(EntityStatus::SendDisabled);
    servicebus.queue("orders").update(disable).await;
    send(&mut client, "inbox", ["early"]).await;
    expect_failed(&mut client, "inbox", "MessagingEntityDisabledException").await;
}

#[tokio::test]
async fn a_message_for_a_full_target_is_dead_lettered_by_its_source() {
    let to_tiny = Queue::new("to-tiny").forward_to("tiny");
    let (servicebus, mut client) =
        connected(start(Topology::new().queue(tiny()).queue(to_tiny))).await;
    send(&mut client, "tiny", vec![vec![0; 200_000]; 5]).await;
    send(&mut client, "to-tiny", [vec![0; 200_000]]).await;
    expect_failed(&mut client, "to-tiny", "QuotaExceededException").await;
    assert_message_count!(servicebus.queue("tiny"), active = 5).await;
}

/// Real namespaces were reported to do so; a setting of ours (D3).
#[tokio::test]
async fn failed_forwards_can_use_the_dead_letter_queue() {
    let topology = topology()
        .failed_forwards(FailedForwards::DeadLetter)
        .queue(Queue::new("inbox").forward_to("orders"));
    let (servicebus, mut client) = connected(start(topology)).await;
    servicebus.queue("orders").delete().await;
    send(&mut client, "inbox", ["lost"]).await;
    let reason = "MessagingEntityNotFoundException";
    assert_dead_lettered!(servicebus.queue("inbox"), reason = reason).await;
    let mut dead = dead_letters(&mut client, "inbox").await;
    let message = receive_one(&mut dead).await;
    assert_eq!(message.dead_letter_reason(), Some(reason));
    complete(&mut dead, &message).await;
}

/// Observed 26.
#[tokio::test]
async fn a_queue_that_forwards_to_itself_stops_at_the_hop_limit() {
    let topology = topology().queue(Queue::new("ring").forward_to("ring"));
    let (_servicebus, mut client) = connected(start(topology)).await;
    send(&mut client, "ring", ["round"]).await;
    expect_failed(&mut client, "ring", "MaxTransferHopCountExceeded").await;
}

/// Observed 25: the text of messages with sessions goes on with its session.
#[tokio::test]
async fn a_queue_with_sessions_may_forward() {
    let inbox = Queue::new("sessions")
        .requires_session(true)
        .forward_to("orders");
    let (_servicebus, mut client) = connected(start(topology().queue(inbox))).await;
    let mut sent = ServiceBusMessage::new("over");
    sent.set_session_id("s".to_owned()).unwrap();
    send(&mut client, "sessions", [sent]).await;
    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(
        (body(&message).as_str(), message.session_id()),
        ("over", Some("s"))
    );
    complete(&mut receiver, &message).await;
}

#[tokio::test]
async fn a_queue_that_forwards_cannot_be_received_from() {
    let (_servicebus, mut client) = connected(bus()).await;
    let options = ServiceBusReceiverOptions::default();
    let opening = client.create_receiver_for_queue("inbox", options);
    let words = "Cannot create a message receiver on an entity with auto-forwarding enabled.";
    assert_refused(opening, &["NotAllowed", words]).await;
    let mut dead = dead_letters(&mut client, "inbox").await;
    receive_nothing(&mut dead).await;
}

/// `inbox` forwards to `orders`, `hop1` over the others to `hop6`, and `complaints` its dead letters.
async fn bus() -> ServiceBus {
    let mut topology = topology()
        .queue(Queue::new("inbox").forward_to("orders"))
        .queue(
            Queue::new("complaints")
                .max_delivery_count(1)
                .forward_dead_lettered_messages_to("orders"),
        )
        .queue(Queue::new("hop6"));
    for hop in 1..6 {
        let next = format!("hop{}", hop + 1);
        topology = topology.queue(Queue::new(format!("hop{hop}")).forward_to(next));
    }
    start(topology).await
}

/// Receives the one message that a queue could not forward; the description of why.
async fn expect_failed(client: &mut Client, queue: &str, reason: &str) -> String {
    let mut failed = transfer_dead_letters(client, queue).await;
    let message = receive_one(&mut failed).await;
    assert_eq!(message.dead_letter_reason(), Some(reason));
    complete(&mut failed, &message).await;
    receive_nothing(&mut failed).await;
    let description = message.dead_letter_error_description();
    description.unwrap_or_default().to_owned()
}
