//! The result of each rule of a subscription for a message, and why.
//!
//! Also what a timeline has beside events: the messages themselves, if they are kept, and sends that wait.

use serde_json::{Value, json};
use servicebus_emulator::Options;

use crate::support::*;

/// The topic `t` whose subscription `s` has a rule of every kind.
fn ruled() -> Bus {
    let typed = json!({"Name": "correlation", "Properties": {
        "FilterType": "Correlation",
        "CorrelationFilter": {"Label": "Order", "Properties": {"colour": "red"}},
    }});
    let rules = rules(&[
        typed,
        sql("sql", "colour = 'red' AND n > 1", ""),
        sql("divide", "10 / n = 5", ""),
        sql(
            "system",
            "sys.Label = 'Order' AND sys.TimeToLive IS NOT NULL",
            "",
        ),
        sql("action", "1=1", "SET a = 10 / n"),
    ]);
    Bus::configured(&topic(&json!({}), &[("s", rules)]))
}

/// Posts bytes that are not text.
fn post(bus: &Bus, subscription: &str, body: &[u8]) -> Answer {
    let path = format!("~/explain?subscription={subscription}");
    bus.http.send("POST", &path, &[], body)
}

fn explain(bus: &Bus, message: &Message) -> Value {
    post(bus, "t/Subscriptions/s", &message.encode()).ok()
}

/// Posts JSON as REST clients write a batch.
fn post_json(bus: &Bus, batch: &str) -> Answer {
    let path = "~/explain?subscription=t/Subscriptions/s";
    bus.http.request("POST", path, Some(batch))
}

/// What one rule says.
fn of(explained: &Value, rule: &str) -> Value {
    let rules = explained["rules"].as_array().expect("rules are an array");
    let found = rules.iter().find(|entry| entry["rule"] == rule);
    found
        .unwrap_or_else(|| panic!("no {rule}: {explained}"))
        .clone()
}

#[test]
fn a_matching_rule_is_explained_without_a_reason() {
    let message = Message::new("m")
        .ttl(1000)
        .property(3, text("Order"))
        .application("Colour", text("red"))
        .application("n", serde_amqp::Value::Int(2));
    let explained = explain(&ruled(), &message);
    for rule in ["correlation", "sql", "divide", "system", "action"] {
        let expected = json!({"rule": rule, "matched": true, "reason": null, "error": null});
        assert_eq!(of(&explained, rule), expected);
    }
    let names = explained["rules"].as_array().into_iter().flatten();
    let names: Vec<_> = names.map(|entry| entry["rule"].clone()).collect();
    assert_eq!(names, ["action", "correlation", "divide", "sql", "system"]);
}

#[test]
fn a_mismatching_rule_is_explained_with_its_part_and_values() {
    let bus = ruled();
    let message = Message::new("m")
        .property(3, text("Order"))
        .application("colour", text("blue"))
        .application("n", serde_amqp::Value::Int(0));
    let explained = explain(&bus, &message);
    let entry = of(&explained, "sql");
    assert_eq!(members(&entry, ["matched", "error"]), json!([false, null]));
    assert_eq!(entry["reason"]["truth"], "false");
    assert_eq!(entry["reason"]["expression"], "colour = 'red'");
    let values = entry["reason"]["values"].clone();
    assert_eq!(values[0]["name"], "colour");
    let value = values[0]["value"].as_str().unwrap_or_default();
    assert_contains(value, "blue");
    let entry = of(&explained, "correlation");
    assert_eq!(entry["matched"], false);
    let expression = entry["reason"]["expression"].as_str().unwrap_or_default();
    assert_contains(expression, "colour");
    for rule in ["divide", "action"] {
        let entry = of(&explained, rule);
        assert_eq!(members(&entry, ["matched", "reason"]), json!([false, null]));
        let error = entry["error"].as_str().unwrap_or_default();
        assert_contains(error, "divided by zero");
    }
    // What is missing is unknown, not false.
    let entry = of(&explain(&bus, &Message::new("m")), "sql");
    assert_eq!(entry["reason"]["truth"], "unknown");
}

