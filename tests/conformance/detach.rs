//! Receivers that go away with a message locked, under both settings of D2.

use std::time::Duration;

use servicebus_harness::azservicebus::ServiceBusReceivedMessage;
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    Client, LOCK_LOST, abandon, assert_refused, close, complete, connect_with, connected,
    custom_endpoint, done, receive_nothing, receive_one, receiver, send, start, topology, within,
};

#[tokio::test]
async fn a_kept_lock_outlives_its_closed_receiver() {
    let (servicebus, mut client) = connected(bus(LocksOnDetach::Keep)).await;
    let mut held = receive_and_close(&mut client).await;

    let mut receiver = receiver(&mut client, "orders").await;
    receive_nothing(&mut receiver).await;
    // Its token still renews it, from another link.
    within("the renewal", receiver.renew_message_lock(&mut held))
        .await
        .expect("the lock is still held");
    close(receiver).await;
    expect_return(&servicebus, &mut client).await;
}

#[tokio::test]
async fn a_released_lock_ends_with_its_closed_receiver() {
    let (servicebus, mut client) = connected(bus(LocksOnDetach::Release)).await;
    let mut held = receive_and_close(&mut client).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let again = receive_one(&mut receiver).await;
    assert_eq!(again.delivery_count(), Some(1));
    assert_refused(receiver.renew_message_lock(&mut held), &[LOCK_LOST]).await;
    abandon(&mut receiver, &again).await;
    close(receiver).await;
    expect_return(&servicebus, &mut client).await;
}

#[tokio::test]
async fn a_kept_lock_outlives_its_dropped_connection() {
    let (servicebus, mut client) = connected(bus(LocksOnDetach::Keep)).await;
    receive_and_vanish(&servicebus, &mut client).await;

    let mut receiver = receiver(&mut client, "orders").await;
    receive_nothing(&mut receiver).await;
    close(receiver).await;
    expect_return(&servicebus, &mut client).await;
}

#[tokio::test]
async fn a_released_lock_ends_with_its_dropped_connection() {
    let (servicebus, mut client) = connected(bus(LocksOnDetach::Release)).await;
    receive_and_vanish(&servicebus, &mut client).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let again = receive_one(&mut receiver).await;
    assert_eq!(again.delivery_count(), Some(1));
    abandon(&mut receiver, &again).await;
    close(receiver).await;
    expect_return(&servicebus, &mut client).await;
}

async fn bus(locks_on_detach: LocksOnDetach) -> ServiceBus {
    start(topology().locks_on_detach(locks_on_detach)).await
}

/// Sends a message, receives it and closes the receiver with the message locked.
async fn receive_and_close(client: &mut Client) -> ServiceBusReceivedMessage {
    send(client, "orders", ["held"]).await;
    let mut receiver = receiver(client, "orders").await;
    let held = receive_one(&mut receiver).await;
    close(receiver).await;
    held
}

/// Sends a message and lets another client receive it and vanish without a word.
///
/// That client lives on a runtime of its own: with the runtime go its tasks and its socket, before
/// anything of the client is told to close.
async fn receive_and_vanish(servicebus: &ServiceBus, client: &mut Client) {
    send(client, "orders", ["held"]).await;
    let connection_string = servicebus.connection_string().to_owned();
    let custom_endpoint = custom_endpoint(servicebus);
    let vanishing = tokio::task::spawn_blocking(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime can be made");
        let held = runtime.block_on(async {
            let mut client = connect_with(&connection_string, custom_endpoint).await;
            let mut receiver = receiver(&mut client, "orders").await;
            let message = receive_one(&mut receiver).await;
            (client, receiver, message)
        });
        drop(runtime);
        drop(held);
    });
    done("the other client's end", vanishing).await;
}

/// After a minute the message is back, counted once: by its lock's end or by an abandon.
async fn expect_return(servicebus: &ServiceBus, client: &mut Client) {
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let mut receiver = receiver(client, "orders").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(message.delivery_count(), Some(2));
    complete(&mut receiver, &message).await;
    assert_completed!(servicebus.queue("orders"), count = 1).await;
}
