//! A session that another receiver may take over (spec/newest.md 1).

use servicebus_broker::{
    AcceptSessionError, AcceptedSession, Effect, ReceiveMode, SessionAccess, SubQueue,
};
use uuid::Uuid;

use crate::bus::{Bus, Receiver, START, ids, name, secs, sessions};

const LOCK: ReceiveMode = ReceiveMode::PeekLock;

fn open(bus: &mut Bus) -> (Receiver, Uuid) {
    let accepted = bus.try_accept_as(Some("a"), LOCK, SessionAccess::NonExclusive);
    let (receiver, accepted) = accepted.unwrap();
    let token = accepted.unwrap().token;
    (receiver, token.expect("what is not exclusive has a token"))
}

fn take_over(bus: &mut Bus, token: Uuid) -> Result<Receiver, AcceptSessionError> {
    let access = SessionAccess::Takeover(token);
    let (receiver, accepted) = bus.try_accept_as(Some("a"), LOCK, access)?;
    let locked_until = bus.held(receiver).expect("it holds the session").1;
    let expected = AcceptedSession {
        session: name("a"),
        locked_until,
        token: Some(token),
    };
    assert_eq!(accepted, Some(expected), "a takeover keeps the token");
    Ok(receiver)
}

#[test]
fn an_exclusive_session_has_no_token_and_cannot_be_taken_over() {
    let mut bus = sessions();
    let (_, accepted) = bus.try_accept(Some("a"), LOCK).unwrap();
    assert_eq!(accepted.unwrap().token, None);
    let refused = take_over(&mut bus, Uuid::nil());
    assert_eq!(refused, Err(AcceptSessionError::Locked(name("a"))));
}

#[test]
fn only_the_token_of_its_holder_takes_a_session_over() {
    let mut bus = sessions();
    let (first, token) = open(&mut bus);
    let locked = AcceptSessionError::Locked(name("a"));
    for access in [SessionAccess::Exclusive, SessionAccess::NonExclusive] {
        let refused = bus.try_accept_as(Some("a"), LOCK, access);
        assert_eq!(refused.unwrap_err(), locked, "{access:?}");
    }
    assert_eq!(take_over(&mut bus, Uuid::nil()).unwrap_err(), locked);
    assert!(bus.held(first).is_some());
    bus.close(first);
    assert_eq!(
        take_over(&mut bus, token).unwrap_err(),
        locked,
        "its holder is gone"
    );
    let (_, other) = open(&mut bus);
    assert_ne!(token, other);
}

#[test]
fn what_the_first_has_locked_the_second_settles_by_the_same_tokens() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3"]);
    let (first, token) = open(&mut bus);
    let held = bus.receive(first, 2);
    bus.advance(secs(30));
    let second = take_over(&mut bus, token).unwrap();
    assert!(bus.effects.contains(&Effect::SessionLost(first.id)));
    assert_eq!(bus.held(second), Some(("a".into(), START + secs(90))));
    assert_eq!(bus.held(first), None);
    bus.close(first);
    assert_eq!(
        ids(&bus.receive(second, 5)),
        ["3"],
        "nothing is redelivered"
    );
    for delivery in &held {
        bus.complete(delivery).unwrap();
    }
    bus.close(second);
    let (third, _) = open(&mut bus);
    let again = bus.receive(third, 5);
    assert_eq!(ids(&again), ["3"]);
    assert_eq!(again[0].broker_properties.delivery_count, 0);
}

#[test]
fn what_was_assigned_to_the_first_goes_to_the_second() {
    let mut bus = sessions();
    let (first, token) = open(&mut bus);
    bus.credit(first, 5);
    bus.send_all_to("a", &["1", "2"]);
    let second = take_over(&mut bus, token).unwrap();
    assert!(bus.take(first).is_empty());
    assert_eq!(ids(&bus.receive(second, 5)), ["1", "2"]);
}

#[test]
fn the_lock_of_the_second_ends_like_any_other() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1"]);
    let (first, token) = open(&mut bus);
    bus.receive(first, 1);
    let second = take_over(&mut bus, token).unwrap();
    bus.advance(secs(61));
    assert_eq!(bus.held(second), None);
    let (third, other) = open(&mut bus);
    assert_ne!(token, other);
    let again = bus.receive(third, 1);
    assert_eq!(
        again[0].broker_properties.delivery_count, 1,
        "a failed delivery"
    );
}

#[test]
fn the_next_available_session_may_be_non_exclusive_too() {
    let mut bus = sessions();
    let waits = bus.try_accept_as(None, LOCK, SessionAccess::NonExclusive);
    let (receiver, accepted) = waits.unwrap();
    assert_eq!(accepted, None);
    bus.send_to("a", "1");
    let accepted = bus.entity().accepted_session(receiver.id).unwrap();
    let second = take_over(&mut bus, accepted.token.unwrap()).unwrap();
    assert_eq!(ids(&bus.receive(second, 1)), ["1"]);
    assert_eq!(bus.peek_session(SubQueue::Active, "a", 0, 9), ["1"]);
}
