//! The control API says of an assertion what the harness says, byte for byte: both look with the same eyes, the harness over
//! the network and the emulator at itself.

use std::time::Duration;

use fe2o3_amqp::types::{
    messaging::{AmqpSequence, Message as Amqp},
    primitives::Value as Primitive,
};
use serde_json::{Value, json};
use servicebus_harness::assertion::{Expectation, Kind};
use servicebus_harness::prelude::*;
use servicebus_test_support::client::{Client, within};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

use super::failure_texts::SHORT;

/// Asks the emulator for an assertion that fails, as a client in another language does.
async fn served(servicebus: &ServiceBus, mut request: Value) -> String {
    request["within"] = json!(SHORT.as_secs_f64());
    let body = request.to_string();
    let namespace = servicebus.namespace();
    let request = format!(
        "POST /$emulator/v1/namespaces/{namespace}/assertions HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = TcpStream::connect(servicebus.endpoints().http)
        .await
        .unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200 "), "{answer}");
    let body: Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["holds"], false, "{request}");
    body["failure"].as_str().unwrap().to_owned()
}

/// Compares what both say.
async fn same<K: Kind>(servicebus: &ServiceBus, expectation: Expectation<K>, request: Value) {
    let failure = expectation.within(SHORT).await;
    let failure = failure.expect_err("it fails").to_string();
    assert_eq!(served(servicebus, request).await, failure);
}

/// Queues, a topic and sessions, to which everything has happened.
async fn namespace() -> ServiceBus {
    let topology = Topology::new()
        .queue(Queue::new("orders").max_delivery_count(3))
        .queue(Queue::new("source").forward_to("target"))
        .queue(Queue::new("target"))
        .queue(Queue::new("carts").requires_session(true))
        .topic(Topic::new("prices").subscription(Subscription::new("eu")));
    let servicebus = ServiceBus::builder().topology(topology).start().await;
    // So that what is left of a time does not become less between the one text and the other.
    servicebus.clock().freeze().await;
    let orders = servicebus.queue("orders");
    let order = |number: u64, body: Value| Message::json(body).message_id(format!("o-{number}"));
    orders.send(order(1, json!({"total": -1}))).await;
    let rejected = orders.receive().await;
    rejected.dead_letter("Rejected", "total is negative").await;
    orders.send(order(2, json!({"total": 2}))).await;
    orders.receive().await.complete().await;
    orders.send(order(3, json!({"total": 3}))).await;
    orders.receive().await.defer().await;
    orders.send(order(4, json!({"total": 4}))).await;
    orders.receive().await.abandon().await;
    let message = "a body that is a text and has more characters than a line of a failure shows";
    orders.send(message).await;
    orders
        .schedule(order(6, json!([])), Duration::from_secs(600))
        .await;
    servicebus.queue("source").send(order(7, json!({}))).await;
    servicebus.topic("prices").send("12").await;
    let step = |body: &str| Message::from(body).session_id("s-1").message_id(body);
    let carts = servicebus.queue("carts");
    carts.send_all([step("add"), step("pay")]).await;
    let session = carts.accept_session("s-1").await;
    session.set_state("open").await;
    session.close().await;
    servicebus.clock().advance(Duration::from_secs(1)).await;
    servicebus.wait_idle().await;
    servicebus
}

/// A failing assertion, and the request of the control API that must say the same.
macro_rules! same {
    ($it:expr, $assertion:expr, $($request:tt)+) => {
        same($it, $assertion, json!($($request)+)).await
    };
}

