//! `POST {entity}/messages`.
//!
//! `POST {entity}/messages` with `application/vnd.microsoft.servicebus.json`.

use serde_json::json;

use crate::support::*;

#[test]
fn a_send_is_answered_with_201_and_stored() {
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
    let delivery = peer.receive_from("q");
    assert_eq!(delivery.message.data(), b"hello");
    assert_eq!(delivery.id().len(), 32, "one without id is given one");
}

#[test]
fn an_empty_message_can_be_sent() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    assert_eq!(rest.send("q", &[], "").status, 201);
    let taken = rest.take("q");
    assert_eq!((taken.status, taken.text()), (200, ""));
}

#[test]
fn a_body_may_be_chunked_and_have_any_bytes() {
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
fn a_malformed_chunk_is_refused_with_what_is_wrong() {
    let bus = Bus::with_queues(&["q"]);
    let token = root_token("http://localhost/q");
    let request = format!(
        "POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nTransfer-Encoding: chunked\r\n\r\n!\r\n"
    );
    let answer = bus.rest_with(None).begin_raw(request.as_bytes()).answer();
    assert_contains(answer.refusal(400), "nvalid chunk size");
}

#[test]
fn a_request_after_a_chunked_one_keeps_the_case_of_its_headers() {
    let bus = Bus::with_queues(&["q"]);
    let token = root_token("http://localhost/q");
    // A body that looks like a head, with bad ends of its lines.
    let body = "POST /q/messages HTTP/1.1\nORDERID: 1\n\n";
    let length = body.len();
    let requests = format!(
        "POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nTransfer-Encoding: chunked\r\n\r\n\
         {length:x}\r\n{body}\r\n0\r\n\r\n\
         POST /q/messages HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nOrderId: 2\r\nContent-Length: 1\r\n\
         Connection: close\r\n\r\nx"
    );
    let sent = bus
        .rest_with(None)
        .begin_raw(requests.as_bytes())
        .until_closed();
    assert_eq!(sent.matches("HTTP/1.1 201 Created").count(), 2, "{sent}");
    let rest = bus.rest();
    assert_eq!(rest.take("q").text(), body);
    assert_contains(&rest.take("q").head, "\r\nOrderId: 2\r\n");
}

#[test]
fn a_message_sent_to_a_topic_reaches_its_subscriptions() {
    let config = r#"{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns","Topics":[{"Name":"t","Subscriptions":[
        {"Name":"red","Rules":[{"Name":"r","Properties":{"FilterType":"Correlation",
            "CorrelationFilter":{"Label":"news","Properties":{"Colour":"red"}}}}]},
        {"Name":"all"}]}]}]}}"#;
    let (_bus, rest) = Bus::configured(config).with_rest();
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
fn scheduled_times_and_durations_are_in_client_time() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
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
fn a_sent_message_wakes_receivers_over_amqp() {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let receiver = peer.receiver_with_credit("q", 1);
    bus.rest().send("q", &[], "hello");
    assert_eq!(peer.receive(&receiver).message.data(), b"hello");
}