#[test]
fn a_message_in_json_is_explained_as_one_in_amqp() {
    let bus = ruled();
    let message = Message::new("m")
        .property(3, text("Order"))
        .application("colour", text("red"))
        .application("n", serde_amqp::Value::Long(1));
    let json = r#"[{"BrokerProperties": {"MessageId": "m", "Label": "Order"}, "UserProperties": {"colour": "red", "n": 1}}]"#;
    assert_eq!(post_json(&bus, json).ok(), explain(&bus, &message));
    for (refused, why) in [
        ("[{},{}]", "one message is explained at a time"),
        ("[]", "at least one message"),
        (r#"[{"BrokerProperties": {"TimeToLive": 0}}]"#, "TimeToLive"),
        (
            r#"[{"BrokerProperties": {"label": "Order"}}]"#,
            "a sender has no broker property \"label\"; it has ContentType, ",
        ),
    ] {
        let answer = post_json(&bus, refused);
        let (code, message) = answer.error(400);
        assert_eq!(code, "invalid-body", "{refused}");
        assert!(message.contains(why), "{refused}: {message}");
    }
}

#[test]
fn explaining_a_message_does_not_send_it() {
    let bus = ruled();
    explain(&bus, &Message::new("m").application("colour", text("red")));
    assert_eq!(bus.http.held("t/Subscriptions/s"), (0, 0));
    assert!(bus.http.events("?entity=t").is_empty());
}

#[test]
fn rules_are_explained_for_any_spelling_of_a_subscription() {
    let bus = ruled();
    let body = Message::new("m").encode();
    for address in [
        "t/Subscriptions/s",
        "T/subscriptions/S",
        "/t/Subscriptions/s",
    ] {
        assert_eq!(post(&bus, address, &body).status, 200, "{address}");
    }
    for address in [
        "t/Subscriptions/none",
        "none/Subscriptions/s",
        "q/Subscriptions/s",
        "t/Subscriptions/s/$DeadLetterQueue",
        "t",
        "q",
        "",
    ] {
        let answer = post(&bus, address, &body);
        let (code, message) = answer.error(404);
        assert_eq!(code, "not-found", "{address}");
        assert_ends_with(message, "there are: t/Subscriptions/s");
    }
    let path = "~/explain";
    assert_eq!(
        bus.http.post(path, &json!({})).error(400).0,
        "invalid-query"
    );
}

#[test]
fn explaining_an_invalid_message_is_refused() {
    let bus = ruled();
    for body in [&b"{}"[..], b"\x00\x53\x75\xa0\xff"] {
        let answer = post(&bus, "t/Subscriptions/s", body);
        assert_eq!(answer.error(400).0, "invalid-body", "{body:?}");
    }
}

fn keeping(config: &str) -> Bus {
    Bus::started(Options {
        config: parse(config),
        record_messages: true,
        ..Options::default()
    })
}

/// The message of each event.
fn referred(timeline: &Value) -> Vec<(&str, Option<u64>)> {
    let events = timeline["events"].as_array().into_iter().flatten();
    let pairs = events.map(|event| {
        let kind = event["kind"].as_str().unwrap_or_default();
        (kind, event["message"].as_u64())
    });
    pairs.collect()
}

#[test]
fn recorded_messages_are_returned_once_and_only_on_request() {
    let (bus, mut peer, sender) = keeping(&queues("", &[("q", "")])).with_sender("q");
    peer.send(&sender, &Message::new("first"));
    peer.send(&sender, &Message::new("second"));
    let delivery = peer.receive_from("q");
    peer.complete(&delivery);

    let timeline = bus.http.timeline("?entity=q&messages=true");
    let expected = [
        ("sent", Some(0)),
        ("sent", Some(1)),
        ("delivered", Some(0)),
        ("completed", Some(0)),
    ];
    assert_eq!(referred(&timeline), expected);
    assert_eq!(timeline["messages"].as_array().map(Vec::len), Some(2));
    let plain = bus.http.timeline("?entity=q");
    assert_eq!(plain["messages"], Value::Null);
    assert!(
        referred(&plain)
            .iter()
            .all(|(_, message)| message.is_none())
    );
}

#[test]
fn all_events_of_a_message_refer_to_one_recorded_message() {
    let (bus, mut peer) = keeping(&queues("", &[("q", r#""MaxDeliveryCount":1"#)])).with_client();
    peer.send_to("q", &Message::new("poison"));
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    peer.settle(&delivery, abandoned());
    let delivery = peer.receive_from("q/$DeadLetterQueue");
    peer.complete(&delivery);

    let timeline = bus.http.timeline("?entity=q&messages=true");
    let messages = referred(&timeline);
    assert_eq!(messages.len(), 6, "{messages:?}");
    assert!(messages.iter().all(|(_, message)| *message == Some(0)));
}

#[test]
fn a_reset_clears_recorded_messages_and_recording_is_optional() {
    let (bus, mut peer) = keeping(&queues("", &[("q", "")])).with_client();
    peer.send_to("q", &Message::new("m"));
    let reset = "~/reset";
    bus.http.post(reset, &json!({})).ok();
    let timeline = bus.http.timeline("?entity=q&messages=true");
    assert_eq!(timeline["messages"], json!([]));
    assert_eq!(timeline["sends_unsettled"], json!({"now": 0, "most": 0}));

    let bus = Bus::with_queues(&["q"]);
    let timeline = bus.http.timeline("?entity=q&messages=true");
    assert_eq!(timeline["messages"], Value::Null);
}

#[test]
fn unsettled_sends_count_from_arrival_to_written_outcome() {
    let bus = Bus::with_queues(&["q", "other"]);
    // An outcome may be read before the connection that has written it records that.
    let wait_for = |queue: &str, most: u32| {
        let path = format!("?entity={queue}");
        eventually("no send waits", || {
            let sends = &bus.http.timeline(&path)["sends_unsettled"];
            assert_eq!(sends["most"], most);
            (sends["now"] == 0).then_some(())
        });
    };
    let (mut peer, sender) = bus.sender("q");
    for _ in 0..3 {
        peer.send(&sender, &Message::new("m"));
    }
    wait_for("q", 1);

    // In one segment, and so in one turn of the emulator; settled sends wait for nothing.
    let payload = Message::new("m").encode();
    let before = peer.transfer(&sender, 0, false, &payload);
    peer.outcome(&sender, before).expect("it is accepted");
    let mut frames = Vec::new();
    for settled in [false, true, false, false] {
        frames.extend(peer.transfer_frame(&sender, settled, &payload));
    }
    peer.write(&frames);
    for after in [1, 3, 4] {
        peer.outcome(&sender, before + after)
            .expect("it is accepted");
    }
    peer.send(&sender, &Message::new("m"));
    wait_for("q", 3);
    wait_for("other", 0);
}

#[test]
fn all_subscriptions_of_a_topic_are_explained_in_one_request() {
    let by = |filter: &str| rules(&[sql("r", filter, "")]);
    let config = topic(
        &json!({}),
        &[("cheap", by("price < 10")), ("red", by("color = 'red'"))],
    );
    let bus = Bus::configured(&config);
    let batch = r#"[{"Body":"","UserProperties":{"price":5}}]"#;
    let message = r#"{"application_properties":{"price":{"int":5}}}"#;
    let explain = |query: &str, body: &str| {
        let headers = [("Content-Type", "application/json; charset=utf-8")];
        let path = format!("~/explain?{query}");
        bus.http.send("POST", &path, &headers, body.as_bytes())
    };
    let ask = |query: &str| explain(query, batch);
    let answer = ask("topic=t").ok();
    assert_eq!(explain("topic=t", message).ok(), answer);
    let refused = explain("topic=t", r#"{"header":{"priority":300}}"#);
    assert_ends_with(
        refused.error_with(400, "invalid-body"),
        "300 is not of the type ubyte",
    );
    assert_eq!(answer["rules"], json!([]));
    let [cheap, red] = answer["subscriptions"]
        .as_array()
        .expect("a list")
        .as_slice()
    else {
        panic!("two subscriptions: {answer}");
    };
    assert_eq!(
        members(cheap, ["subscription", "matched"]),
        json!(["t/Subscriptions/cheap", true])
    );
    assert_eq!(red["matched"], false);
    assert_eq!(red["rules"][0]["reason"]["expression"], "color = 'red'");
    let alone = ask("subscription=t/Subscriptions/red").ok();
    assert_eq!(alone["rules"], red["rules"]);
    assert_eq!(alone.get("subscriptions"), None);
    assert_eq!(ask("topic=nobody").error(404).0, "not-found");
    assert_eq!(ask("").error(400).0, "invalid-query");
    assert_eq!(
        ask("topic=t&subscription=t/Subscriptions/red").error(400).0,
        "invalid-query"
    );
}
