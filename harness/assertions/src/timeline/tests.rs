//! Tests of parsing and formatting a recorded timeline.

use std::time::Duration;

use super::*;

const ANSWER: &str = r#"{
  "dropped": 0,
  "counters": { "sent": 1, "delivered": 2, "completed": 0 },
  "events": [
    {"at":"2024-01-01T00:00:00Z","offset":0,"kind":"sent","entity":"orders","sequence_number":1,
     "message_id":"o-17","client":"arrange","delivery_count":null,"locked_until":null,"reason":null,
     "detail":"8 bytes, time to live 30 s"},
    {"at":"2024-01-01T00:00:00.004Z","offset":0.004,"kind":"delivered","entity":"orders","sequence_number":1,
     "message_id":"o-17","client":"worker-1","delivery_count":1,"locked_until":"2024-01-01T00:01:00.004Z"},
    {"at":"2024-01-01T00:00:00.006Z","offset":0.006,"kind":"abandoned","entity":"orders","sequence_number":1,
     "message_id":"o-17","client":"worker-1"},
    {"at":"2024-01-01T00:00:00.007Z","offset":0.007,"kind":"sent","entity":"orders","message_id":"o-18"},
    {"at":"2024-01-01T00:00:01Z","offset":1,"kind":"clock-advanced","detail":"61 s"},
    {"at":"2024-01-01T00:01:00.007Z","offset":60.007,"kind":"lock-expired","entity":"orders",
     "message_id":"o-17","delivery_count":2},
    {"at":"2024-01-01T00:01:00.007Z","offset":60.007,"kind":"dead-lettered","entity":"orders",
     "message_id":"o-17","reason":"TTLExpiredException","detail":"its 30 s had passed under the lock"},
    {"at":"2024-01-01T00:01:00.008Z","offset":60.008,"kind":"teleported","entity":"orders","message_id":"o-17"}
  ]
}"#;

fn timeline() -> Timeline {
    Timeline::new("orders", serde_json::from_str(ANSWER).unwrap(), Some(3))
}

#[test]
fn the_timeline_of_a_message_has_the_specified_format() {
    let message = timeline().of_message("o-17");
    assert_eq!(
        message.titled("o-17").to_string(),
        "\
timeline of o-17 in orders                                    (virtual time)
  +0.000 s  sent            by arrange, 8 bytes, time to live 30 s
  +0.004 s  delivered       to worker-1 (lock 60 s, delivery 1 of 3)
  +0.006 s  abandoned       by worker-1
            clock advanced  by the test, 61 s
  +60.007 s lock expired    delivery 2 counted
  +60.007 s dead-lettered   TTLExpiredException: its 30 s had passed under the lock
  +60.008 s teleported"
    );
}

#[test]
fn the_timeline_of_a_queue_names_its_messages() {
    let shown = timeline().to_string();
    assert!(
        shown.contains("+0.006 s  abandoned       o-17, by worker-1\n"),
        "{shown}"
    );
    assert!(
        shown.contains("+0.007 s  sent            o-18\n"),
        "{shown}"
    );
}

#[test]
fn counters_are_preferred_to_events() {
    let timeline = timeline();
    assert_eq!(timeline.count(&EventKind::Delivered), 2);
    assert_eq!(timeline.count(&EventKind::LockExpired), 1);
    assert_eq!(timeline.count(&EventKind::Completed), 0);
}

#[test]
fn an_unknown_kind_keeps_its_name() {
    let last = timeline().events.pop().unwrap();
    assert_eq!(last.kind, EventKind::Other("teleported".to_owned()));
}

#[test]
fn every_recorded_kind_has_a_name() {
    for counter in servicebus_broker::Counter::ALL {
        let kind = EventKind::named(counter.name());
        assert!(!matches!(kind, EventKind::Other(_)), "{kind:?}");
    }
}

