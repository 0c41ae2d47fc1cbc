//! `POST` and `DELETE {entity}/messages/head` where there is a message, or certainly none.
//!
//! `DELETE`, `PUT` and `POST {entity}/messages/{message id or sequence number}/{lock token}`.

use serde_json::json;

use crate::support::*;

#[test]
fn a_locked_message_has_all_broker_properties() {
    let (bus, rest) = Bus::with_queues(&["Orders/Eu"]).with_rest();
    let properties = r#"{"MessageId":"m-1","Label":"l","TimeToLive":90}"#;
    rest.send("orders/eu", &[("BrokerProperties", properties)], "hello");
    let before = now();
    let locked = rest.peek_lock("orders%2Feu");
    assert_eq!((locked.status, locked.text()), (201, "hello"));
    let properties = locked.properties();
    let token = properties["LockToken"]
        .as_str()
        .expect("a token")
        .to_owned();
    assert_eq!(locked.lock(), format!("/orders/eu/messages/1/{token}"));
    assert_eq!(properties["DeliveryCount"], 1);
    assert_eq!(properties["SequenceNumber"], 1);
    assert_eq!(
        properties["EnqueuedSequenceNumber"], 0,
        "it was sent to this queue"
    );
    assert_eq!(properties["MessageId"], "m-1");
    assert_eq!(properties["Label"], "l");
    assert_eq!(properties["State"], "Active");
    assert_eq!(properties["TimeToLive"], 90);
    let instants = before - 1..=now() + 1;
    let is = |name: &str, offset: i64| {
        let dates = instants.clone().map(|at| http_date(at + offset));
        dates
            .into_iter()
            .any(|date| properties[name] == date.as_str())
    };
    assert!(
        is("EnqueuedTimeUtc", 0) && is("LockedUntilUtc", 60),
        "{properties}"
    );
    assert_eq!(bus.http.counts("orders/eu")["locked"], 1);
    assert_eq!(rest.peek_lock("orders/eu").status, 204);
}

