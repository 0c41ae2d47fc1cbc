//! State of sessions: opaque bytes that outlive messages and receivers.
//!
//! Source: message-sessions. For this SDK a state is always there: it cannot clear one, nor read that there is none.

use std::time::Duration;

use servicebus_harness::azservicebus::ServiceBusSessionReceiver;

use super::receiver::{accept, accept_of_subscription, close, complete, receive_one};
use super::{bus, cart};
use crate::conformance::client::{assert_refused, connected, done, send};

#[tokio::test]
async fn a_state_is_read_as_it_was_set() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    for state in [&b"\x00\xffhalf done"[..], b"done"] {
        set(&mut receiver, state).await;
        assert_eq!(state_of(&mut receiver).await, state);
    }
}

/// The service answers with a null, for which this SDK has no type. The receiver goes on.
#[tokio::test]
async fn the_sdk_cannot_read_an_absent_state() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    assert_refused(receiver.session_state(), &["MessageDecode"]).await;
    set(&mut receiver, b"done").await;
    assert_eq!(state_of(&mut receiver).await, b"done");
}

#[tokio::test]
async fn a_session_state_outlives_messages_receivers_and_locks() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "carts", [cart("1", "a")]).await;
    let mut first = accept(&mut client, "carts", "1").await;
    let message = receive_one(&mut first).await;
    set(&mut first, b"half done").await;
    complete(&mut first, &message).await;
    close(first).await;

    let mut second = accept(&mut client, "carts", "1").await;
    assert_eq!(state_of(&mut second).await, b"half done");
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let mut third = accept(&mut client, "carts", "1").await;
    assert_eq!(state_of(&mut third).await, b"half done");
}

#[tokio::test]
async fn every_session_of_every_entity_has_its_own_state() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut receivers = [
        accept(&mut client, "carts", "1").await,
        accept(&mut client, "carts", "2").await,
        accept(&mut client, "limited-carts", "1").await,
        accept_of_subscription(&mut client, "steps", "by-cart", "1").await,
    ];
    for (number, receiver) in receivers.iter_mut().enumerate() {
        set(receiver, number.to_string().as_bytes()).await;
    }
    for (number, receiver) in receivers.iter_mut().enumerate() {
        assert_eq!(state_of(receiver).await, number.to_string().as_bytes());
    }
}

#[tokio::test]
async fn a_session_state_has_at_most_256_kibibytes() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    let largest = vec![b'c'; 256 * 1024];
    set(&mut receiver, &largest).await;
    let setting = receiver.set_session_state(vec![b'!'; 256 * 1024 + 1]);
    assert_refused(setting, &["262144"]).await;
    assert!(state_of(&mut receiver).await == largest, "it is another");
}

async fn set(receiver: &mut ServiceBusSessionReceiver, state: &[u8]) {
    done("the answer", receiver.set_session_state(state.to_vec())).await;
}

async fn state_of(receiver: &mut ServiceBusSessionReceiver) -> Vec<u8> {
    done("the state", receiver.session_state()).await
}