#[tokio::test]
async fn queue_assertions_over_http() {
    let servicebus = namespace().await;
    let (orders, it) = (servicebus.queue("orders"), &servicebus);
    let dead = || orders.expect_dead_lettered();
    same!(it, dead().reason("Expired"), {"kind": "dead_lettered", "entity": "orders", "reason": "Expired"});
    let negative = dead()
        .description(contains("positive"))
        .body_json(json!({"total": -1}))
        .count(2);
    same!(it, negative, {
        "kind": "dead_lettered", "entity": "orders", "description": {"contains": "positive"}, "body_json": {"total": -1}, "count": 2
    });
    let rejected = orders.expect_not_dead_lettered().reason("Rejected");
    same!(it, rejected, {"kind": "not_dead_lettered", "entity": "orders", "reason": "Rejected"});
    let deferred = orders.expect_deferred().body_json(json!({"total": 4}));
    same!(it, deferred, {"kind": "deferred", "entity": "orders", "body_json": {"total": 4}});
    let deferred = orders.expect_not_deferred().message_id("o-3");
    same!(it, deferred, {"kind": "not_deferred", "entity": "orders", "message_id": "o-3"});
    let scheduled = orders.expect_scheduled().due_in(Duration::from_secs(60));
    same!(it, scheduled, {"kind": "scheduled", "entity": "orders", "due_in": 60});
    let tolerant = orders
        .expect_not_scheduled()
        .due_in(Duration::from_secs(600));
    let tolerant = tolerant.tolerance(Duration::from_secs(30));
    same!(it, tolerant, {"kind": "not_scheduled", "entity": "orders", "due_in": 600, "tolerance": 30});
    let counts = orders
        .expect_message_count()
        .active(9)
        .dead_letter(0)
        .locked(1);
    let request = json!({"kind": "message_count", "entity": "orders", "active": 9, "dead_letter": 0, "locked": 1});
    same(it, counts, request).await;
    same!(it, orders.expect_empty(), {"kind": "empty", "entity": "orders"});
    let dead = orders.dead_letters().expect_empty();
    same!(it, dead, {"kind": "empty", "entity": "orders/$DeadLetterQueue"});
    let locked = orders.receive().await;
    let busy = orders.expect_not_deferred().message_id("o-3");
    same!(it, busy, {"kind": "not_deferred", "entity": "orders", "message_id": "o-3"});
    locked.release().await;
}

#[tokio::test]
async fn record_assertions_over_http() {
    let servicebus = namespace().await;
    let (orders, it) = (servicebus.queue("orders"), &servicebus);
    same!(it, orders.expect_completed().count(2), {"kind": "completed", "entity": "orders", "count": 2});
    let near = orders.expect_completed().message_id("o-44");
    same!(it, near, {"kind": "completed", "entity": "orders", "message_id": "o-44"});
    let body = orders.expect_completed().body("{\"total\":3}");
    same!(it, body, {"kind": "completed", "entity": "orders", "body": "{\"total\":3}"});
    let json = orders.expect_not_completed().body_json(json!({"total": 2}));
    same!(it, json, {"kind": "not_completed", "entity": "orders", "body_json": {"total": 2}});
    let to = orders.expect_delivered().to("worker").at_least(2);
    same!(it, to, {"kind": "delivered", "entity": "orders", "to": "worker", "at_least": 2});
    let delivered = orders.expect_not_delivered().to("the test");
    same!(it, delivered, {"kind": "not_delivered", "entity": "orders", "to": "the test"});
    same!(it, orders.expect_abandoned().times(2), {"kind": "abandoned", "entity": "orders", "times": 2});
    same!(it, orders.expect_not_abandoned(), {"kind": "not_abandoned", "entity": "orders"});
    same!(it, orders.expect_lock_renewed(), {"kind": "lock_renewed", "entity": "orders"});
    same!(it, orders.expect_expired(), {"kind": "expired", "entity": "orders"});
    let source = servicebus.queue("source");
    let forwarded = source.expect_forwarded().to("audit");
    same!(it, forwarded, {"kind": "forwarded", "entity": "source", "to": "audit"});
    let forwarded = source.expect_not_forwarded();
    same!(it, forwarded, {"kind": "not_forwarded", "entity": "source"});
    let mut locked = orders.receive().await;
    locked.renew_lock().await;
    same!(it, orders.expect_lock_not_renewed(), {"kind": "lock_not_renewed", "entity": "orders"});
    servicebus.clock().advance(Duration::from_secs(61)).await;
    locked.complete().result().await.unwrap_err();
    let late = orders.expect_completed().message_id("o-4");
    same!(it, late, {"kind": "completed", "entity": "orders", "message_id": "o-4"});
    let sends = orders.expect_unsettled_sends().at_least(5);
    same!(it, sends, {"kind": "unsettled_sends", "entity": "orders", "at_least": 5});
    let sends = orders.expect_unsettled_sends().at_most(0);
    same!(it, sends, {"kind": "unsettled_sends", "entity": "orders", "at_most": 0});
    let expired = servicebus.queue("target");
    let message = Message::from("x")
        .message_id("t-1")
        .time_to_live(Duration::from_secs(5));
    expired.send(message).await;
    servicebus.clock().advance(Duration::from_secs(6)).await;
    same!(it, expired.expect_not_expired(), {"kind": "not_expired", "entity": "target"});
}

