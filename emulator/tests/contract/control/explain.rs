//! What each rule of a subscription says of a message, and why.

use serde_json::{Value, json};

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

/// Posts bytes that are no text.
fn post(bus: &Bus, subscription: &str, body: &[u8]) -> Answer {
    let path = "/$emulator/v1/namespaces/sbemulatorns/explain";
    let mut request = format!(
        "POST {path}?subscription={subscription} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Content-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    bus.http.raw(&request)
}

fn explain(bus: &Bus, message: &Message) -> Value {
    post(bus, "t/Subscriptions/s", &message.encode()).ok()
}

/// Posts JSON as REST clients write a batch.
fn post_json(bus: &Bus, batch: &str) -> Answer {
    bus.http.raw(
        format!(
            "POST /$emulator/v1/namespaces/sbemulatorns/explain?subscription=t/Subscriptions/s HTTP/1.1\r\n\
             Host: localhost\r\nConnection: close\r\nContent-Length: {}\r\n\
             Content-Type: application/json\r\n\r\n{batch}",
            batch.len()
        )
        .as_bytes(),
    )
}

/// What one rule says.
fn of(explained: &Value, rule: &str) -> Value {
    let rules = explained["rules"].as_array().expect("rules are an array");
    let found = rules.iter().find(|said| said["rule"] == rule);
    found
        .unwrap_or_else(|| panic!("no {rule}: {explained}"))
        .clone()
}

#[test]
fn a_match_needs_no_reason() {
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
    let names: Vec<_> = names.map(|said| said["rule"].clone()).collect();
    assert_eq!(names, ["action", "correlation", "divide", "sql", "system"]);
}

#[test]
fn a_mismatch_is_told_with_its_part_and_its_values() {
    let bus = ruled();
    let message = Message::new("m")
        .property(3, text("Order"))
        .application("colour", text("blue"))
        .application("n", serde_amqp::Value::Int(0));
    let explained = explain(&bus, &message);
    let said = of(&explained, "sql");
    assert_eq!(
        (&said["matched"], &said["error"]),
        (&false.into(), &Value::Null)
    );
    assert_eq!(said["reason"]["truth"], "false");
    assert_eq!(said["reason"]["expression"], "colour = 'red'");
    let values = said["reason"]["values"].clone();
    assert_eq!(values[0]["name"], "colour");
    let value = values[0]["value"].as_str().unwrap_or_default();
    assert!(value.contains("blue"), "{said}");
    let said = of(&explained, "correlation");
    assert_eq!(said["matched"], false);
    let expression = said["reason"]["expression"].as_str().unwrap_or_default();
    assert!(expression.contains("colour"), "{said}");
    for rule in ["divide", "action"] {
        let said = of(&explained, rule);
        assert_eq!(
            (&said["matched"], &said["reason"]),
            (&false.into(), &Value::Null)
        );
        let error = said["error"].as_str().unwrap_or_default();
        assert!(error.contains("divided by zero"), "{said}");
    }
    // What is missing is unknown, not false.
    let said = of(&explain(&bus, &Message::new("m")), "sql");
    assert_eq!(said["reason"]["truth"], "unknown");
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
    ] {
        let answer = post_json(&bus, refused);
        let (code, message) = answer.error(400);
        assert_eq!(code, "invalid-body", "{refused}");
        assert!(message.contains(why), "{refused}: {message}");
    }
}

#[test]
fn nothing_is_sent_by_asking() {
    let bus = ruled();
    explain(&bus, &Message::new("m").application("colour", text("red")));
    assert_eq!(bus.http.held("t/Subscriptions/s"), (0, 0));
    assert!(bus.http.events("?entity=t").is_empty());
}

#[test]
fn any_address_of_a_subscription_will_do_and_no_other() {
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
    let path = "/$emulator/v1/namespaces/sbemulatorns/explain";
    assert_eq!(
        bus.http.post(path, &json!({})).error(400).0,
        "invalid-query"
    );
}

#[test]
fn what_is_no_message_is_refused() {
    let bus = ruled();
    for body in [&b"{}"[..], b"\x00\x53\x75\xa0\xff"] {
        let answer = post(&bus, "t/Subscriptions/s", body);
        assert_eq!(answer.error(400).0, "invalid-body", "{body:?}");
    }
}
