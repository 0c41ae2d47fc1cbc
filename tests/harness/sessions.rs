//! Sessions: accepted as a competing receiver would, settled, kept, lost; and the sentences about them.

use std::time::{Duration, SystemTime};

use serde_json::json;
use servicebus_harness::{EventKind, prelude::*};

use crate::harness::{
    assert_contains, assert_error, error_of,
    failure_texts::{SHORT, assert_fails},
};

const MINUTE: Duration = Duration::from_secs(60);

/// A namespace with a queue of shopping carts, and a topic with a subscription to them.
async fn namespace_with_carts() -> (ServiceBus, QueueClient) {
    let mine = Subscription::new("mine").requires_session(true);
    let topology = Topology::new()
        .queue(Queue::new("carts").requires_session(true))
        .queue(Queue::new("plain"))
        .topic(Topic::new("events").subscription(mine));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    let carts = servicebus.queue("carts");
    (servicebus, carts)
}

fn step(body: &str, session: &str) -> Message {
    Message::from(body).message_id(body).session_id(session)
}

#[tokio::test]
async fn a_session_is_received_in_order_and_settled_in_every_way() {
    let (_servicebus, carts) = namespace_with_carts().await;
    let sent = ["1", "2", "3", "4"].map(|body| step(body, "cart-7"));
    carts.send_all(sent).await;
    carts.send(step("other", "cart-8")).await;

    let cart = carts.accept_session("cart-7").await;
    assert_eq!(cart.session_id(), "cart-7");
    assert!(cart.locked_until() > SystemTime::now());
    let first = cart.receive().await;
    assert_eq!(first.body_text(), "1");
    first.abandon().await;
    let again = cart.receive().await;
    assert_eq!(
        (again.body_text().as_ref(), again.delivery_count()),
        ("1", 2)
    );
    again.complete().await;
    cart.receive().await.release().await;
    cart.receive().await.dead_letter("Rejected", "no").await;
    let number = cart.receive().await.defer().await;
    let last = cart.receive().await;
    assert_eq!(last.body_text(), "4");
    last.complete().await;

    let deferred = cart.receive_deferred(number).await;
    assert_eq!(deferred.body_text(), "3");
    deferred.complete().await;
    cart.close().await;
    assert_completed!(carts, count = 3).await;
    assert_dead_lettered!(carts, reason = "Rejected", message_id = "2").await;
    assert_message_count!(carts, active = 1).await;
}

#[tokio::test]
async fn the_next_session_has_the_oldest_message() {
    let (_servicebus, carts) = namespace_with_carts().await;
    let messages = [step("1", "b"), step("2", "a"), step("3", "b")];
    carts.send_all(messages).await;
    let first = carts.accept_next_session(Duration::ZERO).await;
    let second = carts.accept_next_session(Duration::ZERO).await;
    assert_eq!((first.session_id(), second.session_id()), ("b", "a"));

    let sentence = "carts: no session was available within 0.01 s; it holds 3 active
carts has 2 sessions
  \"a\": 1 message, held by the test, no state
  \"b\": 2 messages, held by the test, no state";
    let refused = carts.accept_next_session(SHORT);
    assert_error(refused, ErrorKind::Timeout, sentence).await;
    let next = carts.accept_next_session(MINUTE);
    let ((), next) = tokio::join!(carts.send(step("4", "c")), next);
    assert_eq!(next.session_id(), "c");
}

#[tokio::test]
async fn a_locked_session_cannot_be_accepted() {
    let (_servicebus, carts) = namespace_with_carts().await;
    carts.send(step("1", "cart-7")).await;
    let held = carts.accept_session("cart-7").await;
    let unsettled = held.receive().await;
    let sentence = "carts: the session \"cart-7\" is held by the test";
    let refused = carts.accept_session("cart-7");
    assert_error(refused, ErrorKind::SessionCannotBeLocked, sentence).await;
    held.close().await;
    let next = carts.accept_session("cart-7").await;
    assert_eq!(next.receive().await.delivery_count(), 1);
    let error = unsettled.complete().result().await.unwrap_err();
    assert!(
        error.to_string().ends_with("the session was closed"),
        "{error}"
    );
}

