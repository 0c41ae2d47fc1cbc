//! The list of namespaces, and reset.

use serde_json::{Value, json};

use crate::support::*;

#[test]
fn the_list_is_that_of_the_ready_line() {
    let process = Process::start(&[]);
    let list = process.http().get("/$emulator/v1/namespaces").ok();
    assert_eq!(list, process.ready["namespaces"]);
}

#[test]
fn a_reset_leaves_entities_as_declared_and_nothing_in_them() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.client();
    let sender = peer.sender("q");
    let receiver = peer.receiver("q");
    for id in ["dead", "locked", "ready"] {
        peer.send(&sender, &Message::new(id));
    }
    let dead = peer.receive_one(&receiver);
    peer.settle(&dead, dead_lettered("why", ""));
    let locked = peer.receive_one(&receiver);
    bus.http.advance(1.0);
    let answer = bus
        .http
        .post("/$emulator/v1/namespaces/sbemulatorns/reset", &Value::Null);
    assert_eq!((answer.status, &answer.body), (204, &Value::Null));
    assert_eq!(bus.http.held("q"), (0, 0));
    let timeline = bus.http.timeline("");
    assert_eq!(timeline["events"], json!([]));
    assert_eq!(timeline["counters"]["sent"], 0);
    let answer = peer.settle(&locked, accepted());
    assert_eq!(described_list(&answer).0, 0x25, "the lock is gone");
    // Links and clocks go on.
    peer.send(&sender, &Message::new("new"));
    assert_eq!(peer.receive_one(&receiver).id(), "new");
    assert_eq!(
        bus.http.get("/$emulator/v1/clock").ok()["offset_seconds"],
        1.0
    );
}
