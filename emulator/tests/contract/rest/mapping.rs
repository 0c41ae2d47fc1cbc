//! Messages sent over HTTP as received over AMQP, and the reverse.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use serde_amqp::primitives::{OrderedMap, Symbol};
use serde_json::json;

use crate::support::*;

const MESSAGE_ID: usize = 0;
const TO: usize = 2;
const SUBJECT: usize = 3;
const REPLY_TO: usize = 4;
const CORRELATION_ID: usize = 5;
const CONTENT_TYPE: usize = 6;
const ABSOLUTE_EXPIRY_TIME: usize = 8;
const GROUP_ID: usize = 10;
const REPLY_TO_GROUP_ID: usize = 12;

/// A message that was sent with these headers, as AMQP receives it.
fn over_amqp(headers: &[(&str, &str)]) -> Received {
    let bus = Bus::with_queues(&["q"]);
    assert_eq!(bus.rest().send("q", headers, "body").status, 201);
    let (mut peer, receiver) = bus.receiver("q");
    peer.receive_one(&receiver).message
}

/// A message that was sent over AMQP, as HTTP receives it.
fn over_http(message: &Message) -> Response {
    let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    peer.send_to("q", message);
    let locked = bus.rest().peek_lock("q");
    assert_eq!(locked.status, 201, "{locked:?}");
    locked
}

#[test]
fn broker_properties_become_the_properties_of_amqp() {
    let properties = json!({
        "MessageId": "m", "SessionId": "s", "CorrelationId": "c", "Label": "l", "ReplyTo": "r", "To": "t",
        "ReplyToSessionId": "rs", "PartitionKey": "s", "ViaPartitionKey": "v", "TimeToLive": 90.5,
        "ForcePersistence": false, "DeliveryCount": 9, "SequenceNumber": 9, "LockToken": "x", "Made": "up",
    });
    let message = over_amqp(&[
        ("BrokerProperties", &properties.to_string()),
        ("Content-Type", "text/plain;charset=utf-8"),
    ]);
    for (index, value) in [
        (MESSAGE_ID, text("m")),
        (TO, text("t")),
        (SUBJECT, text("l")),
        (REPLY_TO, text("r")),
        (CORRELATION_ID, text("c")),
        (CONTENT_TYPE, symbol("text/plain;charset=utf-8")),
        (GROUP_ID, text("s")),
        (REPLY_TO_GROUP_ID, text("rs")),
    ] {
        assert_eq!(message.property(index), value, "{index}");
    }
    assert_eq!(message.header(0), Value::Bool(false));
    assert_eq!(message.header(2), uint(90_500));
    assert_eq!(message.header(4), uint(0));
    assert_eq!(message.annotation("x-opt-partition-key"), text("s"));
    assert_eq!(message.annotation("x-opt-via-partition-key"), text("v"));
    assert_eq!(message.annotation("x-opt-sequence-number"), long(1));
    assert_eq!(message.data(), b"body");
}