#[tokio::test]
async fn a_session_without_messages_names_the_others_and_their_holders() {
    let (_servicebus, carts) = namespace_with_carts().await;
    carts.send(step("1", "cart-8")).await;
    let cart = carts.accept_session("cart-7").await;
    let text = error_of(cart.receive_within(SHORT)).await;
    let expected =
        "carts: no message of the session \"cart-7\" arrived within 0.01 s; it holds 1 active
carts has 2 sessions
  \"cart-7\": 0 messages, held by the test, no state
  \"cart-8\": 1 message, ";
    assert_eq!(text, format!("{expected}free, no state"));
    let expectation = carts.expect_completed();
    assert_fails("a_message_of_a_session_that_no_receiver_holds", expectation).await;

    let _other = carts.accept_session("cart-8").await;
    let text = error_of(cart.receive_within(SHORT)).await;
    assert_eq!(text, format!("{expected}held by the test, no state"));
    let failed = carts.expect_completed().within(SHORT).await;
    let text = failed.unwrap_err().to_string();
    let hint = "hint: 1 was never received, although the test holds its session \"cart-8\"";
    assert!(text.ends_with(hint), "{text}");
}

#[tokio::test]
async fn a_dropped_session_is_unlocked() {
    let (_servicebus, carts) = namespace_with_carts().await;
    carts.send(step("1", "cart-7")).await;
    drop(carts.accept_session("cart-7").await);
    let next = carts.accept_next_session(MINUTE).await;
    assert_eq!(next.receive().await.body_text(), "1");
}

#[tokio::test]
async fn an_empty_receive_keeps_the_session() {
    let (_servicebus, carts) = namespace_with_carts().await;
    let cart = carts.accept_session("cart-7").await;
    let error = cart.receive_within(SHORT).result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout, "{error:?}");
    for body in ["1", "2", "3"] {
        carts.send(step(body, "cart-7")).await;
        let received = cart.receive_within(MINUTE).result().await.unwrap();
        assert_eq!(received.body_text(), body);
        received.complete().await;
        assert!(cart.receive_within(Duration::ZERO).result().await.is_err());
    }
    assert_empty!(carts).await;
}

#[tokio::test]
async fn a_state_is_kept_with_the_session() {
    let (_servicebus, carts) = namespace_with_carts().await;
    assert_session_state!(carts, session = "cart-7", set = false).await;
    let cart = carts.accept_session("cart-7").await;
    assert_eq!(cart.state().await, None);
    cart.set_state(r#"{"step":1}"#).await;
    assert_eq!(cart.state().await.unwrap(), r#"{"step":1}"#);
    cart.close().await;

    assert_session_state!(carts, session = "cart-7").await;
    assert_session_state!(carts, session = "cart-7", bytes = r#"{"step":1}"#).await;
    assert_session_state!(carts, session = "cart-7", text = contains("step")).await;
    assert_session_state!(carts, session = "cart-7", json = json!({ "step": 1 })).await;
    carts.accept_session("cart-7").await.clear_state().await;
    assert_session_state!(carts, session = "cart-7", set = false, within = MINUTE).await;
}

#[tokio::test]
async fn a_session_lock_is_renewed_and_expires() {
    let (servicebus, carts) = namespace_with_carts().await;
    carts.send(step("1", "cart-7")).await;
    let mut cart = carts.accept_session("cart-7").await;
    let message = cart.receive().await;
    servicebus.clock().advance(MINUTE / 2).await;
    let end = cart.renew_lock().await;
    assert_eq!(cart.locked_until(), end);
    servicebus.clock().advance(MINUTE * 2 / 3).await;
    assert_eq!(
        carts.sessions().await[0].holder.as_deref(),
        Some("the test")
    );
    servicebus.clock().advance(MINUTE).await;

    let error = message.complete().result().await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MessageLockLost, "{error:?}");
    let sentence = "the session \"cart-7\" of carts is no longer locked by this receiver";
    assert_error(cart.renew_lock(), ErrorKind::SessionLockLost, sentence).await;
    cart.close().await;
    let next = carts.accept_next_session(Duration::ZERO).await;
    assert_eq!(next.receive().await.delivery_count(), 2);
}

#[tokio::test]
async fn a_session_lock_is_ended() {
    let (servicebus, carts) = namespace_with_carts().await;
    carts.send(step("1", "cart-7")).await;
    let cart = carts.accept_session("cart-7").await;
    carts.lose_session_lock("cart-7").await;
    let error = cart.receive_within(MINUTE).result().await.unwrap_err();
    assert_contains(&error, "session-lock-lost");
    let error = carts
        .lose_session_lock("cart-7")
        .result()
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("cannot end the lock of the session \"cart-7\" of carts: "),
        "{error}"
    );
    let timeline = servicebus.timeline(&carts).await;
    let kinds = [EventKind::SessionAccepted, EventKind::SessionLockExpired];
    for kind in kinds {
        assert_eq!(timeline.count(&kind), 1, "{timeline}");
    }
    let rendered = timeline.of_session("cart-7").to_string();
    assert_contains(
        &rendered,
        "session accepted     cart-7, by the test (lock 60 s)",
    );
}

#[tokio::test]
async fn sessions_are_listed() {
    let (_servicebus, carts) = namespace_with_carts().await;
    carts.send_all([step("1", "b"), step("2", "b")]).await;
    let held = carts.accept_session("a").await;
    held.set_state(vec![0xff; 3]).await;
    let shown: Vec<String> = carts
        .sessions()
        .await
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        shown,
        [
            "\"a\": 0 messages, held by the test, state of 3 bytes",
            "\"b\": 2 messages, free, no state",
        ]
    );
}