#[test]
fn messages_sent_over_http_have_http_as_client_in_the_timeline() {
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

#[test]
fn a_batch_is_stored_as_its_messages() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let batch = json!([
        {"Body": "first", "BrokerProperties": {"Label": "M1", "TimeToLiveTimeSpan": "0.00:00:40"}},
        {"Body": "second", "BrokerProperties": {"Label": "M2"}, "UserProperties": {"Priority": "Low"}},
        {"Body": "third", "UserProperties": {"Priority": "Medium", "Weight": 2, "Rate": 0.5, "Late": true}},
    ]);
    assert_eq!(rest.send_batch("q", &batch).status, 201);
    let [first, second, third] = [0, 1, 2].map(|_| rest.take("q"));
    assert_eq!(first.text(), "first");
    assert_eq!(first.property("Label"), "M1");
    assert_eq!(first.property("TimeToLive"), 40);
    assert_eq!(second.text(), "second");
    assert_eq!(second.property("Label"), "M2");
    assert_eq!(second.header("Priority"), Some(r#""Low""#));
    let headers = ["Priority", "Weight", "Rate", "Late"].map(|name| third.header(name));
    assert_eq!(
        headers,
        [Some(r#""Medium""#), Some("2"), Some("0.5"), Some("true")]
    );
    assert_eq!(rest.take("q").status, 204);
}

#[test]
fn headers_of_a_batch_request_do_not_apply_to_its_messages() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let headers = [
        ("Content-Type", "application/vnd.microsoft.servicebus.json"),
        ("Priority", "1"),
        ("BrokerProperties", r#"{"Label":"no"}"#),
    ];
    assert_eq!(rest.send("q", &headers, r#"[{"Body":"m"}]"#).status, 201);
    let taken = rest.take("q");
    assert_eq!(taken.header("Priority"), None);
    assert!(taken.property("Label").is_null());
    assert_eq!(
        taken.header("Content-Type"),
        Some("application/xml; charset=utf-8")
    );
}

#[test]
fn a_refused_batch_stores_no_message() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let long = "x".repeat(129);
    for (batch, expected) in [
        (json!([]), "at least one message"),
        (json!({"Body": "x"}), "a JSON array"),
        (
            json!([{"Body": "x"}, {"Body": 1}]),
            "The message 1 of the batch is refused",
        ),
        (
            json!([{"Body": "x"}, {"BrokerProperties": {"MessageId": long}}]),
            "at most 128",
        ),
    ] {
        let refused = rest.send_batch("q", &batch);
        let words = refused.refusal(400);
        assert!(words.contains(expected), "{batch}: {words}");
    }
    let content_type = ("Content-Type", "application/vnd.microsoft.servicebus.json");
    let refused = rest.send("q", &[content_type], "[{\"Body\":");
    assert_starts_with(refused.refusal(400), "The batch is not JSON");
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_batch_content_type_with_a_parameter_is_one_message() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let content_type = "application/vnd.microsoft.servicebus.json; charset=utf-8";
    rest.send("q", &[("Content-Type", content_type)], "[{},{}]");
    let taken = rest.take("q");
    assert_eq!(taken.text(), "[{},{}]");
    assert_eq!(taken.header("Content-Type"), Some(content_type));
}

#[test]
fn a_batch_over_the_limit_of_the_tier_is_refused() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let half = json!({"Body": "x".repeat(120 * 1024)});
    assert_eq!(rest.send_batch("q", &json!([half, half])).status, 201);
    let refused = rest.send_batch("q", &json!([half, half, half]));
    assert_contains(refused.refusal(403), "exceeds the limit (262144 bytes)");
    assert_eq!(bus.http.held("q"), (2, 0));
    // Not even JSON behind the limit: reading stops there.
    let content_type = ("Content-Type", "application/vnd.microsoft.servicebus.json");
    let small = format!("[{}", "{},".repeat(500_000));
    let refused = rest.send("q", &[content_type], &small);
    assert_contains(refused.refusal(403), "exceeds the limit (262144 bytes)");
    assert_eq!(bus.http.held("q"), (2, 0));
    let endless = json!([{"Body": "x".repeat(2 * 1024 * 1024)}]);
    let refused = rest.send_batch("q", &endless);
    assert_contains(refused.refusal(413), "at most 1572864 are read");
}

#[test]
fn an_entity_for_large_messages_accepts_them_over_amqp_only() {
    let large = ("q", r#""MaxMessageSizeInKilobytes":4096"#);
    let config = queues(r#""Tier":"premium""#, &[large]);
    let (bus, rest) = Bus::configured(&config).with_rest();
    let refused = rest.send("q", &[], &"x".repeat(1024 * 1024));
    assert_contains(refused.refusal(403), "exceeds the limit (1048576 bytes)");
    assert_eq!(rest.send("q", &[], &"x".repeat(1000 * 1024)).status, 201);
    assert_eq!(bus.http.held("q"), (1, 0));
}
