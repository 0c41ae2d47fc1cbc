//! How many messages there are.

use serde_json::json;

use crate::support::*;

const COUNTS: &str = "/$emulator/v1/namespaces/sbemulatorns/counts";

#[test]
fn they_count_as_the_service_does() {
    let bus = Bus::with_queues(&["orders"]);
    let mut peer = bus.client();
    let sender = peer.sender("orders");
    let mut bytes = 0;
    for id in ["a", "b", "c"] {
        let message = Message::new(id);
        bytes += message.encode().len();
        peer.send(&sender, &message);
    }
    let receiver = peer.receiver("orders");
    let dead = peer.receive_one(&receiver);
    peer.settle(&dead, dead_lettered("why", ""));
    peer.receive_one(&receiver);
    let counts = bus.http.counts("orders");
    let size = counts["size_bytes"].as_u64().expect("the size is a number");
    assert!(
        size as usize >= bytes && (size as usize) < bytes + 500,
        "{size} for {bytes} sent"
    );
    let expected = json!({
        "active": 2, "dead_letter": 1, "transfer_dead_letter": 0, "scheduled": 0, "transfer": 0,
        "locked": 1, "deferred": 0, "size_bytes": size,
    });
    assert_eq!(counts, expected);
    let dead = bus.http.counts("orders/$DeadLetterQueue");
    assert_eq!(
        (&dead["active"], &dead["dead_letter"]),
        (&json!(1), &json!(0))
    );
}

#[test]
fn any_spelling_of_an_address_will_do() {
    let bus = Bus::with_queues(&["Orders/Eu"]);
    let mut peer = bus.client();
    let sender = peer.sender("orders/eu");
    peer.send(&sender, &Message::new("m"));
    for spelling in [
        "Orders/Eu",
        "orders/eu",
        "/orders/eu",
        "Orders%2FEu",
        "sb://localhost/orders/eu",
    ] {
        assert_eq!(bus.http.held(spelling), (1, 0), "{spelling}");
    }
    for spelling in [
        "orders/eu/$DeadLetterQueue",
        "ORDERS/EU/$deadletterqueue",
        "orders/eu/%24DeadLetterQueue",
    ] {
        assert_eq!(bus.http.held(spelling), (0, 0), "{spelling}");
    }
}

#[test]
fn an_unknown_entity_is_not_found_and_the_known_are_named() {
    let bus = Bus::with_queues(&["a", "b"]);
    for entity in ["c", "a/$management", "$cbs", "a%00"] {
        let answer = bus.http.get(&format!("{COUNTS}?entity={entity}"));
        let (code, message) = answer.error(404);
        assert_eq!(code, "not-found");
        assert!(message.contains("a, b"), "{message}");
    }
    let answer = bus.http.get(COUNTS);
    assert_eq!(answer.error(400).0, "invalid-query");
}