#[tokio::test]
async fn sessions_of_a_subscription_can_be_received() {
    let (servicebus, _) = namespace_with_carts().await;
    let mine = servicebus.subscription("events", "mine");
    let events = servicebus.topic("events");
    let messages = [step("1", "a"), step("2", "b"), step("3", "a")];
    events.send_all(messages).await;
    events.send("without a session").await;
    assert_session_order!(mine, session = "a", bodies = ["1", "3"]).await;
    assert_dead_lettered!(mine, reason = "Session ID is null.").await;
    let held = mine.accept_session("a").await;
    held.receive().await.complete().await;
    assert_session_order!(mine, session = "a", bodies = ["3"]).await;
}

#[tokio::test]
async fn session_operations_need_sessions() {
    let (servicebus, _) = namespace_with_carts().await;
    let plain = servicebus.queue("plain");
    let error = error_of(plain.accept_session("a")).await;
    assert_contains(&error, "does not require sessions");
    let error = error_of(plain.sessions()).await;
    assert_contains(&error, "a queue or subscription with RequiresSession");
    let error = plain.expect_session_state("a").within(SHORT).await;
    let error = error.unwrap_err().to_string();
    assert!(error.ends_with("its RequiresSession is false"), "{error}");
    let carts = servicebus.queue("carts");
    let error = error_of(carts.receive_within(SHORT)).await;
    assert_contains(&error, "non-sessionful message receiver");
    let error = error_of(carts.send("hello")).await;
    assert_contains(&error, "The SessionId was not set");
    let error = servicebus.queue("cart").accept_session("a").result().await;
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with("there is no queue \"cart\""), "{error}");
}

#[tokio::test]
async fn a_created_queue_has_sessions() {
    let servicebus = ServiceBus::start().await;
    let queue = Queue::new("late").requires_session(true);
    let late = servicebus.create_queue(queue).await;
    late.send(step("1", "a")).await;
    assert_session_order!(late, session = "a", bodies = ["1"]).await;
}

#[tokio::test]
async fn a_session_in_another_order() {
    let (_servicebus, carts) = namespace_with_carts().await;
    let messages = [step("1", "cart-7"), step("2", "cart-7")];
    carts.send_all(messages).await;
    let expectation = carts.expect_session_order("cart-7").bodies(["2", "1"]);
    assert_fails("a_session_in_another_order", expectation).await;
}

#[tokio::test]
async fn a_session_with_another_state() {
    let (_servicebus, carts) = namespace_with_carts().await;
    let cart = carts.accept_session("cart-7").await;
    cart.set_state("open").await;
    cart.close().await;
    let expectation = carts.expect_session_state("cart-7").text("paid");
    assert_fails("a_session_with_another_state", expectation).await;
}

#[tokio::test]
async fn a_session_without_a_state() {
    let (_servicebus, carts) = namespace_with_carts().await;
    let expectation = carts.expect_session_state("cart-7");
    assert_fails("a_session_without_a_state", expectation).await;
}
