use serde_json::json;

use super::*;

fn event(seconds: u64, entity: &str, number: i64, kind: EventKind) -> Event {
    let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000 + seconds);
    let mut event = Event::new(at, seconds as f64, kind);
    event.entity = Some(entity.to_owned());
    event.sequence_number = Some(number);
    event
}

fn record(events: Vec<Event>, counters: serde_json::Value) -> Record {
    let timeline = |counters| Timeline {
        counters: serde_json::from_value(counters).unwrap(),
        ..Timeline::default()
    };
    let whole = Timeline {
        events,
        messages: Some(vec!["first".to_owned()]),
        ..Timeline::default()
    };
    let counted = BTreeMap::from([("orders".to_owned(), timeline(counters))]);
    Record { whole, counted }
}

fn query(entity: &str) -> TimelineQuery<'_> {
    TimelineQuery {
        entity,
        sequence_number: None,
        messages: true,
    }
}

fn kinds(timeline: &Timeline) -> Vec<String> {
    let events = timeline.events.iter();
    events.map(|event| event.kind.name()).collect()
}

#[test]
fn later_events_follow_earlier_ones() {
    let earlier = RecordHistory::default();
    let mut sent = event(2, "orders", 1, EventKind::Sent);
    sent.message = Some(0);
    let other = event(2, "others", 1, EventKind::Sent);
    earlier.add(record(vec![sent, other], json!({"sent": 1})));
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_003);
    earlier.add_restart(Termination::Stop, now);

    // The clock of a record begins with its emulator.
    let mut later = event(5, "Orders/$deadletterqueue", 1, EventKind::Completed);
    (later.offset, later.message) = (0.5, Some(0));
    let answer = Timeline {
        events: vec![later],
        counters: BTreeMap::from([("completed".to_owned(), 1)]),
        messages: Some(vec!["second".to_owned()]),
        ..Timeline::default()
    };
    let whole = earlier.prepend_to(query("orders"), answer);
    assert_eq!(kinds(&whole), ["sent", "restarted", "completed"]);
    let offsets = whole.events.iter().map(|event| event.offset);
    assert_eq!(Vec::from_iter(offsets), [2.0, 3.0, 5.0]);
    assert_eq!(
        whole.counters,
        BTreeMap::from([("completed".to_owned(), 1), ("sent".to_owned(), 1)])
    );
    let messages = whole.messages.unwrap();
    let of = |event: &Event| Some(messages[event.message?].clone());
    let of = Vec::from_iter(whole.events.iter().map(of));
    assert_eq!(
        of,
        [Some("first".to_owned()), None, Some("second".to_owned())]
    );
}

#[test]
fn events_undone_by_a_crash_are_marked_and_not_counted() {
    let earlier = RecordHistory::default();
    let all = [
        (1, EventKind::Sent),
        (2, EventKind::Sent),
        (3, EventKind::Sent),
        (1, EventKind::Completed),
        (2, EventKind::Completed),
        (4, EventKind::Sent),
    ];
    let events = all.map(|(number, kind)| event(1, "orders", number, kind));
    earlier.add(record(events.to_vec(), json!({"sent": 4, "completed": 2})));
    earlier.add_restart(
        Termination::Crash,
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_003),
    );
    // The crash lost the completion of the second and the arrival of the third; the fourth has been completed since.
    let present = BTreeSet::from([("orders".to_owned(), 2)]);
    earlier.mark_undone(&present, &[event(4, "Orders", 4, EventKind::Completed)]);

    let whole = earlier.prepend_to(query("orders"), Timeline::default());
    let expected = [
        "sent",
        "sent",
        "undone-sent",
        "completed",
        "undone-completed",
        "sent",
        "crashed",
    ];
    assert_eq!(kinds(&whole), expected);
    assert_eq!(whole.counters["sent"], 3);
    assert_eq!(whole.counters["completed"], 1);
}
