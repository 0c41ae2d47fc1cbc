//! `POST {entity}/messages`.

use serde_json::json;

use crate::support::*;

#[test]
fn a_message_that_is_sent_is_there_and_answered_with_201() {
    let bus = Bus::with_queues(&["q"]);
    let sent = bus.rest().send("q", &[], "hello");
    assert_eq!(sent.status, 201);
    assert_eq!(sent.text(), "");
    assert_eq!(
        sent.header("Content-Type"),
        Some("application/xml; charset=utf-8")
    );
    assert_eq!(bus.http.held("q"), (1, 0));
    let mut peer = bus.client();
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    assert_eq!(delivery.message.data(), b"hello");
    assert_eq!(delivery.id().len(), 32, "one without id is given one");
}

#[test]
fn nothing_at_all_is_a_message_too() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest();
    assert_eq!(rest.send("q", &[], "").status, 201);
    let taken = rest.take("q");
    assert_eq!((taken.status, taken.text()), (200, ""));
}

#[test]
fn a_body_may_come_in_chunks_and_be_of_any_bytes() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest_with(None);
    let token = root_token("http://localhost/q");
    let head = format!(
        "POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nConnection: close\r\n\
         Transfer-Encoding: chunked\r\n\r\n3\r\n"
    );
    let request = [head.as_bytes(), b"\x00\xff\x01\r\n2\r\nab\r\n0\r\n\r\n"].concat();
    assert_eq!(rest.begin_raw(&request).answer().status, 201);
    assert_eq!(bus.rest().take("q").body, b"\x00\xff\x01ab");
}

#[test]
fn a_message_to_a_topic_is_with_its_subscriptions() {
    let config = r#"{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Topics":[{"Name":"t","Subscriptions":[
        {"Name":"red","Rules":[{"Name":"r","Properties":{"FilterType":"Correlation",
            "CorrelationFilter":{"Label":"news","Properties":{"Colour":"red"}}}}]},
        {"Name":"all"}]}]}]}}"#;
    let bus = Bus::configured(config);
    let rest = bus.rest();
    let label = ("BrokerProperties", r#"{"Label":"news"}"#);
    for colour in ["red", "blue"] {
        let quoted = format!("\"{colour}\"");
        let sent = rest.send("t", &[label, ("Colour", &quoted)], colour);
        assert_eq!(sent.status, 201);
    }
    let red = rest.take("t/subscriptions/red");
    assert_eq!((red.status, red.text()), (200, "red"));
    assert_eq!(red.property("EnqueuedSequenceNumber"), 1);
    assert_eq!(rest.take("t/subscriptions/red").status, 204);
    let taken = [0, 1].map(|_| rest.take("T/SUBSCRIPTIONS/all").text().to_owned());
    assert_eq!(taken, ["red", "blue"]);
}

#[test]
fn a_scheduled_message_waits_for_its_time() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest();
    let at = http_date(now() + 3600);
    let properties = json!({"ScheduledEnqueueTimeUtc": at}).to_string();
    assert_eq!(
        rest.send("q", &[("BrokerProperties", &properties)], "later")
            .status,
        201
    );
    assert_eq!(bus.http.counts("q")["scheduled"], 1);
    assert_eq!(rest.take("q").status, 204);
    bus.http.advance(3601.0);
    let taken = rest.take("q");
    assert_eq!((taken.status, taken.text()), (200, "later"));
}

#[test]
fn the_clock_of_the_namespace_is_nobodys_business() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest();
    bus.http.advance(86_400.0);
    let at = http_date(now() + 600);
    let properties = json!({"ScheduledEnqueueTimeUtc": at}).to_string();
    rest.send("q", &[("BrokerProperties", &properties)], "in ten minutes");
    bus.http.advance(500.0);
    assert_eq!(rest.take("q").status, 204, "true durations stay true");
    bus.http.advance(101.0);
    assert_eq!(rest.take("q").status, 200);
}

#[test]
fn duplicates_are_accepted_and_dropped() {
    let bus = Bus::configured(&queues(
        "",
        &[("q", r#""RequiresDuplicateDetection":true"#)],
    ));
    let rest = bus.rest();
    let id = ("BrokerProperties", r#"{"MessageId":"m-1"}"#);
    assert_eq!(rest.send("q", &[id], "first").status, 201);
    assert_eq!(rest.send("q", &[id], "second").status, 201);
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn what_is_sent_wakes_those_who_wait_over_amqp() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.client();
    let receiver = peer.receiver("q");
    peer.credit(&receiver, 1);
    bus.rest().send("q", &[], "hello");
    assert_eq!(peer.receive(&receiver).message.data(), b"hello");
}

#[test]
fn sent_messages_stand_in_the_timeline_as_those_of_http() {
    let bus = Bus::with_queues(&["q"]);
    bus.rest().send(
        "q",
        &[("BrokerProperties", r#"{"MessageId":"m-1"}"#)],
        "hello",
    );
    let events = bus.http.events("?entity=q&message_id=m-1");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["client"], "HTTP");
}
