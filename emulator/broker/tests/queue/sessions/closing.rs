//! Who holds a session goes.

use servicebus_broker::SettleError;

use crate::bus::{ids, message, rules, secs, sessions};

#[test]
fn the_session_is_free_at_once_and_nothing_counts_as_delivered() {
    for mut bus in [sessions(), rules().sessions().release_on_detach().bus()] {
        bus.send_all_to("a", &["1", "2", "3"]);
        let receiver = bus.accept_with_credit("a", 3);
        let taken = bus.take_up_to(receiver, 2);
        bus.close(receiver);
        assert_eq!(bus.counts().locked, 0);
        let next = bus.accept("a");
        let again = bus.receive(next, 5);
        assert_eq!(ids(&again), ["1", "2", "3"]);
        assert!(
            again
                .iter()
                .all(|d| d.broker_properties.delivery_count == 0)
        );
        assert!(bus.lost().is_empty(), "who goes has lost nothing");
        let late = bus.complete(&taken[0]);
        assert_eq!(late, Err(SettleError::SessionLockLost));
    }
}

#[test]
fn what_expired_while_it_was_locked_expires() {
    let mut bus = sessions();
    let short = message("short").session("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    bus.send_to("a", "long");
    let receiver = bus.accept("a");
    bus.receive(receiver, 2);
    bus.advance(secs(20));
    assert_eq!(bus.queued(), ["short", "long"]);
    bus.close(receiver);
    assert_eq!(bus.queued(), ["long"]);
}

#[test]
fn a_session_without_messages_and_state_is_forgotten() {
    let mut bus = sessions();
    let receiver = bus.accept("a");
    assert_eq!(bus.known_sessions(), ["a"]);
    bus.close(receiver);
    assert!(bus.known_sessions().is_empty());
}

#[test]
fn those_who_take_turns_leave_no_session_behind() {
    let mut bus = sessions();
    for round in 0..3 {
        for session in ["a", "b", "c"] {
            bus.send_to(session, &round.to_string());
        }
    }
    let mut served = Vec::new();
    while let (receiver, Some(session)) = bus.accept_next() {
        let delivery = bus.receive_one(receiver);
        bus.complete(&delivery).unwrap();
        bus.close(receiver);
        served.push(session + &delivery.message.id());
    }
    let expected = ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"];
    assert_eq!(served, expected, "the oldest message goes first");
    assert!(bus.known_sessions().is_empty());
}
