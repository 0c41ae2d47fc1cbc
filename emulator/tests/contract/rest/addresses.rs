//! The operations of each address, and the statuses of the others.

use crate::support::*;

fn bus() -> Bus {
    let config = r#"{"UserConfig":{"Namespaces":[{"Name":"sbemulatorns",
        "Queues":[{"Name":"q"},{"Name":"messages"},{"Name":"a/messages"},
            {"Name":"source","Properties":{"ForwardTo":"q"}}],
        "Topics":[{"Name":"t","Subscriptions":[{"Name":"s"}]}]}]}}"#;
    Bus::configured(config)
}

#[test]
fn a_request_for_a_missing_entity_is_410() {
    let (_bus, rest) = bus().with_rest();
    for (method, path) in [
        ("POST", "/nobody/messages"),
        ("POST", "/nobody/messages/head"),
        ("DELETE", "/nobody/messages/head"),
        (
            "DELETE",
            "/nobody/messages/1/00000000-0000-0000-0000-000000000000",
        ),
        ("POST", "/t/subscriptions/nobody/messages/head"),
        ("POST", "/q/$DeadLetterQueue/$DeadLetterQueue/messages/head"),
        ("POST", "/q/$management/messages"),
        ("POST", "/%ff%00/messages"),
    ] {
        let refused = rest.ask(method, path);
        let words = refused.refusal(410);
        assert!(
            words.contains("could not be found"),
            "{method} {path}: {words}"
        );
    }
}

#[test]
fn an_unsupported_method_is_refused_with_the_supported_ones() {
    let (_bus, rest) = bus().with_rest();
    for (method, path, allowed) in [
        ("GET", "/q/messages", "POST"),
        ("PUT", "/q/messages", "POST"),
        ("DELETE", "/q/messages", "POST"),
        ("GET", "/q/messages/head", "POST, DELETE"),
        ("PUT", "/q/messages/head", "POST, DELETE"),
        ("GET", "/q/messages/1/x", "DELETE, PUT, POST"),
        ("PATCH", "/q/messages/1/x", "DELETE, PUT, POST"),
    ] {
        let refused = rest.ask(method, path);
        assert_contains(refused.refusal(405), "The specified HTTP verb");
        assert_eq!(refused.header("Allow"), Some(allowed), "{method} {path}");
    }
}

/// Clients of the administration API send its version; some clients of messages do, too.
#[test]
fn a_version_in_the_query_does_not_turn_an_operation_on_messages_into_a_deletion() {
    let (bus, rest) = bus().with_rest();
    let admin = bus.admin();
    let version = "?api-version=2021-05";
    let head = format!("/q/messages/head{version}");
    admin.put(&head, &queue("")).expect(201);
    assert_eq!(rest.send("q", &[], "x").status, 201);
    assert_eq!(rest.ask("DELETE", &head).text(), "x");
    admin.get(&head).expect(200);
    let lock = "/q/messages/1/00000000-0000-0000-0000-000000000000";
    let refused = rest.ask("DELETE", &format!("{lock}{version}"));
    assert_contains(refused.refusal(404), "lock");
}

#[test]
fn each_kind_of_address_refuses_unsupported_operations() {
    let (_bus, rest) = bus().with_rest();
    for (address, event) in [
        (
            "t/subscriptions/s",
            "it is a subscription; send to its topic",
        ),
        (
            "q/$DeadLetterQueue",
            "a dead-letter queue is filled by the broker alone",
        ),
        (
            "t/subscriptions/s/$DeadLetterQueue",
            "filled by the broker alone",
        ),
        ("q/$Transfer/$DeadLetterQueue", "filled by the broker alone"),
    ] {
        assert_contains(rest.send(address, &[], "x").refusal(400), event);
    }
    for (address, event) in [
        ("t", "it is a topic; receive from its subscriptions"),
        ("t/$DeadLetterQueue", "it is a topic"),
        ("source", "with auto-forwarding enabled"),
    ] {
        for refused in [rest.peek_lock(address), rest.take(address)] {
            assert_contains(refused.refusal(400), event);
        }
    }
    for address in [
        "t/$Transfer/$DeadLetterQueue",
        "source/$DeadLetterQueue",
        "t/Subscriptions/s",
    ] {
        assert_eq!(rest.take(address).status, 204, "{address}");
    }
}

#[test]
fn entity_names_may_be_path_keywords() {
    let (_bus, rest) = bus().with_rest();
    for (address, encoded) in [("messages", "messages"), ("a/messages", "a%2fmessages")] {
        assert_eq!(rest.send(address, &[], address).status, 201);
        let locked = rest.peek_lock(encoded);
        assert_eq!(locked.text(), address);
        assert_eq!(rest.ask("DELETE", &locked.lock()).status, 200);
    }
}

#[test]
fn entities_with_sessions_can_be_sent_to_but_not_received_from() {
    let (_bus, rest) = Bus::with_queue(r#""RequiresSession":true"#).with_rest();
    assert_contains(
        rest.send("q", &[], "x").refusal(400),
        "The SessionId was not set",
    );
    let session = ("BrokerProperties", r#"{"SessionId":"s"}"#);
    assert_eq!(rest.send("q", &[session], "x").status, 201);
    for refused in [rest.peek_lock("q"), rest.take("q")] {
        assert_contains(refused.refusal(400), "an entity that requires sessions");
    }
    assert_eq!(rest.take("q/$DeadLetterQueue").status, 204);
}

#[test]
fn requests_to_disabled_entities_are_refused() {
    let (bus, rest) = bus().with_rest();
    bus.http.set_status("q", "SendDisabled");
    assert_contains(
        rest.send("q", &[], "x").refusal(400),
        "'sb://localhost/q' is currently disabled",
    );
    assert_eq!(rest.take("q").status, 204);
    bus.http.set_status("q", "ReceiveDisabled");
    assert_eq!(rest.send("q", &[], "x").status, 201);
    assert_contains(rest.peek_lock("q").refusal(400), "is currently disabled");
    assert_contains(rest.take("q").refusal(400), "is currently disabled");
}

#[test]
fn paths_of_other_apis_are_not_rest_paths() {
    let (_bus, rest) = bus().with_rest();
    assert_eq!(rest.ask("GET", "/health").status, 200);
    let queue = "/$emulator/v1/namespaces/sbemulatorns/queues/messages";
    assert_eq!(
        rest.ask("GET", queue).status,
        200,
        "the control API comes first"
    );
    let nothing = rest.ask("GET", "/nothing");
    assert_eq!(nothing.status, 200, "the administration API has the rest");
    assert_contains(nothing.text(), "Publicly Listed Services");
}

#[test]
fn a_refused_rest_request_is_in_the_timeline() {
    let (bus, rest) = bus().with_rest();
    let refused = rest.send("q", &[("BrokerProperties", "[]")], "x");
    let text = refused.text();
    let id = text
        .split("TrackingId:")
        .nth(1)
        .and_then(|rest| rest.split(',').next());
    let events = bus.http.events("?entity=q");
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["kind"], "refused");
    assert_eq!(events[0]["client"], "HTTP");
    let event = events[0].to_string();
    assert_contains(&event, id.expect("an id"));
    assert_contains(&event, "SystemTracker:sbemulatorns:Queue:q");
}
