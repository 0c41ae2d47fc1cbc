//! The list of sessions, and their states.

use servicebus_broker::{ClientId, EventKind, ReceiveMode, SessionError, SubQueue, Tier};

use crate::bus::{START, ids, message, millis, rules, secs, sessions};

const ACTIVE: SubQueue = SubQueue::Active;

#[test]
fn sessions_with_active_messages_are_listed_in_pages() {
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
fn sessions_whose_state_was_set_after_an_instant_are_listed() {
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
fn inspecting_sessions_shows_contents_and_changes_nothing() {
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
fn a_peek_in_a_session_includes_locked_messages() {
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
fn a_batch_delete_in_a_session_removes_ready_messages() {
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
fn a_batch_delete_leaves_sessions_held_by_other_clients() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    bus.send_to("b", "3");
    let holder = bus.accept("a");
    let own = std::mem::replace(&mut bus.client, ClientId(8));
    assert_eq!(bus.delete_of_session(ACTIVE, "a", 10), 0);
    assert_eq!(bus.delete_messages(10, START + secs(1)), 1);
    assert_eq!(bus.queued(), ["1", "2"]);
    bus.client = own;
    assert_eq!(bus.delete_of_session(ACTIVE, "a", 1), 1);
    bus.close(holder);
    bus.client = ClientId(8);
    assert_eq!(bus.delete_of_session(ACTIVE, "a", 10), 1);
}

#[test]
fn session_ids_select_messages_of_a_plain_queue() {
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
fn a_session_with_only_a_state_is_listed_until_it_is_cleared() {
    let mut bus = sessions();
    bus.accept("a");
    bus.set_state("a", Some(b"x")).unwrap();
    bus.send_to("b", "1");
    assert_eq!(bus.list(None, 0, 100), ["a", "b"]);
    // An empty one clears it (spec/observed.md 15).
    bus.set_state("a", Some(b"")).unwrap();
    assert_eq!(bus.list(None, 0, 100), ["b"]);
}

#[test]
fn a_session_state_is_null_before_it_is_set_and_after_clearing() {
    let mut bus = sessions();
    bus.accept("a");
    assert_eq!(bus.state("a"), Ok(None));
    bus.set_state("a", Some(b"half done")).unwrap();
    assert_eq!(bus.state("a").unwrap().unwrap(), "half done");
    for cleared in [None, Some(&b""[..])] {
        bus.set_state("a", Some(b"done")).unwrap();
        bus.set_state("a", cleared).unwrap();
        assert_eq!(bus.state("a"), Ok(None), "{cleared:?}");
    }
}

#[test]
fn a_session_state_outlives_messages_and_locks() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept("a");
    bus.set_state("a", Some(b"kept")).unwrap();
    let delivery = bus.receive_one(receiver);
    bus.complete(&delivery).unwrap();
    bus.close(receiver);
    bus.advance(secs(1_000_000));
    assert_eq!(bus.known_sessions(), ["a"]);
    let receiver = bus.accept("a");
    assert_eq!(bus.state("a").unwrap().unwrap(), "kept");
    bus.set_state("a", None).unwrap();
    bus.close(receiver);
    assert!(bus.known_sessions().is_empty());
}

#[test]
fn the_tier_limits_the_size_of_a_session_state() {
    for (tier, limit) in [(Tier::Standard, 256 * 1024), (Tier::Premium, 1024 * 1024)] {
        let mut rules = rules().sessions();
        rules.settings.tier = tier;
        let mut bus = rules.bus();
        bus.accept("a");
        bus.set_state("a", Some(&vec![1; limit])).unwrap();
        let refused = bus.set_state("a", Some(&vec![1; limit + 1]));
        let (size, limit) = (limit as u64 + 1, limit as u64);
        assert_eq!(refused, Err(SessionError::StateTooLarge { size, limit }));
        assert_eq!(bus.state("a").unwrap().unwrap().len() as u64, limit);
    }
}

#[test]
fn a_session_state_counts_towards_the_entity_size() {
    let mut bus = rules().sessions().of_one_megabyte().bus();
    let quarter = vec![1; 256 * 1024];
    for session in ["a", "b", "c", "d"] {
        bus.accept(session);
        bus.set_state(session, Some(&quarter)).unwrap();
    }
    assert_eq!(bus.counts().size, 1024 * 1024);
    bus.accept("e");
    let refused = bus.set_state("e", Some(b"x")).unwrap_err();
    assert!(matches!(refused, SessionError::Full(_)));
    assert!(
        refused
            .to_string()
            .contains("reached or exceeded for Queue: 'orders'"),
        "{refused}"
    );
    bus.set_state("a", Some(&quarter)).unwrap();
    assert!(bus.post(&message("1").session("a")).is_err());
    bus.set_state("a", None).unwrap();
    bus.send_to("a", "1");
}

#[test]
fn the_timeline_shows_when_a_session_state_was_set() {
    let mut bus = sessions();
    bus.accept("a");
    bus.events = servicebus_broker::Events::new();
    bus.set_state("a", Some(b"1234")).unwrap();
    bus.set_state("a", None).unwrap();
    let sizes = bus.events.iter().map(|event| {
        let EventKind::SessionStateSet { size, .. } = event.kind else {
            panic!("{event:?}");
        };
        size
    });
    assert!(sizes.eq([Some(4), None]));
}

#[test]
fn a_queue_without_sessions_has_no_state() {
    let mut bus = crate::bus::bus();
    assert_eq!(bus.state("a"), Err(SessionError::NoSessions));
    assert_eq!(bus.set_state("a", None), Err(SessionError::NoSessions));
    assert_eq!(bus.renew_session("a"), Err(SessionError::NoSessions));
    assert!(!bus.lose_session("a"));
    assert!(bus.list(None, 0, 10).is_empty());
}
