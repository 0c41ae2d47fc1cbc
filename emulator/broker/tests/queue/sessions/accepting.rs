//! One receiver holds a session, and no other does.
//!
//! Receivers wait for the next session.

use servicebus_broker::{
    AcceptSessionError, Entity, EntityStatus, EventKind, ReceiveMode, SubQueue,
};

use crate::bus::{START, ids, name, rules, secs, sessions};

#[test]
fn a_named_session_without_messages_is_accepted() {
    let mut bus = sessions();
    let receiver = bus.accept("a");
    assert_eq!(bus.held(receiver), Some(("a".into(), START + secs(60))));
    bus.credit(receiver, 1);
    assert!(bus.take(receiver).is_empty());
    bus.send_to("b", "other");
    bus.send_to("a", "own");
    assert_eq!(bus.woken(), [receiver.id]);
    assert_eq!(ids(&bus.take(receiver)), ["own"]);
}

#[test]
fn a_session_receiver_gets_only_messages_of_its_session() {
    let mut bus = sessions();
    bus.send_all_to("a", &["a1", "a2"]);
    bus.send_all_to("b", &["b1", "b2"]);
    bus.send_all_to("a", &["a3"]);
    let (a, b) = (bus.accept("a"), bus.accept("b"));
    assert_eq!(ids(&bus.receive(b, 10)), ["b1", "b2"]);
    assert_eq!(ids(&bus.receive(a, 10)), ["a1", "a2", "a3"]);
}

#[test]
fn a_locked_session_cannot_be_accepted() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    bus.accept("a");
    let refused = bus.try_accept(Some("a"), ReceiveMode::PeekLock);
    let error = refused.unwrap_err();
    assert_eq!(error, AcceptSessionError::Locked(name("a")));
    let text =
        "The requested session 'a' cannot be accepted. It may be locked by another receiver.";
    assert_eq!(error.to_string(), text);
}

#[test]
fn session_ids_are_compared_case_sensitively() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept("A");
    assert!(bus.receive(receiver, 1).is_empty());
    assert_eq!(bus.known_sessions(), ["A", "a"]);
}

#[test]
fn the_next_session_is_the_one_with_the_oldest_message() {
    let mut bus = sessions();
    bus.send_all_to("c", &["1"]);
    bus.send_all_to("a", &["2", "3"]);
    bus.send_all_to("b", &["4"]);
    bus.send_all_to("c", &["5"]);
    let (_, first) = bus.accept_next();
    let (_, second) = bus.accept_next();
    let (_, third) = bus.accept_next();
    let (_, fourth) = bus.accept_next();
    let granted = [first, second, third, fourth];
    let expected = [Some("c"), Some("a"), Some("b"), None];
    assert_eq!(granted.each_ref().map(Option::as_deref), expected);
    assert!(bus.woken().is_empty(), "who asks right now is not woken");
}

#[test]
fn deferred_and_scheduled_messages_do_not_make_a_session_available() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept("a");
    let delivery = bus.receive_one(receiver);
    bus.defer(&delivery).unwrap();
    bus.close(receiver);
    let later = crate::bus::message("2").session("b");
    bus.post(&later.scheduled_at(START + secs(500))).unwrap();
    assert_eq!(bus.accept_next().1, None);
}

#[test]
fn messages_are_locked_for_as_long_as_the_session() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    let receiver = bus.accept("a");
    bus.advance(secs(20));
    let delivery = bus.receive_one(receiver);
    let (_, until) = delivery.broker_properties.lock.unwrap();
    assert_eq!(until, START + secs(60));
    assert_eq!(bus.next_deadline(), Some(START + secs(60)));
    bus.renew_session("a").unwrap();
    bus.advance(secs(50));
    assert_eq!(bus.complete(&delivery), Ok(()), "renewed with its session");
}

#[test]
fn receive_and_delete_works_within_a_session() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    let accepted = bus.try_accept(Some("a"), ReceiveMode::ReceiveAndDelete);
    let (receiver, _) = accepted.unwrap();
    let deliveries = bus.receive(receiver, 1);
    assert_eq!(ids(&deliveries), ["1"]);
    assert_eq!(deliveries[0].broker_properties.lock, None);
    assert_eq!(bus.queued(), ["2"]);
}

#[test]
fn a_timeline_shows_the_holder_of_a_session() {
    let mut bus = sessions();
    let receiver = bus.accept("a");
    bus.close(receiver);
    let events: Vec<_> = bus.events.iter().copied().collect();
    let EventKind::SessionAccepted {
        session,
        locked_until,
    } = events[0].kind
    else {
        panic!("{events:?}");
    };
    assert_eq!(bus.events.read(session), "a");
    assert_eq!(locked_until, START + secs(60));
    assert_eq!(
        (events[0].client, events[0].store),
        (bus.client, SubQueue::Active)
    );
    assert!(matches!(events[1].kind, EventKind::SessionReleased { .. }));
    assert_eq!(events.len(), 2);
}

#[test]
fn a_waiting_receiver_is_granted_a_session_when_a_message_arrives() {
    let mut bus = sessions();
    let (receiver, session) = bus.accept_next();
    assert_eq!(session, None);
    assert_eq!(bus.held(receiver), None);
    bus.advance(secs(10));
    bus.send_to("a", "1");
    assert_eq!(bus.woken(), [receiver.id]);
    assert_eq!(bus.held(receiver), Some(("a".into(), START + secs(70))));
    assert_eq!(ids(&bus.receive(receiver, 5)), ["1"]);
}