#[test]
fn events_of_schedules_and_forwards_read_as_sentences() {
    let answer = r#"{"events": [
      {"at":"2024-01-01T00:00:00Z","offset":0,"kind":"scheduled","entity":"orders","message_id":"o-1",
       "client":"the test","detail":"71 bytes, for 2024-01-01T00:10:00.004Z"},
      {"at":"2024-01-01T00:10:00.004Z","offset":600.004,"kind":"activated","entity":"orders","message_id":"o-1",
       "detail":"as number 2"},
      {"at":"2024-01-01T00:10:00.004Z","offset":600.004,"kind":"forwarded","entity":"orders","message_id":"o-1",
       "detail":"audit"},
      {"at":"2024-01-01T00:10:01Z","offset":601,"kind":"transfer-dead-lettered","entity":"orders",
       "message_id":"o-1","reason":"QuotaExceededException"},
      {"at":"2024-01-01T00:10:01Z","offset":601,"kind":"lock-renewed","entity":"orders","message_id":"o-1",
       "client":"worker-1","locked_until":"2024-01-01T00:11:01Z"}
    ]}"#;
    let timeline = Timeline::new("orders", serde_json::from_str(answer).unwrap(), Some(3));
    assert_eq!(
        timeline.titled("o-1").to_string(),
        "\
timeline of o-1 in orders
  +0.000 s   scheduled              by the test, 71 bytes, due in 600 s
  +600.004 s activated              as number 2
  +600.004 s forwarded              to audit
  +601.000 s transfer-dead-lettered QuotaExceededException
  +601.000 s lock renewed           by worker-1 (lock 60 s)"
    );
    let due = timeline.events[0].scheduled_for().unwrap();
    let wait = due.duration_since(timeline.events[0].at).unwrap();
    assert_eq!(wait, Duration::from_millis(600_004));
    assert_eq!(timeline.events[1].scheduled_for(), None);
}

#[test]
fn an_event_is_formatted_as_a_line() {
    let lines = Vec::from_iter(timeline().events()[3..6].iter().map(line));
    assert_eq!(
        lines,
        [
            "  +0.007 s  sent            o-18, in orders",
            "            clock advanced  by the test, 61 s",
            "  +60.007 s lock expired    o-17, delivery 2 counted, in orders",
        ]
    );
}

#[test]
fn a_matched_event_has_the_message_id() {
    let event = |kind: &str, number: u64, id: &str| {
        format!(
            r#"{{"at":"2026-01-01T00:00:00Z","kind":"{kind}","entity":"prices/Subscriptions/eu","sequence_number":{number},"message_id":{id}}}"#
        )
    };
    let events = [
        event("matched", 1, "null"),
        event("sent", 1, r#""p-1""#),
        event("matched", 2, "null"),
    ];
    let answer = format!(r#"{{"events":[{}]}}"#, events.join(","));
    let answer = serde_json::from_str(&answer).unwrap();
    let timeline = Timeline::new("prices/Subscriptions/eu", answer, None);
    let ids = timeline.events().iter();
    let ids = Vec::from_iter(ids.map(|event| event.message_id.as_deref()));
    assert_eq!(ids, [Some("p-1"), Some("p-1"), None]);
}

#[test]
fn deliveries_of_dead_letters_have_no_limit() {
    let answer = r#"{"dropped":0,"events":[{"at":"2024-01-01T00:00:00Z","kind":"delivered",
        "entity":"orders/$DeadLetterQueue","message_id":"o-17","delivery_count":4}]}"#;
    let answer = serde_json::from_str(answer).unwrap();
    let shown = Timeline::new("orders", answer, Some(3)).to_string();
    assert!(shown.contains("(delivery 4)"), "{shown}");
}

#[test]
fn a_long_kind_is_separated_from_the_summary() {
    let event = r#"{"at":"2024-01-01T00:00:00Z","offset":0.021,"kind":"session-accepted","entity":"carts","session":"s-1"}"#;
    let shown = line(&serde_json::from_str(event).unwrap());
    assert_eq!(shown, "  +0.021 s  session accepted s-1, in carts");
}
