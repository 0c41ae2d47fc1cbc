//! Messages of sessions: in strict order, and what becomes of them without a receiver's success.
//!
//! Source: message-sessions, message-deferral, message-browsing, service-bus-dead-letter-queues.

use std::time::{Duration, SystemTime};

use servicebus_harness::EventKind;
use servicebus_harness::azservicebus::{
    ServiceBusMessage, ServiceBusMessageState, ServiceBusReceiver, SubQueue,
};
use servicebus_harness::prelude::*;

use super::receiver::{
    abandon, accept, accept_next, close, complete, complete_all, defer, receive, receive_nothing,
    receive_one,
};
use super::{bus, cart};
use crate::conformance::client::{
    assert_refused, because, bodies, body, connected, dead_letters, done, numbers, of_sub_queue,
    send, sender, subscriber_with,
};

#[tokio::test]
async fn an_abandoned_session_message_is_next_again() {
    let (servicebus, mut client) = connected(bus()).await;
    let messages = ["a", "b", "c", "d"].map(|text| cart("1", text));
    send(&mut client, "carts", messages).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    let first = receive_one(&mut receiver).await;
    abandon(&mut receiver, &first).await;
    let held = receive(&mut receiver, 3).await;
    assert_eq!(bodies(&held), ["a", "b", "c"]);
    abandon(&mut receiver, &held[2]).await;
    complete(&mut receiver, &held[1]).await;
    abandon(&mut receiver, &held[0]).await;

    let messages = receive(&mut receiver, 3).await;
    let seen: Vec<_> = messages
        .iter()
        .map(|message| (body(message), message.delivery_count()))
        .collect();
    let expected = [("a", Some(3)), ("c", Some(2)), ("d", Some(1))];
    assert_eq!(seen, expected.map(|(text, count)| (text.to_owned(), count)));
    complete_all(&mut receiver, &messages).await;
    assert_empty!(servicebus.queue("carts")).await;
}

#[tokio::test]
async fn a_deferred_message_is_received_by_the_session_holder() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "carts", [cart("1", "a"), cart("1", "b")]).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    let messages = receive(&mut receiver, 2).await;
    defer(&mut receiver, &messages[0]).await;
    complete(&mut receiver, &messages[1]).await;
    receive_nothing(&mut receiver).await;
    close(receiver).await;
    assert_message_count!(servicebus.queue("carts"), deferred = 1, locked = 0).await;

    let mut another = accept(&mut client, "carts", "2").await;
    let receiving = another.receive_deferred_messages(std::iter::once(1));
    assert_refused(receiving, &["404"]).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    for delivery in 2..=3 {
        let receiving = receiver.receive_deferred_message(1);
        let message = done("the deferred message", receiving).await;
        let message = message.expect("it is deferred");
        assert_eq!(message.state(), ServiceBusMessageState::Deferred);
        assert_eq!(message.delivery_count(), Some(delivery));
        if delivery == 2 {
            abandon(&mut receiver, &message).await;
        } else {
            complete(&mut receiver, &message).await;
        }
    }
    assert_empty!(servicebus.queue("carts")).await;
}

#[tokio::test]
async fn a_session_receiver_peeks_only_its_session() {
    let (servicebus, mut client) = connected(bus()).await;
    let messages = [cart("1", "a"), cart("2", "b"), cart("1", "c")];
    send(&mut client, "carts", messages).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    let peeked = done("a peek", receiver.peek_messages(10, None)).await;
    assert_eq!(numbers(&peeked), [1, 3]);
    let peeked = done("a peek", receiver.peek_messages(10, Some(2))).await;
    assert_eq!(numbers(&peeked), [3]);
    assert_eq!(peeked[0].session_id(), Some("1"));
    assert_message_count!(servicebus.queue("carts"), active = 3, locked = 0).await;
}

#[tokio::test]
async fn dead_letters_keep_their_session_id_and_need_no_session() {
    let (servicebus, mut client) = connected(bus()).await;
    send(&mut client, "carts", [cart("1", "bad"), cart("2", "worse")]).await;
    for session in ["1", "2"] {
        let mut receiver = accept(&mut client, "carts", session).await;
        let message = receive_one(&mut receiver).await;
        let options = because("Rejected");
        let settling = receiver.dead_letter_message(&message, options);
        done("the settlement", settling).await;
        close(receiver).await;
    }
    let mut dead = dead_letters(&mut client, "carts").await;
    let messages = crate::conformance::client::receive(&mut dead, 2).await;
    assert_eq!(bodies(&messages), ["bad", "worse"]);
    for (message, session) in messages.iter().zip(["1", "2"]) {
        assert_eq!(message.session_id(), Some(session));
        assert_eq!(message.dead_letter_reason(), Some("Rejected"));
        crate::conformance::client::complete(&mut dead, message).await;
    }
    assert_message_count!(servicebus.queue("carts"), active = 0, dead_letter = 0).await;
}