#[tokio::test]
async fn session_receiver_and_topic_assertions_over_http() {
    let servicebus = namespace().await;
    let (carts, it) = (servicebus.queue("carts"), &servicebus);
    let order = carts.expect_session_order("s-1").bodies(["pay", "add"]);
    same!(it, order, {"kind": "session_order", "entity": "carts", "session": "s-1", "bodies": ["pay", "add"]});
    let state = |state: &str, value: Value| {
        let mut request = json!({"kind": "session_state", "entity": "carts", "session": "s-1"});
        request[state] = value;
        request
    };
    let expect = || carts.expect_session_state("s-1");
    same(it, expect().text("paid"), state("text", json!("paid"))).await;
    same(
        it,
        expect().bytes(vec![0, 255]),
        state("bytes", json!("AP8=")),
    )
    .await;
    same(
        it,
        expect().json(json!({"open": true})),
        state("json", json!({"open": true})),
    )
    .await;
    same(it, expect().set(false), state("set", json!(false))).await;
    let orders = servicebus.queue("orders");
    let none = orders.expect_session_state("s-1");
    same!(it, none, {"kind": "session_state", "entity": "orders", "session": "s-1"});
    let attached = orders.expect_attached().to("worker").count(2);
    same!(it, attached, {"kind": "attached", "entity": "orders", "to": "worker", "count": 2});
    let eu = servicebus.subscription("prices", "eu");
    same!(it, eu.expect_completed(), {"kind": "completed", "entity": "prices/Subscriptions/eu"});
    let prices = servicebus.topic("prices");
    let unsettled = servicebus_harness::assertion::UnsettledSends::of(&prices);
    same!(it, unsettled.at_least(7), {"kind": "unsettled_sends", "entity": "prices", "at_least": 7});
    let counts = servicebus_harness::assertion::MessageCount::of(&prices);
    same!(it, counts.scheduled(1), {"kind": "message_count", "entity": "prices", "scheduled": 1});
    let unknown = servicebus.queue("ordres").expect_empty();
    same!(it, unknown, {"kind": "empty", "entity": "ordres"});
    let unknown = servicebus.subscription("prices", "us").expect_empty();
    same!(it, unknown, {"kind": "empty", "entity": "prices/subscriptions/us"});
    eu.delete().await;
    let deleted = eu.expect_empty();
    same!(it, deleted, {"kind": "empty", "entity": "prices/Subscriptions/eu"});
}

#[tokio::test]
async fn body_conditions_over_http() {
    let servicebus = namespace().await;
    let text = Primitive::String("a text".to_owned());
    let list = Primitive::List(vec![Primitive::Int(1), text.clone()]);
    let sequence: AmqpSequence<Primitive> = AmqpSequence(vec![list.clone(), text.clone()]);
    let (address, string) = (servicebus.endpoints().amqp, servicebus.connection_string());
    let client = Client::connect(address, string, "raw").await;
    let mut client = client.unwrap();
    let mut sender = client.sender("target").await;
    for value in [text, list, Primitive::Null, Primitive::Bool(true)] {
        let sent = sender.send(Amqp::builder().value(value).build());
        within("it is sent", sent).await.unwrap();
    }
    let sent = sender.send(Amqp::builder().sequence_batch([sequence]).build());
    within("it is sent", sent).await.unwrap();
    let target = servicebus.queue("target");
    let expectation = target.expect_empty();
    let request = json!({"kind": "empty", "entity": "target"});
    same(&servicebus, expectation, request).await;
    client.close().await;
}
