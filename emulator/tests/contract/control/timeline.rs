//! The record, oldest event first: what people read after a test has failed.

use serde_json::{Value, json};

use crate::support::*;

/// One field of every event.
fn column(events: &[Value], name: &str) -> Vec<Value> {
    events.iter().map(|event| event[name].clone()).collect()
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event["kind"].as_str())
        .collect()
}

/// Whether a field of every event has this value.
fn all(events: &[Value], name: &str, value: &str) -> bool {
    events.iter().all(|event| event[name] == value)
}

/// The events of a message that fails twice, is dead-lettered and completed there.
fn poison() -> Vec<Value> {
    let bus = Bus::with_queue(r#""MaxDeliveryCount":2"#);
    let mut peer = bus.client_as(&Open::named("worker-1"));
    peer.send_to("q", &Message::new("poison").ttl(60_000));
    let receiver = peer.receiver("q");
    for _ in 0..2 {
        let delivery = peer.receive_one(&receiver);
        peer.settle(&delivery, abandoned());
    }
    let delivery = peer.receive_from("q/$DeadLetterQueue");
    peer.complete(&delivery);
    bus.http.events("?entity=q&message_id=poison")
}

#[test]
fn events_are_rendered_as_lines_on_request() {
    let bus = Bus::with_queues(&["q"]);
    bus.client_as(&Open::named("worker-1"))
        .send_to("q", &Message::new("m"));
    bus.http.advance(60.0);
    let events = bus.http.events("?lines=true");
    let lines: Vec<&str> = events
        .iter()
        .filter_map(|event| event["line"].as_str())
        .collect();
    let [sent, advanced] = lines[..] else {
        panic!("{lines:?}");
    };
    assert_contains(sent, " s  sent            m, by worker-1, ");
    assert_ends_with(sent, " bytes, in q");
    assert_eq!(advanced, "            clock advanced  by the test, 60 s");
    assert!(
        bus.http
            .events("")
            .iter()
            .all(|event| event.get("line").is_none())
    );
}

#[test]
fn the_timeline_of_a_message_includes_its_dead_letter() {
    let events = poison();
    let expected = "sent delivered abandoned delivered abandoned dead-lettered delivered completed";
    assert_eq!(kinds(&events).join(" "), expected);
    assert!(all(&events, "message_id", "poison"), "{events:?}");
    // Actions of the broker itself have no client.
    assert!(all(&events[..5], "client", "worker-1") && events[5]["client"].is_null());
    assert!(all(&events[..6], "entity", "q") && all(&events[6..], "entity", "q/$DeadLetterQueue"));
    let counts: Vec<Option<u64>> = events
        .iter()
        .map(|event| event["delivery_count"].as_u64())
        .collect();
    let [first, second, third] = [1, 2, 3].map(Some);
    assert_eq!(
        counts,
        [None, first, first, second, second, None, third, None]
    );
    assert_eq!(events[5]["reason"], "MaxDeliveryCountExceeded");
    let detail = "Message could not be consumed after 2 delivery attempts.";
    assert_eq!(events[5]["detail"], detail);
    let detail = events[0]["detail"].as_str().unwrap_or_default();
    assert_ends_with(detail, " bytes, time to live 60 s");
}

#[test]
fn every_event_has_all_fields() {
    for event in poison() {
        let fields: Vec<&str> = event
            .as_object()
            .expect("an object")
            .keys()
            .map(String::as_str)
            .collect();
        let known = "at client delivery_count detail entity kind locked_until message_id offset reason sequence_number \
                     session";
        assert_eq!(fields.join(" "), known);
    }
}

#[test]
fn times_and_offsets_of_events_ascend_together() {
    let (bus, mut peer, sender, receiver) = Bus::with_queues(&["q"]).with_links("q");
    peer.send(&sender, &Message::new("m"));
    let held = peer.receive_one(&receiver);
    bus.http.advance(30.0);
    peer.complete(&held);
    let events = bus.http.events("");
    assert_eq!(
        kinds(&events),
        ["sent", "delivered", "clock-advanced", "completed"]
    );
    let instants: Vec<jiff::Timestamp> = column(&events, "at")
        .iter()
        .map(|at| at.as_str().and_then(|at| at.parse().ok()).expect("a time"))
        .collect();
    assert!(instants.is_sorted());
    let offsets: Vec<f64> = column(&events, "offset")
        .iter()
        .filter_map(Value::as_f64)
        .collect();
    for (index, offset) in offsets.iter().enumerate() {
        let passed = instants[index].as_millisecond() - instants[0].as_millisecond();
        assert!(
            (offset - offsets[0] - passed as f64 / 1000.0).abs() < 0.0005,
            "{events:?}"
        );
    }
    assert!(offsets[3] >= offsets[1] + 30.0);
    assert_eq!(events[2]["detail"], "30 s");
    let until: jiff::Timestamp = events[1]["locked_until"]
        .as_str()
        .and_then(|at| at.parse().ok())
        .expect("a time");
    assert_eq!(
        until.as_millisecond() - instants[1].as_millisecond(),
        60_000
    );
}

#[test]
fn the_timeline_is_filtered_by_entity_and_message() {
    let (bus, mut peer) = Bus::with_queues(&["a", "b"]).with_client();
    for queue in ["a", "b"] {
        let sender = peer.sender(queue);
        for id in ["1", "2"] {
            peer.send(&sender, &Message::new(id));
        }
    }
    bus.http.advance(1.0);
    assert_eq!(bus.http.events("").len(), 5);
    let both = bus.http.events("?message_id=1");
    assert_eq!(column(&both, "entity"), [json!("a"), json!("b"), json!("")]);
    // Events of the whole namespace belong to every view.
    let one = bus.http.events("?entity=b&message_id=2");
    assert_eq!(kinds(&one), ["sent", "clock-advanced"]);
    // A number is that of one message in its entity only.
    let numbered = bus.http.events("?entity=b&sequence_number=2");
    assert_eq!(column(&numbered, "message_id"), [json!("2")]);
    assert_eq!(bus.http.events("?entity=b&sequence_number=3").len(), 0);
    assert_eq!(
        kinds(&bus.http.events("?entity=A&message_id=none")),
        ["clock-advanced"]
    );
    let answer = bus.http.get("~/timeline?entity=c");
    assert_contains(answer.error(404).1, "a, b");
}

#[test]
fn a_dead_letter_without_reason_has_none_in_the_timeline() {
    let (bus, mut peer, sender, receiver) = Bus::with_queues(&["q"]).with_links("q");
    peer.send(&sender, &Message::new("m"));
    let held = peer.receive_one(&receiver);
    peer.settle(&held, dead_lettered("", ""));
    let events = bus.http.events("?lines=true");
    let last = events.last().expect("the dead letter");
    assert!(
        last["reason"].is_null() && last["detail"].is_null(),
        "{last}"
    );
    let line = last["line"].as_str().expect("a line");
    assert_contains(line, "dead-lettered   m, by client");
    assert!(!line.contains(':'), "{line}");
}

#[test]
fn timeline_counters_count_all_events_and_by_sub_queue() {
    let (bus, mut peer) = Bus::with_queues(&["q", "other"]).with_client();
    peer.send_to("other", &Message::new("elsewhere"));
    let sender = peer.sender("q");
    for id in ["complete", "dead-letter", "release", "delete"] {
        peer.send(&sender, &Message::new(id));
    }
    peer.send(&sender, &Message::new("expire").ttl(1000));
    let receiver = peer.receiver("q");
    let held = [1, 2, 3].map(|_| peer.receive_one(&receiver));
    peer.complete(&held[0]);
    peer.settle(&held[1], dead_lettered("", ""));
    peer.settle(&held[2], released());
    let deleting = peer.attached(&Attach::deleting("q").named("deleting"));
    peer.credit(&deleting, 2);
    peer.receive(&deleting);
    peer.receive(&deleting);
    bus.http.advance(2.0);
    let counters = |query: &str| bus.http.timeline(query)["counters"].clone();
    let here = counters("?entity=q");
    for (name, count) in [
        ("sent", 5),
        ("delivered", 3),
        ("completed", 1),
        ("dead-lettered", 1),
        ("released", 1),
        ("received-and-deleted", 2),
        ("expired", 1),
        ("abandoned", 0),
        ("lock-expired", 0),
    ] {
        assert_eq!(here[name], count, "{name}: {here}");
    }
    assert_eq!(counters("")["sent"], 6);
    assert_eq!(counters("?entity=q/$DeadLetterQueue")["sent"], 0);
}

#[test]
fn a_refused_event_has_the_text_the_client_got() {
    let bus = Bus::with_queues(&["q"]);
    let mut peer = bus.client_as(&Open::named("worker-1"));
    let missing = peer.refused(&Attach::sender("nowhere"));
    let sender = peer.sender("q");
    let malformed = peer.send_in_vain(&sender, b"no message");
    let receiver = peer.receiver("q");
    peer.send(&sender, &Message::new("m"));
    let held = peer.receive_one(&receiver);
    bus.http.advance(61.0);
    let state = peer.settle(&held, accepted());
    let late = refusal_of(&described_list(&state).1[0]);
    let management = peer.node("q/$management");
    let unknown = peer.call(&management, "nonsense", map([]));
    let link = peer.refused(&Attach::sender("q").named(&"n".repeat(5000)));
    let expected = [
        (missing.condition, missing.text),
        (malformed.condition, malformed.text),
        (late.condition, late.text),
        (unknown.condition(), unknown.text()),
        (link.condition, link.text),
    ];
    let mut refused = bus.http.events("");
    refused.retain(|event| event["kind"] == "refused");
    assert_eq!(refused.len(), expected.len(), "{refused:?}");
    for (event, (condition, text)) in refused.iter().zip(expected) {
        assert_eq!(event["reason"], condition.as_str());
        assert_eq!(event["detail"], text.as_str());
        assert_contains(&text, "TrackingId:");
        assert_eq!(event["client"], "worker-1");
    }
}

#[test]
fn the_timeline_of_a_message_includes_schedule_and_forwards() {
    let bus = Bus::configured(&queues("", &[("a", r#""ForwardTo":"b""#), ("b", "")]));
    let mut peer = bus.client_as(&Open::named("worker-1"));
    let sender = peer.sender("a");
    let message = Message::new("m").scheduled_at(client_now() + 60_000);
    peer.send(&sender, &message);
    bus.http.advance(61.0);
    let held = peer.receive_from("b");
    peer.settle(&held, deferred());
    let mut events = bus.http.events("?message_id=m");
    events.retain(|event| event["message_id"] == "m");
    let story: Vec<(&str, &str)> = events
        .iter()
        .map(|event| {
            let text = |name: &str| event[name].as_str().unwrap_or_default();
            (text("entity"), text("kind"))
        })
        .collect();
    let expected = [
        ("a", "scheduled"),
        ("a", "activated"),
        ("a", "sent"),
        ("b", "sent"),
        ("a", "forwarded"),
        ("b", "delivered"),
        ("b", "deferred"),
    ];
    assert_eq!(story, expected);
    assert_eq!(events[4]["detail"], "b");
}

#[test]
fn counters_of_a_deleted_queue_remain_in_the_totals() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q", "other"]).with_sender("q");
    peer.send(&sender, &Message::new("m"));
    bus.http.queue("DELETE", "q", None).ok();
    peer.detached(&sender);
    let timeline = bus.http.timeline("");
    assert_eq!(timeline["counters"]["sent"], 1);
    let kinds: Vec<&str> = timeline["events"]
        .as_array()
        .expect("events")
        .iter()
        .filter(|event| event["entity"] == "q")
        .filter_map(|event| event["kind"].as_str())
        .collect();
    // The last one is the error of its sender.
    assert_eq!(kinds, ["sent", "removed", "entity-deleted", "refused"]);
}

#[test]
fn the_timeline_is_limited_and_reports_dropped_events() {
    let (bus, mut peer, sender) = Bus::with_queues(&["q"]).with_sender("q");
    let mut batch = Vec::new();
    let mut writer = servicebus_codec::Writer::new(&mut batch);
    for _ in 0..2000 {
        writer.descriptor(0x75);
        writer.binary(&Message::new("m").encode());
    }
    for _ in 0..40 {
        assert_eq!(peer.post(&sender, 0x8001_3700, &batch), Ok(()));
    }
    let timeline = bus.http.timeline("");
    let events = timeline["events"]
        .as_array()
        .expect("events are an array")
        .len();
    assert_eq!(events, 65_536);
    assert_eq!(timeline["dropped"], 80_000 - 65_536);
    assert_eq!(timeline["counters"]["sent"], 80_000);
}

#[test]
fn the_timeline_is_read_in_pages_by_position() {
    let bus = Bus::with_queues(&["q", "other"]);
    let (mut peer, link) = bus.sender("q");
    let other = peer.sender("other");
    for id in ["a", "b", "c"] {
        peer.send(&link, &Message::new(id));
        peer.send(&other, &Message::new(&format!("{id}-other")));
    }
    let page = |query: &str| {
        let timeline = bus.http.timeline(query);
        let events = timeline["events"].as_array().expect("a list").iter();
        let events = events.map(|event| {
            let id = event["message_id"].as_str().unwrap_or_default().to_owned();
            (event["position"].as_u64(), id)
        });
        (events.collect::<Vec<_>>(), timeline["next"].as_u64())
    };
    let at = |position: u64, id: &str| (Some(position), id.to_owned());
    assert_eq!(
        page("?limit=2"),
        (vec![at(1, "a"), at(2, "a-other")], Some(2))
    );
    assert_eq!(
        page("?entity=q&limit=2"),
        (vec![at(1, "a"), at(3, "b")], Some(3))
    );
    assert_eq!(page("?entity=q&after=3"), (vec![at(5, "c")], None));
    assert_eq!(
        page("?after=2&before=5"),
        (vec![at(3, "b"), at(4, "b-other")], None)
    );
    assert_eq!(page("?after=6"), (vec![], None));
    assert_eq!(
        page("?order=newest&limit=2"),
        (vec![at(5, "c"), at(6, "c-other")], Some(5))
    );
    assert_eq!(
        page("?order=newest&entity=q&before=5&limit=3"),
        (vec![at(1, "a"), at(3, "b")], None)
    );
    let all = bus.http.timeline("");
    assert_eq!(all["events"].as_array().map(Vec::len), Some(6));
    assert_eq!(
        (all["events"][0].get("position"), all.get("next")),
        (None, None)
    );
    let answer = bus.http.get("~/timeline?limit=0");
    assert_eq!(answer.error(400).0, "invalid-argument");
}

#[test]
fn an_event_of_a_page_has_the_id_of_an_earlier_message() {
    let (bus, mut peer, sender, receiver) = Bus::with_queues(&["q"]).with_links("q");
    peer.send(&sender, &Message::new("a"));
    peer.complete_one(&receiver);
    peer.settle_down();
    let events = bus.http.events("?after=2&limit=1");
    assert_eq!(events[0]["kind"], "completed");
    assert_eq!(events[0]["message_id"], "a");
}

#[test]
fn the_newest_events_of_a_message_are_found_among_advances_of_the_clock() {
    let (bus, mut peer, sender, receiver) = Bus::with_queues(&["q"]).with_links("q");
    let advance = |times| {
        for _ in 0..times {
            bus.http.advance(1.0);
        }
    };
    advance(2);
    peer.send(&sender, &Message::new("a"));
    advance(6);
    peer.complete_one(&receiver);
    peer.settle_down();
    advance(2);
    let page = |query: &str| {
        let query = format!("?order=newest&message_id={query}");
        let timeline = bus.http.timeline(&query);
        let events = timeline["events"].as_array().expect("a list");
        let kinds = kinds(events).into_iter().map(str::to_owned);
        (Vec::from_iter(kinds), timeline["next"].as_u64())
    };
    let shown = |kinds: &[&str]| Vec::from_iter(kinds.iter().copied().map(str::to_owned));
    let advanced = "clock-advanced";
    assert_eq!(
        page("a&limit=3"),
        (
            shown(&[
                "sent",
                advanced,
                "delivered",
                "completed",
                advanced,
                advanced
            ]),
            None
        )
    );
    assert_eq!(
        page("a&limit=2"),
        (
            shown(&["delivered", "completed", advanced, advanced]),
            Some(10)
        )
    );
    assert_eq!(page("a&limit=2&before=10").0[0], "sent");
    assert_eq!(page("unknown&limit=2"), (vec![], None));
}