#[tokio::test]
async fn a_dead_lettered_session_message_unblocks_later_ones() {
    let (servicebus, mut client) = connected(bus()).await;
    let messages = [cart("1", "poison"), cart("1", "good")];
    send(&mut client, "limited-carts", messages).await;
    let mut receiver = accept(&mut client, "limited-carts", "1").await;
    for delivery in 1..=2 {
        let message = receive_one(&mut receiver).await;
        assert_eq!(body(&message), "poison");
        assert_eq!(message.delivery_count(), Some(delivery));
        abandon(&mut receiver, &message).await;
    }
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), "good");
    complete(&mut receiver, &message).await;
    let limited = servicebus.queue("limited-carts");
    assert_message_count!(limited, active = 0, dead_letter = 1).await;
}

#[tokio::test]
async fn a_session_queue_refuses_messages_without_a_session_id() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "carts").await;
    const NO_ID: &str =
        "The SessionId was not set on a message, and it cannot be sent to the entity.";
    let stray = || ServiceBusMessage::new("stray");
    assert_refused(sender.send_message(stray()), &[NO_ID]).await;
    let batch = [cart("1", "a"), stray()];
    assert_refused(sender.send_messages(batch), &[NO_ID]).await;
    let at = SystemTime::now() + Duration::from_secs(60);
    let scheduling = sender.schedule_message(stray(), at.into());
    assert_refused(scheduling, &[NO_ID]).await;

    let carts = servicebus.queue("carts");
    assert_message_count!(carts, active = 0, scheduled = 0, dead_letter = 0).await;
    let timeline = servicebus.timeline(&carts).await;
    assert_eq!(timeline.count(&EventKind::Refused), 3, "{timeline}");
}

#[tokio::test]
async fn a_session_subscription_dead_letters_a_message_without_a_session_id() {
    let (servicebus, mut client) = connected(bus()).await;
    let messages = [ServiceBusMessage::new("stray"), cart("1", "a")];
    send(&mut client, "steps", messages).await;
    let all = servicebus.subscription("steps", "all");
    assert_message_count!(all, active = 2, dead_letter = 0).await;
    let by_cart = servicebus.subscription("steps", "by-cart");
    assert_message_count!(by_cart, active = 1, dead_letter = 1).await;
    let options = of_sub_queue(SubQueue::DeadLetter);
    let mut dead = subscriber_with(&mut client, "steps", "by-cart", options).await;
    expect_dead_for_want_of_id(&mut dead).await;
}

#[tokio::test]
async fn a_forwarded_message_joins_its_session_or_is_dead_lettered() {
    let (_servicebus, mut client) = connected(bus()).await;
    let messages = [cart("1", "a"), ServiceBusMessage::new("stray")];
    send(&mut client, "inbox", messages).await;
    let mut receiver = accept(&mut client, "carts", "1").await;
    let message = receive_one(&mut receiver).await;
    assert_eq!(body(&message), "a");
    complete(&mut receiver, &message).await;
    let mut dead = dead_letters(&mut client, "carts").await;
    expect_dead_for_want_of_id(&mut dead).await;
}

#[tokio::test]
async fn a_scheduled_message_joins_its_session_when_it_becomes_active() {
    let (servicebus, mut client) = connected(bus()).await;
    let mut sender = sender(&mut client, "carts").await;
    let at = SystemTime::now() + Duration::from_secs(300);
    let messages = [cart("1", "a"), cart("2", "b"), cart("1", "c")];
    let scheduling = sender.schedule_messages(messages, at.into());
    done("the numbers", scheduling).await;
    assert_message_count!(servicebus.queue("carts"), active = 0, scheduled = 3).await;
    let mut early = accept(&mut client, "carts", "1").await;
    receive_nothing(&mut early).await;
    close(early).await;

    servicebus.clock().advance(Duration::from_secs(301)).await;
    let mut receiver = accept_next(&mut client, "carts").await;
    assert_eq!(receiver.session_id(), "1");
    let messages = receive(&mut receiver, 2).await;
    assert_eq!(bodies(&messages), ["a", "c"]);
    complete_all(&mut receiver, &messages).await;
    assert_message_count!(servicebus.queue("carts"), active = 1, scheduled = 0).await;
}

#[tokio::test]
async fn a_reply_arrives_in_the_reply_to_session() {
    let (_servicebus, mut client) = connected(bus()).await;
    let mut request = cart("requests", "ask");
    request
        .set_reply_to_session_id("answers-7".to_owned())
        .unwrap();
    send(&mut client, "carts", [request]).await;
    let mut requests = accept(&mut client, "carts", "requests").await;
    let request = receive_one(&mut requests).await;
    let session = request.reply_to_session_id().expect("it names a session");
    send(&mut client, "carts", [cart(session, "answer")]).await;
    complete(&mut requests, &request).await;

    let mut answers = accept(&mut client, "carts", "answers-7").await;
    let answer = receive_one(&mut answers).await;
    assert_eq!(body(&answer), "answer");
    assert_eq!(answer.reply_to_session_id(), None);
    complete(&mut answers, &answer).await;
}

/// Receives the one dead letter that has no session id.
async fn expect_dead_for_want_of_id(receiver: &mut ServiceBusReceiver) {
    let message = crate::conformance::client::receive_one(receiver).await;
    assert_eq!(body(&message), "stray");
    assert_eq!(message.session_id(), None);
    assert_eq!(message.dead_letter_reason(), Some("Session ID is null."));
    assert_eq!(
        message.dead_letter_error_description(),
        Some("Session enabled entity doesn't allow a message whose session identifier is null.")
    );
    crate::conformance::client::complete(receiver, &message).await;
}
