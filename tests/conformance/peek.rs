//! Peeking: what is there, in which state, from which sequence number on.

use servicebus_harness::azservicebus::{ServiceBusMessageState, ServiceBusPeekedMessage};
use servicebus_harness::prelude::*;

use crate::conformance::client::{
    bus, complete, connected, done, numbers, receive_one, receiver, send,
};

#[tokio::test]
async fn a_peek_shows_locked_and_unlocked_messages_as_active() {
    let (_servicebus, mut client) = connected(bus()).await;
    send(&mut client, "orders", ["locked", "waiting"]).await;
    let mut receiver = receiver(&mut client, "orders").await;
    let locked = receive_one(&mut receiver).await;

    let peeked = done("a peek", receiver.peek_messages(10, None)).await;
    let seen: Vec<_> = peeked
        .iter()
        .map(|message| (message.sequence_number(), body(message), message.state()))
        .collect();
    assert_eq!(
        seen,
        [
            (1, "locked".to_owned(), ServiceBusMessageState::Active),
            (2, "waiting".to_owned(), ServiceBusMessageState::Active),
        ]
    );
    complete(&mut receiver, &locked).await;
}

#[tokio::test]
async fn a_peek_starts_at_its_sequence_number_and_locks_nothing() {
    let (servicebus, mut client) = connected(bus()).await;
    let messages = (1..=10).map(|number| number.to_string());
    send(&mut client, "orders", messages).await;
    let mut receiver = receiver(&mut client, "orders").await;

    let peeked = done("a peek", receiver.peek_messages(3, Some(5))).await;
    assert_eq!(numbers(&peeked), [5, 6, 7]);
    let texts: Vec<_> = peeked.iter().map(body).collect();
    assert_eq!(texts, ["5", "6", "7"]);
    let going_on = done("a peek", receiver.peek_messages(2, None)).await;
    assert_eq!(numbers(&going_on), [8, 9]);
    let last = done("a peek", receiver.peek_messages(5, Some(10))).await;
    assert_eq!(numbers(&last), [10]);
    let past_the_end = done("a peek", receiver.peek_messages(5, Some(11))).await;
    assert!(past_the_end.is_empty(), "{past_the_end:?}");
    assert_message_count!(servicebus.queue("orders"), active = 10).await;
}

#[tokio::test]
async fn a_peek_at_an_empty_queue_is_empty() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut receiver = receiver(&mut client, "orders").await;

    let peeked = done("a peek", receiver.peek_message(None)).await;
    assert!(peeked.is_none(), "{peeked:?}");
}

fn body(message: &ServiceBusPeekedMessage) -> String {
    let bytes = message.body().expect("the body is data");
    String::from_utf8_lossy(bytes).into_owned()
}
