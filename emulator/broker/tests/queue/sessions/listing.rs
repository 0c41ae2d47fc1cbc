//! Which sessions there are.

use servicebus_broker::{ReceiveMode, SubQueue};

use crate::bus::{START, ids, message, millis, secs, sessions};

const ACTIVE: SubQueue = SubQueue::Active;

#[test]
fn sessions_with_active_messages_are_listed_by_name_in_pages() {
    let mut bus = sessions();
    for session in ["d", "b", "a", "c"] {
        bus.send_to(session, "1");
    }
    let receiver = bus.accept("b");
    let delivery = bus.receive_one(receiver);
    bus.defer(&delivery).unwrap();
    let later = message("later").session("e");
    bus.post(&later.scheduled_at(START + secs(10))).unwrap();
    bus.accept("f");
    let holder = bus.accept("a");
    bus.receive(holder, 1);
    assert_eq!(bus.list(None, 0, 100), ["a", "c", "d"]);
    assert_eq!(bus.list(None, 1, 1), ["c"]);
    assert_eq!(bus.list(None, 2, 5), ["d"]);
    assert!(bus.list(None, 3, 5).is_empty());
}

#[test]
fn or_those_whose_state_was_set_after_an_instant() {
    let mut bus = sessions();
    for session in ["c", "b", "a"] {
        let receiver = bus.accept(session);
        bus.set_state(session, Some(b"x")).unwrap();
        bus.close(receiver);
        bus.advance(secs(10));
    }
    bus.send_to("d", "1");
    assert_eq!(bus.list(Some(START - millis(1)), 0, 100), ["a", "b", "c"]);
    assert_eq!(bus.list(Some(START), 0, 100), ["a", "b"], "after, not at");
    assert_eq!(bus.list(Some(START + secs(10)), 0, 100), ["a"]);
    bus.accept("a");
    bus.set_state("a", None).unwrap();
    assert!(bus.list(Some(START + secs(10)), 0, 100).is_empty());
}

#[test]
fn looking_shows_all_there_is_to_know_and_changes_nothing() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3"]);
    let receiver = bus.accept("a");
    let taken = bus.receive(receiver, 2);
    bus.defer(&taken[0]).unwrap();
    bus.set_state("a", Some(b"x")).unwrap();
    bus.send_to("b", "4");
    let seen = bus.operate(|entity, _| {
        let seen = entity.snapshot_sessions().map(|session| {
            (
                (session.active, session.locked, session.deferred),
                (session.holder, session.locked_until),
                session.state.cloned(),
            )
        });
        seen.collect::<Vec<_>>()
    });
    let held = (Some(receiver.id), Some(START + secs(60)));
    assert_eq!(seen[0], ((2, 1, 1), held, Some("x".into())));
    assert_eq!(seen[1], ((1, 0, 0), (None, None), None));
}

#[test]
fn one_session_is_peeked_locked_messages_included() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3"]);
    bus.send_to("b", "4");
    let later = message("5").session("a");
    bus.post(&later.scheduled_at(START + secs(10))).unwrap();
    let receiver = bus.accept("a");
    let taken = bus.receive(receiver, 2);
    bus.defer(&taken[1]).unwrap();
    assert_eq!(bus.peek_session(ACTIVE, "a", 1, 100), ["1", "2", "3", "5"]);
    assert_eq!(bus.peek_session(ACTIVE, "a", 2, 2), ["2", "3"]);
    assert_eq!(bus.peek_session(ACTIVE, "b", 1, 100), ["4"]);
    assert!(bus.peek_session(ACTIVE, "c", 1, 100).is_empty());
    assert_eq!(bus.queued(), ["1", "2", "3", "4", "5"]);
}

#[test]
fn one_session_is_cleared_of_what_is_ready() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3", "4"]);
    bus.send_to("b", "5");
    let receiver = bus.accept("a");
    bus.receive(receiver, 1);
    assert_eq!(bus.delete_of_session(ACTIVE, "a", 2), 2);
    assert_eq!(bus.queued(), ["1", "4", "5"]);
    assert_eq!(bus.delete_of_session(ACTIVE, "c", 2), 0);
    assert_eq!(
        bus.delete_messages(10, START + secs(1)),
        2,
        "of all sessions"
    );
    assert_eq!(bus.queued(), ["1"]);
    assert_eq!(bus.known_sessions(), ["a"]);
}

#[test]
fn session_ids_select_messages_where_there_are_no_sessions_too() {
    let mut bus = crate::bus::bus();
    bus.send_to("a", "1");
    bus.send_to("b", "2");
    bus.send("3");
    assert_eq!(bus.peek_session(ACTIVE, "b", 1, 10), ["2"]);
    assert_eq!(bus.delete_of_session(ACTIVE, "a", 10), 1);
    assert_eq!(bus.queued(), ["2", "3"]);
    let receiver = bus.open(ACTIVE, ReceiveMode::PeekLock);
    assert_eq!(ids(&bus.receive(receiver, 2)), ["2", "3"]);
}

#[test]
fn a_session_with_state_alone_is_listed_until_it_is_cleared() {
    let mut bus = sessions();
    bus.accept("a");
    bus.set_state("a", Some(b"x")).unwrap();
    bus.send_to("b", "1");
    assert_eq!(bus.list(None, 0, 100), ["a", "b"]);
    // An empty one clears it (spec/observed.md 15).
    bus.set_state("a", Some(b"")).unwrap();
    assert_eq!(bus.list(None, 0, 100), ["b"]);
}
