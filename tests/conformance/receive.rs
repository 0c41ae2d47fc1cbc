//! Receiving: under a lock, destructively, several at once, and ahead of need.

use std::time::{Duration, SystemTime};

use servicebus_harness::azservicebus::ServiceBusReceiverOptions;
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    bodies, body, bus, complete, complete_all, connected, deleting, done, receive, receive_nothing,
    receive_one, receiver, receiver_with, send,
};

#[tokio::test]
async fn a_received_message_is_locked_and_gone_once_completed() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["one"]).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), "one");
    let locked_until: SystemTime = message.locked_until().expect("it is locked").into();
    let remaining = locked_until.duration_since(SystemTime::now()).unwrap();
    assert!(
        (30..=61).contains(&remaining.as_secs()),
        "a fresh lock of one minute has {remaining:?} left"
    );
    assert_message_count!(servicebus.queue("orders"), active = 1).await;
    complete(&mut receiver, &message).await;
    assert_message_count!(servicebus.queue("orders"), active = 0).await;
    receive_nothing(&mut receiver).await;
}

#[tokio::test]
async fn receive_and_delete_removes_received_messages() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["one", "two"]).await;

    let mut receiver = receiver_with(&mut client, "orders", deleting()).await;
    let messages = receive(&mut receiver, 2).await;
    assert_eq!(bodies(&messages), ["one", "two"]);
    assert_message_count!(servicebus.queue("orders"), active = 0).await;
    receive_nothing(&mut receiver).await;
}

#[tokio::test]
async fn a_receive_returns_fewer_messages_than_requested() {
    let (servicebus, mut client) = connected(bus()).await;
    let sent: Vec<String> = (0..20).map(|number| number.to_string()).collect();
    send(&mut client, "orders", sent.clone()).await;

    let mut receiver = receiver(&mut client, "orders").await;
    let waiting = receiver.receive_messages_with_max_wait_time(50, Duration::from_secs(5));
    let messages = done("what there is", waiting).await;
    assert_eq!(bodies(&messages), sent);
    for message in messages.iter().rev() {
        complete(&mut receiver, message).await;
    }
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn a_waiting_receive_gets_a_message_that_is_sent_later() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut receiver = receiver(&mut client, "orders").await;
    receive_nothing(&mut receiver).await;

    let (message, ()) = tokio::join!(
        receive_one(&mut receiver),
        send(&mut client, "orders", ["late"])
    );
    assert_eq!(body(&message), "late");
    assert_eq!(message.delivery_count(), Some(1));
    complete(&mut receiver, &message).await;
}

/// This SDK gives new credit before its drain of the old is answered; the two cross on the wire.
#[tokio::test]
async fn a_polling_receiver_gets_messages_sent_between_polls() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut receiver = receiver(&mut client, "orders").await;
    for round in 0..3 {
        receive_nothing(&mut receiver).await;
        receive_nothing(&mut receiver).await;
        send(&mut client, "orders", [round.to_string()]).await;
        let message = receive_one(&mut receiver).await;
        assert_eq!(body(&message), round.to_string());
        assert_eq!(message.delivery_count(), Some(1));
        complete(&mut receiver, &message).await;
    }
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn prefetched_messages_are_locked_before_the_receive() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["a", "b", "c"]).await;

    let options = ServiceBusReceiverOptions {
        prefetch_count: 10,
        ..ServiceBusReceiverOptions::default()
    };
    let mut receiver = receiver_with(&mut client, "orders", options).await;
    let first = receive_one(&mut receiver).await;
    complete(&mut receiver, &first).await;
    let rest = receive(&mut receiver, 2).await;
    assert_eq!(bodies(&rest), ["b", "c"]);
    complete_all(&mut receiver, &rest).await;
    assert_empty!(servicebus.queue("orders")).await;
}

#[tokio::test]
async fn competing_receivers_share_a_queue() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut left = receiver(&mut client, "orders").await;
    let mut right = receiver(&mut client, "orders").await;
    send(&mut client, "orders", ["a", "b"]).await;

    let first = receive_one(&mut left).await;
    let second = receive_one(&mut right).await;
    assert_eq!([body(&first), body(&second)], ["a", "b"]);
    complete(&mut left, &first).await;
    complete(&mut right, &second).await;
    assert_completed!(servicebus.queue("orders"), count = 2).await;
}

/// However much credit another one has (spec/observed.md 17).
#[tokio::test]
async fn competing_receivers_both_get_messages() {
    let (_servicebus, mut client) = connected(bus()).await;
    let prefetching = ServiceBusReceiverOptions {
        prefetch_count: 2_000,
        ..ServiceBusReceiverOptions::default()
    };
    let _greedy = receiver_with(&mut client, "orders", prefetching).await;
    let mut other = receiver(&mut client, "orders").await;
    let sending = async {
        for _ in 0..1_000 {
            send(&mut client, "orders", ["m"]).await;
        }
    };
    tokio::select! {
        biased;
        message = receive_one(&mut other) => assert_eq!(body(&message), "m"),
        () = sending => panic!("the receiver with 2,000 credits got all of 1,000 messages"),
    }
}
