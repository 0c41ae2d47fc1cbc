//! Sessions: accepted by their ids or as the next one, by one receiver at a time.
//!
//! Source: message-sessions, and D10 for which session is next. The entities are those of the other SDKs' cases,
//! in `tests/sdks/sessions.json`: `carts`, `limited-carts`, of two deliveries, and `quick-carts`, whose locks last
//! twelve seconds, require sessions; `inbox` forwards to `carts`; `steps` has the subscriptions `by-cart`, which
//! requires sessions, and `all`, which does not; `orders` is plain.
//!
//! This SDK does not say how long it wants to wait for the next session, so that the broker's 65 seconds hold; that
//! they end is left to the SDKs that say so. Until a session is renewed it does not know how long it is locked.

mod locks;
mod messages;
mod receiver;
mod side_by_side;
mod state;

use servicebus_harness::azservicebus::{
    ServiceBusMessage, ServiceBusReceiveMode, ServiceBusSessionReceiverOptions,
};
use servicebus_harness::prelude::*;

use self::receiver::{
    accept, accept_next, accept_of_subscription, close, complete, complete_all, receive,
    receive_nothing, receive_one,
};
use crate::conformance::client::{
    assert_refused, bodies, body, connect, connected, done, send, start,
};

#[tokio::test]
async fn an_accepted_session_delivers_only_its_own_messages() {
    let (servicebus, mut client) = connected(bus()).await;
    let messages = [cart("1", "a"), cart("2", "b"), cart("1", "c")];
    send(&mut client, "carts", messages).await;

    let mut receiver = accept(&mut client, "carts", "1").await;
    assert_eq!(receiver.session_id(), "1");
    let messages = receive(&mut receiver, 2).await;
    assert_eq!(bodies(&messages), ["a", "c"]);
    for message in &messages {
        assert_eq!(message.session_id(), Some("1"));
    }
    assert_message_count!(servicebus.queue("carts"), active = 3, locked = 2).await;
    complete_all(&mut receiver, &messages).await;
    receive_nothing(&mut receiver).await;
    assert_message_count!(servicebus.queue("carts"), active = 1, locked = 0).await;
}

#[tokio::test]
async fn an_empty_session_delivers_later_messages() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    receive_nothing(&mut receiver).await;
    let messages = [cart("2", "another's"), cart("1", "late")];
    send(&mut client, "carts", messages).await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), "late");
    complete(&mut receiver, &message).await;
}

#[tokio::test]
async fn the_next_session_is_the_free_one_with_the_oldest_message() {
    let (servicebus, mut client) = connected(bus()).await;
    let messages = [cart("2", "a"), cart("1", "b"), cart("2", "c")];
    send(&mut client, "carts", messages).await;

    let mut first = accept_next(&mut client, "carts").await;
    let mut second = accept_next(&mut client, "carts").await;
    assert_eq!((first.session_id(), second.session_id()), ("2", "1"));
    let messages = receive(&mut second, 1).await;
    assert_eq!(bodies(&messages), ["b"]);
    complete_all(&mut second, &messages).await;
    let messages = receive(&mut first, 2).await;
    assert_eq!(bodies(&messages), ["a", "c"]);
    complete_all(&mut first, &messages).await;
    assert_empty!(servicebus.queue("carts")).await;
}

#[tokio::test]
async fn a_receiver_waits_for_an_available_session() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sending = connect(&servicebus).await;
    let waiting = tokio::spawn(async move {
        let receiver = accept_next(&mut client, "carts").await;
        (client, receiver)
    });
    send(&mut sending, "carts", [cart("1", "late")]).await;
    let (_client, mut receiver) = done("the session", waiting).await;
    assert_eq!(receiver.session_id(), "1");
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), "late");
    complete(&mut receiver, &message).await;
}

#[tokio::test]
async fn a_session_has_one_receiver_at_a_time() {
    let (_servicebus, mut client) = connected(bus()).await;
    let holder = accept(&mut client, "carts", "1").await;
    let accepting = client.accept_session_for_queue("carts", "1", Default::default());
    let words =
        "The requested session '1' cannot be accepted. It may be locked by another receiver.";
    assert_refused(accepting, &["session-cannot-be-locked", words]).await;

    close(holder).await;
    let receiver = accept(&mut client, "carts", "1").await;
    assert_eq!(receiver.session_id(), "1");
}

