//! Entity status: what a disabled queue refuses, when a link opens and when one is open.
//!
//! Source: entity-suspend, and D27 for what is locked.
//!
//! Entities that do not exist: the SDK's error says so, whatever was asked of them.

use rstest::rstest;
use servicebus_harness::azservicebus::{ServiceBusReceiverOptions, SubQueue};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    Client, LOCK_LOST, assert_refused, body, bus, close, complete, connect, connected, done,
    of_sub_queue, receive_one, receiver, refusal, send, sender, start, topology, within,
};

const DISABLED: &str = "com.microsoft:entity-disabled";
/// In the refusal of a queue that does not exist, which it names.
const NOT_FOUND: [&str; 2] = ["could not be found", "missing"];

#[tokio::test]
async fn a_disabled_queue_refuses_clients_and_keeps_its_messages() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["kept"]).await;
    set(&servicebus, EntityStatus::Disabled).await;
    expect_no_send(&mut client).await;
    expect_no_receive(&mut client).await;
    set(&servicebus, EntityStatus::Active).await;
    expect_receive(&mut client, "kept").await;
}

#[tokio::test]
async fn a_queue_disabled_for_sends_can_be_received_from() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["kept"]).await;
    set(&servicebus, EntityStatus::SendDisabled).await;
    expect_no_send(&mut client).await;
    expect_receive(&mut client, "kept").await;
}

#[tokio::test]
async fn a_queue_disabled_for_receives_can_be_sent_to() {
    let queue = Queue::new("orders").status(EntityStatus::ReceiveDisabled);
    let (servicebus, mut client) = connected(start(Topology::new().queue(queue))).await;
    send(&mut client, "orders", ["kept"]).await;
    expect_no_receive(&mut client).await;
    assert_message_count!(servicebus.queue("orders"), active = 1, locked = 0).await;
}

#[tokio::test]
async fn an_open_sender_is_refused_until_the_queue_is_enabled() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "orders").await;
    sender.send_message("before").await.unwrap();
    set(&servicebus, EntityStatus::Disabled).await;
    assert_refused(sender.send_message("meanwhile"), &[DISABLED]).await;
    set(&servicebus, EntityStatus::Active).await;
    done("the outcome", sender.send_message("after")).await;
    expect_receive(&mut client, "before").await;
    expect_receive(&mut client, "after").await;
}

#[tokio::test]
async fn an_open_receiver_loses_its_link() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut open = receiver(&mut client, "orders").await;
    set(&servicebus, EntityStatus::ReceiveDisabled).await;
    send(&mut client, "orders", ["kept"]).await;
    assert_refused(open.receive_message(), &[DISABLED]).await;
    set(&servicebus, EntityStatus::Active).await;
    let mut again = connect(&servicebus).await;
    expect_receive(&mut again, "kept").await;
}

/// Under both settings of D2.
#[rstest]
#[tokio::test]
async fn a_lock_runs_on_or_ends_with_its_link_when_its_queue_is_disabled(
    #[values(LocksOnDetach::Keep, LocksOnDetach::Release)] locks_on_detach: LocksOnDetach,
) {
    let (servicebus, mut client) =
        connected(start(topology().locks_on_detach(locks_on_detach))).await;
    send(&mut client, "orders", ["held"]).await;
    let mut holder = receiver(&mut client, "orders").await;
    let mut held = receive_one(&mut holder).await;
    set(&servicebus, EntityStatus::Disabled).await;
    let refused = holder.renew_message_lock(&mut held);
    assert_refused(refused, &["is currently disabled"]).await;
    set(&servicebus, EntityStatus::Active).await;

    let mut again = connect(&servicebus).await;
    let mut receiver = receiver(&mut again, "orders").await;
    let renewal = within("the answer", receiver.renew_message_lock(&mut held)).await;
    match locks_on_detach {
        LocksOnDetach::Keep => {
            renewal.expect("the lock is still held");
            assert_message_count!(servicebus.queue("orders"), active = 1, locked = 1).await;
        }
        LocksOnDetach::Release => {
            let error = refusal(renewal);
            assert!(error.contains(LOCK_LOST), "{error}");
            let message = receive_one(&mut receiver).await;
            assert_eq!(message.delivery_count(), Some(1));
            complete(&mut receiver, &message).await;
        }
    }
}

async fn set(servicebus: &ServiceBus, status: EntityStatus) {
    let orders = servicebus.queue("orders");
    orders.update(|queue| queue.status(status)).await;
}

async fn expect_no_send(client: &mut Client) {
    let opening = client.create_sender("orders", Default::default());
    assert_refused(opening, &[DISABLED]).await;
}

async fn expect_no_receive(client: &mut Client) {
    let options = ServiceBusReceiverOptions::default();
    let opening = client.create_receiver_for_queue("orders", options);
    assert_refused(opening, &[DISABLED]).await;
}

async fn expect_receive(client: &mut Client, expected: &str) {
    let mut receiver = receiver(client, "orders").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), expected);
    complete(&mut receiver, &message).await;
    close(receiver).await;
}

#[tokio::test]
async fn a_sender_to_a_missing_queue_is_refused() {
    let (_servicebus, mut client) = connected(bus()).await;
    let opening = client.create_sender("missing", Default::default());
    assert_refused(opening, &NOT_FOUND).await;
}

#[tokio::test]
async fn a_receiver_of_a_missing_queue_is_refused() {
    let (_servicebus, mut client) = connected(bus()).await;
    let options = ServiceBusReceiverOptions::default();
    let opening = client.create_receiver_for_queue("missing", options);
    assert_refused(opening, &NOT_FOUND).await;
}

#[tokio::test]
async fn a_receiver_of_a_missing_queues_dead_letters_is_refused() {
    let (_servicebus, mut client) = connected(bus()).await;
    let options = of_sub_queue(SubQueue::DeadLetter);
    let opening = client.create_receiver_for_queue("missing", options);
    assert_refused(opening, &NOT_FOUND).await;
}
