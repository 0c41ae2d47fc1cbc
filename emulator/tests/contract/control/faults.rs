//! Scripted faults: added, counted, removed; and a commit whose answer is lost.

mod effects;
mod later;
mod links;
mod outcomes;
mod refusals;
mod unfired;

use serde_json::{Value, json};

use crate::support::*;

const FAULTS: &str = "~/faults";

impl Bus {
    /// Scripts a fault and returns its id.
    fn script(&self, fault: &Value) -> Value {
        let answer = self.http.post(FAULTS, fault);
        assert_eq!(answer.status, 201, "{fault}: {answer:?}");
        answer.ok()["id"].clone()
    }
}

/// How often a fault took effect.
fn hits(bus: &Bus, id: &Value) -> u64 {
    let fault = bus.http.get(&format!("{FAULTS}/{id}")).ok();
    fault["hits"].as_u64().expect("a count")
}

/// The faults in the timeline of a queue.
fn details(bus: &Bus, entity: &str) -> Vec<String> {
    let events = bus.http.events(&format!("?entity={entity}"));
    let faults = events.iter().filter(|event| event["kind"] == "fault");
    let details = faults.map(|fault| fault["detail"].as_str().expect("a text").to_owned());
    details.collect()
}

fn lose_the_reply(bus: &Bus, entity: Option<&str>, nth: u64) -> Value {
    let body =
        json!({"operation": "discharge", "entity": entity, "nth": nth, "effect": "lose-reply"});
    let answer = bus.http.post(FAULTS, &body);
    assert_eq!(answer.status, 201, "{answer:?}");
    answer.ok()
}

/// How often a fault matched, was skipped for its entity, and took effect.
fn met(bus: &Bus, fault: &Value) -> [Option<u64>; 3] {
    let fault = bus.http.get(&format!("{FAULTS}/{}", fault["id"])).ok();
    ["matched", "elsewhere", "hits"].map(|name| fault[name].as_u64())
}

#[test]
fn a_commit_with_a_lost_reply_is_applied() {
    let bus = Bus::with_queues(&["q", "other"]);
    let fault = lose_the_reply(&bus, Some("q"), 2);
    let mut peer = bus.client_as(&Open::named("worker-1"));
    let (sender, elsewhere) = (peer.sender("q"), peer.sender("other"));
    // On a session of its own, so that nothing is sent via another queue.
    peer.begin(1);
    let coordinator = peer.attached(&Attach::coordinator().on(1));
    for link in [&elsewhere, &sender] {
        let transaction = peer.declare(&coordinator);
        let message = Message::new("a");
        peer.send_in(link, &transaction, &message).unwrap();
        assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
    }
    assert_eq!(met(&bus, &fault), [Some(1), Some(1), Some(0)]);

    let transaction = peer.declare(&coordinator);
    let message = Message::new("b");
    peer.send_in(&sender, &transaction, &message).unwrap();
    let lost = peer.demand(&coordinator, discharge(&transaction, false));
    peer.assert_no_frame(|frame| frame.is_about(lost));
    assert_eq!(bus.http.held("q"), (2, 0));
    assert_eq!(met(&bus, &fault), [Some(2), Some(1), Some(1)]);
    let events = bus.http.events("?entity=q");
    let last: Vec<_> = events
        .iter()
        .rev()
        .take(3)
        .map(|event| &event["kind"])
        .collect();
    assert_eq!(last, ["fault", "sent", "transaction-committed"]);
    let event = &events[events.len() - 1];
    assert_eq!(event["client"], "worker-1");
    assert_eq!(event["detail"], "the reply to the discharge was lost");

    // It takes effect once, and the link stays attached.
    let next = peer.declare(&coordinator);
    assert_eq!(peer.commit(&coordinator, &next), Ok(()));
    let again = peer.commit(&coordinator, &transaction);
    assert_eq!(again.unwrap_err().condition, "amqp:transaction:unknown-id");
}

#[test]
fn faults_are_listed_and_removed() {
    let bus = Bus::with_queues(&["q"]);
    let first = lose_the_reply(&bus, None, 1);
    let expected = json!({
        "id": first["id"], "operation": "discharge", "entity": null, "nth": 1, "every": 1, "times": 1,
        "effect": "lose-reply", "matched": 0, "elsewhere": 0, "different": 0, "hits": 0,
    });
    assert_eq!(first, expected);
    let second = lose_the_reply(&bus, Some("q"), 7);
    assert_eq!(
        bus.http.get(FAULTS).ok(),
        json!({ "faults": [first, second] })
    );

    let path = format!("{FAULTS}/{}", first["id"]);
    assert_eq!(bus.http.delete(&path).status, 204);
    for method in ["GET", "DELETE"] {
        let answer = bus.http.request(method, &path, None);
        let message = answer.error_with(404, "not-found");
        assert_eq!(message, r#"there is no fault "1"; there are: 2"#);
    }
    assert_eq!(bus.http.delete(FAULTS).status, 204);
    assert_eq!(bus.http.get(FAULTS).ok(), json!({ "faults": [] }));
    let mut peer = bus.client();
    let (coordinator, transaction) = peer.transaction();
    assert_eq!(peer.commit(&coordinator, &transaction), Ok(()));
}