#[tokio::test]
async fn a_closed_receiver_unlocks_its_session_without_counting_deliveries() {
    let (servicebus, mut client) = connected(bus()).await;
    let messages = ["a", "b", "c"].map(|text| cart("1", text));
    send(&mut client, "carts", messages).await;
    let mut closing = accept(&mut client, "carts", "1").await;
    receive(&mut closing, 2).await;
    assert_message_count!(servicebus.queue("carts"), active = 3, locked = 2).await;
    close(closing).await;
    assert_message_count!(servicebus.queue("carts"), active = 3, locked = 0).await;

    let mut receiver = accept_next(&mut client, "carts").await;
    let messages = receive(&mut receiver, 3).await;
    assert_eq!(bodies(&messages), ["a", "b", "c"]);
    for message in &messages {
        assert_eq!(message.delivery_count(), Some(1));
        complete(&mut receiver, message).await;
    }
    assert_empty!(servicebus.queue("carts")).await;
}

#[tokio::test]
async fn a_session_receiver_supports_receive_and_delete() {
    let (servicebus, mut client) = connected(bus()).await;
    let messages = [cart("1", "a"), cart("2", "b"), cart("1", "c")];
    send(&mut client, "carts", messages).await;
    let options = ServiceBusSessionReceiverOptions {
        receive_mode: ServiceBusReceiveMode::ReceiveAndDelete,
        ..ServiceBusSessionReceiverOptions::default()
    };
    let accepting = client.accept_session_for_queue("carts", "1", options);
    let mut receiver = done("the session", accepting).await;
    assert_eq!(bodies(&receive(&mut receiver, 2).await), ["a", "c"]);
    assert_message_count!(servicebus.queue("carts"), active = 1, locked = 0).await;
}

#[tokio::test]
async fn each_subscription_may_require_sessions() {
    let (_servicebus, mut client) = connected(bus()).await;
    let messages = [cart("1", "a"), cart("2", "b"), cart("1", "c")];
    send(&mut client, "steps", messages).await;

    let mut named = accept_of_subscription(&mut client, "steps", "by-cart", "1").await;
    let accepting =
        client.accept_next_session_for_subscription("steps", "by-cart", Default::default());
    let mut next = done("the session", accepting).await;
    assert_eq!(next.session_id(), "2");
    for (receiver, expected) in [(&mut named, &["a", "c"][..]), (&mut next, &["b"])] {
        let count = u32::try_from(expected.len()).expect("they are few");
        let messages = receive(receiver, count).await;
        assert_eq!(bodies(&messages), expected);
        complete_all(receiver, &messages).await;
    }
    let mut neighbour = crate::conformance::client::subscriber(&mut client, "steps", "all").await;
    let copies = crate::conformance::client::receive(&mut neighbour, 3).await;
    assert_eq!(bodies(&copies), ["a", "b", "c"]);
    assert_eq!(copies[1].session_id(), Some("2"));
}

#[tokio::test]
async fn a_session_entity_refuses_receivers_without_a_session() {
    let (_servicebus, mut client) = connected(bus()).await;
    let words = "It is not possible for an entity that requires sessions to create a non-sessionful message receiver.";
    let opening = client.create_receiver_for_queue("carts", Default::default());
    assert_refused(opening, &["NotAllowed", words]).await;
    let opening = client.create_receiver_for_subscription("steps", "by-cart", Default::default());
    assert_refused(opening, &["NotAllowed", words]).await;
}

#[tokio::test]
async fn an_entity_without_sessions_refuses_session_receivers() {
    let (_servicebus, mut client) = connected(bus()).await;
    let words = "A sessionful message receiver cannot be created on an entity that does not require sessions.";
    for queue in ["orders", "carts/$DeadLetterQueue"] {
        let accepting = client.accept_session_for_queue(queue, "1", Default::default());
        assert_refused(accepting, &["NotAllowed", words]).await;
        let accepting = client.accept_next_session_for_queue(queue, Default::default());
        assert_refused(accepting, &["NotAllowed", words]).await;
    }
}

#[tokio::test]
async fn a_session_id_has_at_most_128_characters() {
    let (_servicebus, mut client) = connected(bus()).await;
    let longest = "c".repeat(128);
    let receiver = accept(&mut client, "carts", &longest).await;
    assert_eq!(receiver.session_id(), longest);
    let accepting = client.accept_session_for_queue("carts", longest + "c", Default::default());
    assert_refused(accepting, &["argument-error", "129", "128"]).await;
}

/// A bus with the queues and topics of sessions.
async fn bus() -> ServiceBus {
    start(Topology::file("tests/sdks/sessions.json")).await
}

/// A message of a session.
fn cart(session: &str, body: &str) -> ServiceBusMessage {
    let mut message = ServiceBusMessage::new(body);
    message.set_session_id(session.to_owned()).unwrap();
    message
}