#[test]
fn headers_become_application_properties_in_their_case_and_with_their_types() {
    let message = over_amqp(&[
        ("hello", r#""world""#),
        ("Priority", "High"),
        ("myNumber", "42"),
        ("LARGE", "8555111000"),
        ("floating", "2.75"),
        ("active", "true"),
        ("dob", r#""Wed, 14 Dec 2011 00:00:00 GMT""#),
        ("Quoted", r#""This \"should\" work é""#),
        ("Twice", "1"),
        ("twice", "2"),
        ("User-Agent", "test"),
        ("x-ms-retrypolicy", "NoRetry"),
        ("traceparent", "00-0-0-00"),
        ("If-Match", "*"),
    ]);
    for (name, value) in [
        ("hello", text("world")),
        ("Priority", text("High")),
        ("myNumber", long(42)),
        ("LARGE", long(8_555_111_000)),
        ("floating", Value::from(2.75)),
        ("active", Value::Bool(true)),
        ("dob", timestamp(1_323_820_800_000)),
        ("Quoted", text("This \"should\" work é")),
    ] {
        assert_eq!(message.application(name), value, "{name}");
    }
    assert!(
        ["1,2"].map(text).contains(&message.application("twice")),
        "{message:?}"
    );
    for name in "user-agent User-Agent Host host Connection Content-Length Authorization \
        x-ms-retrypolicy traceparent If-Match priority BrokerProperties"
        .split(' ')
    {
        assert_eq!(message.application(name), Value::Null, "{name}");
    }
}

#[test]
fn application_properties_have_the_case_of_their_request() {
    let bus = Bus::with_queues(&["q"]);
    let token = root_token("http://localhost");
    let request = |name: &str, last: &str| {
        format!(
            "POST /q/messages HTTP/1.1\r\nHost: x\r\n{last}Authorization: {token}\r\n{name}: 1\r\n\
             Content-Length: 20\r\n\r\n\r\nABC: body, no head\r\n"
        )
    };
    let health = "GET /health HTTP/1.1\r\nHost: x\r\n\r\n";
    let all = [
        request("abc", ""),
        health.to_owned(),
        request("Abc", ""),
        request("aBC", "Connection: close\r\n"),
    ];
    // Not closed before all are handled: a reset discards what the emulator has not read yet.
    let _connection = bus.rest().begin_raw(all.concat().as_bytes());
    let (mut peer, receiver) = bus.receiver("q");
    for name in ["abc", "Abc", "aBC"] {
        let message = peer.receive_one(&receiver).message;
        assert_eq!(message.application(name), long(1), "{message:?}");
    }
}

#[test]
fn a_time_to_live_beyond_32_bits_is_kept() {
    let message = over_amqp(&[("BrokerProperties", r#"{"TimeToLive":8640000}"#)]);
    let Value::Timestamp(expiry) = message.property(ABSOLUTE_EXPIRY_TIME) else {
        panic!("no expiry: {message:?}");
    };
    let expected = (now() + 8_640_000) * 1000;
    assert!((expiry.milliseconds() - expected).abs() < 60_000);

    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    rest.send(
        "q",
        &[("BrokerProperties", r#"{"TimeToLive":8640000}"#)],
        "",
    );
    assert_eq!(rest.take("q").property("TimeToLive"), 8_640_000);
}

#[test]
fn the_properties_of_amqp_become_broker_properties() {
    let locked = over_http(
        &Message::new("m")
            .property(TO, text("t"))
            .property(SUBJECT, text("l é"))
            .property(REPLY_TO, text("r"))
            .property(CORRELATION_ID, ulong(7))
            .property(CONTENT_TYPE, symbol("application/json"))
            .property(GROUP_ID, text("s"))
            .property(REPLY_TO_GROUP_ID, text("rs"))
            .annotation("x-opt-partition-key", text("s"))
            .annotation("x-opt-via-partition-key", text("v"))
            .ttl(1500),
    );
    let properties = locked.properties();
    for (name, value) in [
        ("MessageId", json!("m")),
        ("To", json!("t")),
        ("Label", json!("l é")),
        ("ReplyTo", json!("r")),
        ("CorrelationId", json!("7")),
        ("SessionId", json!("s")),
        ("ReplyToSessionId", json!("rs")),
        ("PartitionKey", json!("s")),
        ("ViaPartitionKey", json!("v")),
        ("TimeToLive", json!(1.5)),
        ("ForcePersistence", json!(null)),
        ("ContentType", json!(null)),
    ] {
        assert_eq!(properties[name], value, "{name}");
    }
    assert_eq!(locked.header("Content-Type"), Some("application/json"));
    assert_eq!(locked.text(), "body");
}

#[test]
fn application_properties_become_headers() {
    let described = |name: &str, value: Value| {
        Value::Described(Box::new(Described {
            descriptor: Descriptor::Name(Symbol::from(name)),
            value,
        }))
    };
    let message = Message::new("m")
        .application("text", text("wor\"ld é"))
        .application("int", Value::Int(-2))
        .application("ubyte", Value::Ubyte(2))
        .application("double", Value::from(3.0))
        .application("flag", Value::Bool(false))
        .application("at", timestamp(1_323_820_800_999))
        .application("guid", uuid(uuid::Uuid::from_u128(1)))
        .application(
            "span",
            described("com.microsoft:timespan", long(15_000_000)),
        )
        .application("uri", described("com.microsoft:uri", text("http://x")))
        .application(
            "offset",
            described("com.microsoft:datetime-offset", long(1)),
        )
        .application("bytes", binary(b"x"))
        .application("nothing", Value::Null)
        .application("not a name", text("x"))
        .application("Content-Length", text("7"))
        .application("line", text("a\r\nb: c"));
    let locked = over_http(&message);
    for (name, value) in [
        ("text", Some(r#""wor\"ld \u00e9""#)),
        ("int", Some("-2")),
        ("ubyte", Some("2")),
        ("double", Some("3.0")),
        ("flag", Some("false")),
        ("at", Some(r#""Wed, 14 Dec 2011 00:00:00 GMT""#)),
        ("guid", Some(r#""00000000-0000-0000-0000-000000000001""#)),
        ("span", Some("1.5")),
        ("line", Some(r#""a\r\nb: c""#)),
        ("uri", None),
        ("offset", None),
        ("bytes", None),
        ("nothing", None),
        ("not a name", None),
        ("Content-Length", None),
    ] {
        assert_eq!(locked.header(name), value, "{name}");
    }
}

#[test]
fn headers_are_written_in_the_case_of_their_properties() {
    let message = Message::new("m")
        .application("Priority", text("High"))
        .application("myProp", text("x"))
        .application("lower", text("location: brokerproperties: "));
    let locked = over_http(&message);
    for name in "Priority myProp lower BrokerProperties Location Content-Type".split(' ') {
        assert_eq!(locked.spelling(name), name);
    }
    assert_eq!(
        locked.header("lower"),
        Some(r#""location: brokerproperties: ""#)
    );
}

#[test]
fn many_application_properties_pass_as_headers() {
    let names = Vec::from_iter((0..900).map(|index| format!("p-{index}")));
    let headers = Vec::from_iter(names.iter().map(|name| (name.as_str(), "7")));
    let message = over_amqp(&headers);
    for name in &names {
        assert_eq!(message.application(name), long(7), "{name}");
    }
}

#[test]
fn value_and_sequence_bodies_are_rendered_as_text() {
    let body = |value: Value| {
        let (bus, mut peer) = Bus::with_queues(&["q"]).with_client();
        peer.send_to("q", &Message::request(text("m"), Value::Null, value));
        bus.rest().take("q").text().to_owned()
    };
    assert_eq!(body(text("plain é")), "plain é");
    assert_eq!(body(binary(b"bytes")), "bytes");
    assert_eq!(body(Value::Null), "");
    assert_eq!(body(Value::Int(7)), "7");
    assert_eq!(body(Value::Bool(true)), "true");
    let entries = [
        (text("a"), list(vec![long(1), Value::Null])),
        (text("b"), binary(b"hi")),
    ];
    let map: OrderedMap<Value, Value> = entries.into_iter().collect();
    let written: serde_json::Value = serde_json::from_str(&body(Value::Map(map))).expect("JSON");
    assert_eq!(written, json!({"a": [1, null], "b": "aGk="}));
}

/// Properties whose last field, and a value whose whole, has a descriptor that is described itself.
const DESCRIBED_DESCRIPTOR: [u8; 36] = [
    0x00, 0x53, 0x73, 0xc0, 0x15, 0x0c, 0xa1, 0x01, b'm', 0x40, 0x40, 0x40, 0x40, 0x40, 0x40, 0x40,
    0x40, 0x40, 0x40, 0x00, 0x00, 0x53, 0x01, 0x53, 0x02, 0x40, 0x00, 0x53, 0x77, 0x00, 0x00, 0x53,
    0x01, 0x53, 0x02, 0x41,
];

#[test]
fn a_described_descriptor_passes_publishing_scheduling_and_rest() {
    let (bus, mut peer, sender) =
        Bus::configured(&topic(&json!({}), &[("s", json!({}))])).with_sender("t");
    assert_eq!(peer.post(&sender, 0, &DESCRIBED_DESCRIPTOR), Ok(()));
    let at = encoded_schedule(client_now() + 60_000);
    let scheduled = [&at, &DESCRIBED_DESCRIPTOR[..]].concat();
    assert_eq!(peer.post(&sender, 0, &scheduled), Ok(()));
    peer.send(&sender, &Message::new("after"));
    let rest = bus.rest();
    assert_eq!(rest.take("t/subscriptions/s").text(), "true");
    assert_eq!(rest.take("t/subscriptions/s").status, 200, "after");
    bus.http.advance(61.0);
    assert_eq!(rest.take("t/subscriptions/s").text(), "true");
}

/// Message annotations with a time to become active.
fn encoded_schedule(at: i64) -> Vec<u8> {
    let mut annotations = Vec::new();
    let mut out = servicebus_codec::Writer::new(&mut annotations);
    out.descriptor(0x72);
    let map = out.begin_map();
    out.symbol("x-opt-scheduled-enqueue-time");
    out.timestamp(at);
    out.end(map, 2);
    annotations
}

#[test]
fn a_message_sent_over_http_is_received_unchanged() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let headers = [
        (
            "Content-Type",
            "application/atom+xml;type=entry;charset=utf-8",
        ),
        ("active", "true"),
        ("deceased", "false"),
        ("dob", r#""Wed, 14 Dec 2011 00:00:00 GMT""#),
        ("floating", "2.75"),
        ("hello", r#""world""#),
        ("large", "8555111000"),
        ("number", "42"),
        ("quote_message", r#""This \"should\" work fine""#),
    ];
    rest.send("q", &headers, "message with properties");
    let taken = rest.take("q");
    assert_eq!(taken.text(), "message with properties");
    for (name, value) in headers {
        assert_eq!(taken.header(name), Some(value));
    }
}