#[test]
fn a_received_message_has_no_unrelated_headers() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    rest.send("q", &[("Priority", r#""High""#)], "hello");
    let taken = rest.take("q");
    assert_eq!(taken.text(), "hello");
    for (name, value) in [
        ("Priority", Some(r#""High""#)),
        ("Transfer-Encoding", Some("chunked")),
        ("Content-Length", None),
        ("X-Content-Type-Options", None),
    ] {
        assert_eq!(taken.header(name), value, "{name}");
    }
}

/// A page may post a form here, and its browser would show the answer as a page of the emulator, with the scripts in it.
#[test]
fn a_page_cannot_run_a_message_in_the_emulators_origin() {
    let (_bus, rest) = Bus::with_queues(&["q"]).with_rest();
    let script = r#"<script xmlns="http://www.w3.org/1999/xhtml">alert(1)</script>"#;
    for sent in ["Origin", "Sec-Fetch-Site"] {
        let policy = ("Content-Security-Policy", r#""script-src *""#);
        rest.send("q", &[("Content-Type", "text/html"), policy], script);
        let path = "/q/messages/head?timeout=0";
        let taken = rest.request("DELETE", path, &[(sent, "null")], b"");
        assert_eq!(taken.text(), script);
        for (name, value) in [
            ("Content-Security-Policy", "sandbox"),
            ("X-Content-Type-Options", "nosniff"),
        ] {
            assert_eq!(taken.header(name), Some(value), "{name}");
        }
    }
}

#[test]
fn a_received_and_deleted_message_is_gone() {
    let (bus, rest) = Bus::with_queues(&["q"]).with_rest();
    rest.send("q", &[], "hello");
    let taken = rest.take("q");
    assert_eq!((taken.status, taken.text()), (200, "hello"));
    assert_eq!(taken.header("Location"), None);
    let properties = taken.properties();
    assert_eq!(properties["DeliveryCount"], 1);
    assert!(properties["LockToken"].is_null() && properties["LockedUntilUtc"].is_null());
    let forever = properties["TimeToLive"].as_f64().expect("a number");
    assert!((forever - 922_337_203_685.477_5).abs() < 1.0, "{forever}");
    assert_eq!(bus.http.held("q"), (0, 0));
    let nothing = rest.take("q");
    assert_eq!((nothing.status, nothing.text()), (204, ""));
}

#[test]
fn dead_letters_and_transfer_dead_letters_can_be_received() {
    let target = r#""ForwardTo":"gone""#;
    let config = queues(
        "",
        &[
            ("q", r#""MaxDeliveryCount":1"#),
            ("source", target),
            ("gone", ""),
        ],
    );
    let (bus, rest) = Bus::configured(&config).with_rest();
    rest.send("q", &[], "poison");
    let lock = rest.peek_lock("q").lock();
    assert_eq!(rest.ask("PUT", &lock).status, 200);
    for address in ["q/$DeadLetterQueue", "Q/%24deadletterqueue"] {
        let dead = rest.peek_lock(address);
        let lock = dead.lock();
        assert_starts_with(&lock, "/q/$deadletterqueue/messages/1/");
        assert_eq!(dead.text(), "poison");
        assert_eq!(
            dead.header("DeadLetterReason"),
            Some(r#""MaxDeliveryCountExceeded""#)
        );
        assert_eq!(rest.ask("PUT", &lock).status, 200);
    }
    let lock = rest.peek_lock("q/$DeadLetterQueue").lock();
    assert_eq!(rest.ask("DELETE", &lock).status, 200);
    assert_eq!(bus.http.held("q"), (0, 0));

    assert_eq!(bus.http.queue("DELETE", "gone", None).status, 204);
    assert_eq!(rest.send("source", &[], "lost").status, 201);
    let failed = rest.take("source/$Transfer/$DeadLetterQueue");
    assert_eq!((failed.status, failed.text()), (200, "lost"));
}

#[test]
fn a_forwarded_dead_letter_has_its_source() {
    let settings = r#""MaxDeliveryCount":1,"ForwardDeadLetteredMessagesTo":"dead""#;
    let (_bus, rest) = Bus::configured(&queues("", &[("q", settings), ("dead", "")])).with_rest();
    rest.send("q", &[], "poison");
    let lock = rest.peek_lock("q").lock();
    rest.ask("PUT", &lock);
    assert_eq!(rest.take("dead").property("DeadLetterSource"), "q");
}

#[test]
fn sequence_numbers_of_a_partitioned_queue_are_exact() {
    let (_bus, rest) = Bus::with_queue(r#""EnablePartitioning":true"#).with_rest();
    let keys = json!({"PartitionKey": "k", "SessionId": "k"}).to_string();
    rest.send("q", &[("BrokerProperties", &keys)], "hello");
    let locked = rest.peek_lock("q");
    let number = locked
        .property("SequenceNumber")
        .as_u64()
        .expect("a number");
    assert_eq!(locked.property("PartitionKey"), "k");
    assert_contains(&locked.lock(), &format!("/messages/{number}/"));
    assert_eq!(rest.ask("DELETE", &locked.lock()).status, 200);
}

const LOST: &str = "The lock supplied is invalid. Either the lock expired, or the message has already been removed from \
                    the queue. For more information please see https://aka.ms/ServiceBusExceptions .";

/// A queue with a message, and the path of its lock.
fn locked(settings: &str) -> (Bus, Rest, String) {
    let (bus, rest) = Bus::configured(&queues(settings, &[("q", "")])).with_rest();
    rest.send(
        "q",
        &[("BrokerProperties", r#"{"MessageId":"m-1"}"#)],
        "hello",
    );
    let lock = rest.peek_lock("q").lock();
    (bus, rest, lock)
}

/// The lower case of a word is not that of its characters.
#[test]
fn a_lock_of_an_entity_whose_name_ends_with_sigma_can_be_settled() {
    let (bus, rest) = Bus::configured(&queues("", &[("ΣΑΣ", "")])).with_rest();
    let path = "/%CE%A3%CE%91%CE%A3";
    rest.send(path.trim_matches('/'), &[], "hello");
    let lock = rest.peek_lock(path.trim_matches('/')).lock();
    assert_eq!(rest.ask("DELETE", &lock).status, 200);
    assert_eq!(bus.http.held("ΣΑΣ"), (0, 0));
}

#[test]
fn a_message_is_completed_by_its_sequence_number() {
    let (bus, rest, lock) = locked("");
    let completed = rest.ask("DELETE", &lock);
    assert_eq!((completed.status, completed.text()), (200, ""));
    assert_eq!(bus.http.held("q"), (0, 0));
    assert_eq!(rest.ask("DELETE", &lock).refusal(404), LOST);
}

#[test]
fn a_message_can_be_addressed_by_its_message_id() {
    let (bus, rest, lock) = locked("");
    let by_id = lock.replace("/messages/1/", "/Messages/m-1/");
    assert_eq!(rest.ask("POST", &by_id).status, 200);
    for wrong in ["/messages/2/", "/messages/m-2/", "/messages/01/"] {
        let path = lock.replace("/messages/1/", wrong);
        for method in ["DELETE", "PUT", "POST"] {
            assert_eq!(
                rest.ask(method, &path).refusal(404),
                LOST,
                "{method} {path}"
            );
        }
    }
    assert_eq!(rest.ask("DELETE", &by_id).status, 200);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_renewed_lock_lasts_and_an_expired_lock_is_lost() {
    let (bus, rest, lock) = locked("");
    bus.http.freeze();
    bus.http.advance(50.0);
    let renewed = rest.ask("POST", &lock);
    assert_eq!((renewed.status, renewed.text()), (200, ""));
    bus.http.advance(50.0);
    assert_eq!(rest.peek_lock("q").status, 204, "it is still locked");
    bus.http.advance(11.0);
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(rest.ask(method, &lock).refusal(404), LOST);
    }
    assert_eq!(rest.peek_lock("q").property("DeliveryCount"), 2);
}

#[test]
fn an_invalid_lock_token_is_a_lost_lock() {
    let (bus, rest, lock) = locked("");
    let zero = "00000000-0000-0000-0000-000000000000";
    for token in [zero, "x", "%20", "%ff", "1"] {
        let path = format!("/q/messages/1/{token}");
        assert_eq!(rest.ask("DELETE", &path).refusal(404), LOST, "{token}");
    }
    let elsewhere = lock.replace("/q/", "/q/$DeadLetterQueue/");
    assert_eq!(rest.ask("DELETE", &elsewhere).refusal(404), LOST);
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn locks_taken_over_http_are_not_released_on_detach() {
    let (bus, rest, lock) = locked(r#""LocksOnDetach":"release""#);
    assert_eq!(bus.http.counts("q")["locked"], 1);
    assert_eq!(rest.ask("POST", &lock).status, 200);
    assert_eq!(rest.ask("DELETE", &lock).status, 200);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_lock_taken_over_http_is_settled_over_amqp() {
    let (bus, rest, lock) = locked("");
    let mut peer = bus.client();
    let token = lock.rsplit('/').next().and_then(|token| token.parse().ok());
    let node = peer.node("q/$management");
    peer.settle_by_token(&node, "completed", token.expect("a token"));
    assert_eq!(rest.ask("DELETE", &lock).refusal(404), LOST);

    rest.send("q", &[], "again");
    let delivery = peer.receive_from("q");
    let path = format!("/q/messages/2/{}", delivery.token());
    assert_eq!(rest.ask("DELETE", &path).status, 200);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_disabled_entity_refuses_settlements_and_keeps_locks() {
    let (bus, rest, lock) = locked("");
    bus.http.set_status("q", "ReceiveDisabled");
    for method in ["DELETE", "PUT", "POST"] {
        let refused = rest.ask(method, &lock);
        assert_contains(refused.refusal(400), "is currently disabled");
    }
    bus.http.set_status("q", "Active");
    assert_eq!(rest.ask("DELETE", &lock).status, 200);
}
