//! `POST` and `DELETE {entity}/messages/head` where there is a message, or is known not to be.

use serde_json::json;

use crate::support::*;

#[test]
fn a_locked_message_comes_with_all_that_the_broker_says_of_it() {
    let bus = Bus::with_queues(&["Orders/Eu"]);
    let rest = bus.rest();
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
fn a_message_that_is_taken_is_gone() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest();
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
fn messages_come_in_the_order_in_which_they_were_sent() {
    let bus = Bus::with_queues(&["q"]);
    let rest = bus.rest();
    for body in ["a", "b", "c"] {
        rest.send("q", &[], body);
    }
    let locked = rest.peek_lock("q");
    let taken = [0, 1].map(|_| rest.take("q").text().to_owned());
    assert_eq!(
        (locked.text(), taken),
        ("a", ["b".to_owned(), "c".to_owned()])
    );
}

#[test]
fn dead_letters_and_failed_transfers_are_received_at_their_addresses() {
    let target = r#""ForwardTo":"gone""#;
    let config = queues(
        "",
        &[
            ("q", r#""MaxDeliveryCount":1"#),
            ("source", target),
            ("gone", ""),
        ],
    );
    let bus = Bus::configured(&config);
    let rest = bus.rest();
    rest.send("q", &[], "poison");
    let lock = rest.peek_lock("q").lock();
    assert_eq!(rest.ask("PUT", &lock).status, 200);
    for address in ["q/$DeadLetterQueue", "Q/%24deadletterqueue"] {
        let dead = rest.peek_lock(address);
        let lock = dead.lock();
        assert!(
            lock.starts_with("/q/$deadletterqueue/messages/1/"),
            "{lock}"
        );
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
fn a_forwarded_dead_letter_says_where_it_comes_from() {
    let settings = r#""MaxDeliveryCount":1,"ForwardDeadLetteredMessagesTo":"dead""#;
    let bus = Bus::configured(&queues("", &[("q", settings), ("dead", "")]));
    let rest = bus.rest();
    rest.send("q", &[], "poison");
    let lock = rest.peek_lock("q").lock();
    rest.ask("PUT", &lock);
    assert_eq!(rest.take("dead").property("DeadLetterSource"), "q");
}

#[test]
fn numbers_of_partitions_are_whole() {
    let bus = Bus::configured(&queues("", &[("q", r#""EnablePartitioning":true"#)]));
    let rest = bus.rest();
    let keys = json!({"PartitionKey": "k", "SessionId": "k"}).to_string();
    rest.send("q", &[("BrokerProperties", &keys)], "hello");
    let locked = rest.peek_lock("q");
    let number = locked
        .property("SequenceNumber")
        .as_u64()
        .expect("a number");
    assert_eq!(locked.property("PartitionKey"), "k");
    assert!(locked.lock().contains(&format!("/messages/{number}/")));
    assert_eq!(rest.ask("DELETE", &locked.lock()).status, 200);
}