#[test]
fn waiting_receivers_are_served_in_order_of_arrival() {
    let mut bus = sessions();
    let waiting: Vec<_> = (0..3).map(|_| bus.accept_next().0).collect();
    for session in ["x", "y", "z"] {
        bus.send_to(session, "1");
    }
    let held = waiting
        .iter()
        .map(|&receiver| bus.held(receiver).unwrap().0);
    let held: Vec<_> = held.collect();
    assert_eq!(held, ["x", "y", "z"]);
    let ids: Vec<_> = waiting.iter().map(|receiver| receiver.id).collect();
    assert_eq!(bus.woken(), ids);
}

#[test]
fn a_detached_receiver_is_not_granted_a_session() {
    let mut bus = sessions();
    let (gone, _) = bus.accept_next();
    let (next, _) = bus.accept_next();
    bus.close(gone);
    bus.send_to("a", "1");
    assert_eq!(bus.held(next).unwrap().0, "a");
    assert_eq!(bus.woken(), [next.id]);
}

#[test]
fn a_released_session_goes_to_the_first_waiting_receiver() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    let (holder, _) = bus.accept_next();
    let (waiting, _) = bus.accept_next();
    let delivery = bus.receive_one(holder);
    bus.complete(&delivery).unwrap();
    bus.close(holder);
    assert_eq!(bus.held(waiting).unwrap().0, "a");
    assert_eq!(ids(&bus.receive(waiting, 5)), ["2"]);
}

#[test]
fn a_session_granted_to_a_detached_receiver_goes_to_the_next() {
    let mut bus = sessions();
    let (first, _) = bus.accept_next();
    let (second, _) = bus.accept_next();
    bus.send_to("a", "1");
    bus.close(first);
    assert_eq!(bus.held(second).unwrap().0, "a");
}

#[test]
fn credit_granted_before_the_session_applies_to_it() {
    let mut bus = sessions();
    let (receiver, _) = bus.accept_next();
    bus.credit(receiver, 2);
    bus.send_to("a", "1");
    assert_eq!(bus.woken(), [receiver.id], "told once of both");
    assert_eq!(ids(&bus.take(receiver)), ["1"]);
    bus.send_to("a", "2");
    assert_eq!(bus.woken(), [receiver.id]);
}

#[test]
fn no_session_is_granted_while_receiving_is_disabled() {
    let mut bus = sessions();
    let (receiver, _) = bus.accept_next();
    bus.update(|queue| queue.status = EntityStatus::ReceiveDisabled);
    bus.send_to("a", "1");
    assert_eq!(bus.held(receiver), None);
    bus.update(|queue| queue.status = EntityStatus::Active);
    assert_eq!(bus.held(receiver).unwrap().0, "a");
}

#[test]
fn a_session_lock_begins_when_it_is_granted() {
    let mut bus = sessions();
    let later = crate::bus::message("1").session("a");
    bus.post(&later.scheduled_at(START + secs(10))).unwrap();
    let (receiver, _) = bus.accept_next();
    bus.pass(secs(500));
    bus.operate(Entity::handle_timeout);
    assert_eq!(bus.held(receiver), Some(("a".into(), START + secs(560))));
}

#[test]
fn a_receiver_waiting_for_a_session_keeps_an_idle_queue() {
    let mut bus = rules().sessions().auto_delete_on_idle(secs(300)).bus();
    let (receiver, _) = bus.accept_next();
    assert_eq!(bus.next_deadline(), None);
    bus.close(receiver);
    assert_eq!(bus.next_deadline(), Some(START + secs(300)));
}

#[test]
fn a_session_receiver_with_credit_keeps_an_idle_queue() {
    let mut bus = rules().sessions().auto_delete_on_idle(secs(300)).bus();
    let receiver = bus.accept_with_credit("a", 1);
    assert_eq!(bus.next_deadline(), Some(START + secs(60)), "of the lock");
    bus.credit(receiver, 0);
    bus.lose_session("a");
    assert_eq!(bus.next_deadline(), Some(START + secs(300)));
}

#[test]
fn thousands_of_waiting_receivers_are_woken_in_order() {
    const COUNT: usize = 5_000;
    let mut bus = sessions();
    bus.unchecked = true;
    let waiting: Vec<_> = (0..COUNT).map(|_| bus.accept_next().0).collect();
    for session in 0..COUNT / 2 {
        bus.send_to(&session.to_string(), "1");
    }
    let ids: Vec<_> = waiting.iter().map(|receiver| receiver.id).collect();
    assert_eq!(bus.woken(), ids[..COUNT / 2]);
    for &receiver in &waiting[..COUNT / 2] {
        bus.close(receiver);
    }
    assert_eq!(bus.woken(), ids[COUNT / 2..]);
    for (session, &receiver) in waiting[COUNT / 2..].iter().enumerate() {
        assert_eq!(bus.held(receiver).unwrap().0, session.to_string());
    }
    bus.unchecked = false;
    bus.operate(Entity::handle_timeout);
}
