//! What an application keeps with a session.

use servicebus_broker::{EventKind, SessionError, Tier};

use crate::bus::{rules, secs, sessions};

#[test]
fn it_is_null_until_it_is_set_and_again_when_it_is_cleared() {
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
fn it_outlives_messages_holders_and_time() {
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
fn it_may_be_as_large_as_the_tier_allows() {
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
fn it_counts_towards_the_size_of_the_entity() {
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
    assert!(bus.post(&crate::bus::message("1").session("a")).is_err());
    bus.set_state("a", None).unwrap();
    bus.send_to("a", "1");
}

#[test]
fn a_timeline_tells_when_it_was_set() {
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
