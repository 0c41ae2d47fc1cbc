//! The lock of a session ends while its holder is attached; the holder detaches; another receiver takes a session over
//! (spec/newest.md 1).

use servicebus_broker::{
    AcceptSessionError, AcceptedSession, ClientId, Delivery, Effect, Entity, EntityStatus,
    EventKind, ReceiveDeferredError, ReceiveMode, RenewError, SequenceNumber, SessionAccess,
    SessionError, SettleError, SubQueue,
};
use uuid::Uuid;

use crate::bus::{Bus, Receiver, START, ids, message, millis, name, rules, secs, sessions};

#[test]
fn an_expired_session_lock_counts_every_delivery_as_failed() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2", "3"]);
    let receiver = bus.accept_with_credit("a", 3);
    let taken = bus.take_up_to(receiver, 2);
    bus.effects.clear();
    bus.advance(secs(60) - millis(1));
    assert!(bus.held(receiver).is_some());
    bus.advance(millis(1));
    assert_eq!(bus.lost(), [receiver.id]);
    assert_eq!(bus.held(receiver), None);
    assert_eq!(bus.reserved(receiver), 0);
    for delivery in &taken {
        assert_eq!(bus.complete(delivery), Err(SettleError::SessionLockLost));
    }
    let expired = bus.history().into_iter().filter(|(at, kind)| {
        let is_expiry = matches!(
            kind,
            EventKind::SessionLockExpired { .. } | EventKind::LockExpired { delivery_count: 1 }
        );
        is_expiry && *at == START + secs(60)
    });
    assert_eq!(expired.count(), 3);
}

#[test]
fn an_expired_session_requeues_many_locked_messages_in_steps() {
    const LOCKED: usize = 10_000;
    const MORE: usize = 10;
    let mut bus = sessions();
    bus.unchecked = true;
    for id in 0..LOCKED + MORE {
        bus.send_to("a", &id.to_string());
    }
    let receiver = bus.accept_with_credit("a", (LOCKED + MORE) as u32);
    assert_eq!(bus.take_up_to(receiver, LOCKED).len(), LOCKED);
    bus.pass(secs(60));
    let step = bus.operate(Entity::handle_timeout);
    assert!(step < LOCKED / 2, "{step} at once");
    assert_eq!(bus.counts().locked, LOCKED - step);
    assert_eq!(bus.take(receiver).len(), 0, "nothing is reserved any more");
    let lost = SessionError::LockLost(name("a"));
    assert_eq!(bus.renew_session("a"), Err(lost), "its time is over");
    bus.advance(secs(0));
    assert_eq!((bus.lost(), bus.held(receiver)), (vec![receiver.id], None));
    assert_eq!(bus.counts().locked, 0);
    bus.entity().check_invariants();
    let ended = bus.history().into_iter();
    let ended = ended.filter(|(at, kind)| {
        *at == START + secs(60) && matches!(kind, EventKind::LockExpired { delivery_count: 1 })
    });
    assert_eq!(ended.count(), LOCKED);
}

#[test]
fn a_receiver_without_its_session_lock_gets_no_messages() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept_with_credit("a", 1);
    bus.advance(secs(60));
    bus.credit(receiver, 10);
    assert_eq!(bus.reserved(receiver), 0);
    let (next, session) = bus.accept_next();
    assert_eq!(session.as_deref(), Some("a"));
    assert_eq!(ids(&bus.receive(next, 1)), ["1"]);
    bus.close(receiver);
    assert!(bus.held(next).is_some());
}

#[test]
fn a_renewed_session_lock_lasts_from_its_renewal() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept("a");
    bus.receive(receiver, 1);
    bus.advance(secs(50));
    assert_eq!(bus.renew_session("a"), Ok(START + secs(110)));
    bus.advance(secs(59));
    assert_eq!(bus.held(receiver), Some(("a".into(), START + secs(110))));
    bus.advance(secs(1));
    assert_eq!(bus.held(receiver), None);
    let lost = SessionError::LockLost(name("a"));
    assert_eq!(bus.renew_session("a"), Err(lost));
}

#[test]
fn only_the_session_holder_renews_the_session_lock() {
    let mut bus = sessions();
    bus.accept("a");
    bus.client = ClientId(8);
    let lost = SessionError::LockLost(name("a"));
    assert_eq!(bus.renew_session("a"), Err(lost.clone()));
    assert_eq!(bus.state("a"), Err(lost.clone()));
    assert_eq!(bus.set_state("a", None), Err(lost));
    let unknown = SessionError::LockLost(name("b"));
    assert_eq!(bus.renew_session("b"), Err(unknown));
}

#[test]
fn a_message_lock_in_a_session_cannot_be_renewed() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept("a");
    let token = bus.receive_one(receiver).token;
    assert_eq!(bus.renew(&[token]), Err(RenewError::UnderSession(token)));
    bus.advance(secs(60));
    assert_eq!(bus.renew(&[token]), Err(RenewError::LockLost(token)));
}

#[test]
fn failed_deliveries_of_lost_sessions_are_limited() {
    let mut bus = rules().sessions().max_delivery_count(1).bus();
    bus.send_all_to("a", &["1", "2"]);
    let receiver = bus.accept("a");
    bus.receive(receiver, 1);
    bus.advance(secs(60));
    assert_eq!(bus.dead_letters(), ["1"]);
    assert_eq!(bus.queued(), ["2"]);
}

#[test]
fn a_message_expired_under_a_session_lock_leaves_when_it_ends() {
    let mut bus = rules().sessions().dead_lettering_on_expiration().bus();
    let short = message("1").session("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    let receiver = bus.accept("a");
    bus.receive(receiver, 1);
    bus.advance(secs(60));
    let (_, reason, _) = bus.the_dead_letter();
    assert_eq!(reason.as_deref(), Some("TTLExpiredException"));
    assert!(bus.known_sessions().is_empty());
}

#[test]
fn a_session_lock_can_be_ended_on_request() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept("a");
    bus.receive(receiver, 1);
    assert!(bus.lose_session("a"));
    assert_eq!(bus.lost(), [receiver.id]);
    assert!(!bus.lose_session("a"), "it is free now");
    let next = bus.accept("a");
    assert_eq!(bus.receive_one(next).broker_properties.delivery_count, 1);
}

#[test]
fn an_update_ends_session_locks_unless_only_the_status_changes() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept("a");
    let delivery = bus.receive_one(receiver);
    bus.update(|queue| queue.status = EntityStatus::ReceiveDisabled);
    assert_eq!(bus.renew_session("a"), Err(SessionError::Disabled));
    assert_eq!(bus.complete(&delivery), Err(SettleError::Disabled));
    bus.update(|queue| queue.status = EntityStatus::Active);
    assert!(bus.lost().is_empty());
    assert!(bus.renew_session("a").is_ok());
    bus.update(|queue| queue.max_delivery_count = 5);
    assert_eq!(bus.lost(), [receiver.id]);
    let again = bus.accept("a");
    assert_eq!(bus.receive_one(again).broker_properties.delivery_count, 1);
}

#[test]
fn a_session_receiver_gets_messages_once_receiving_is_enabled() {
    let mut bus = sessions();
    let receiver = bus.accept_with_credit("a", 2);
    bus.update(|queue| queue.status = EntityStatus::ReceiveDisabled);
    bus.send_all_to("a", &["1", "2", "3"]);
    assert_eq!(bus.reserved(receiver), 0);
    bus.update(|queue| queue.status = EntityStatus::Active);
    assert_eq!(ids(&bus.take(receiver)), ["1", "2"]);
}

#[test]
fn a_reset_removes_sessions_and_their_states() {
    let mut bus = sessions();
    bus.send_to("a", "1");
    let receiver = bus.accept("a");
    bus.receive(receiver, 1);
    bus.set_state("a", Some(b"kept")).unwrap();
    let (_, next) = bus.accept_next();
    assert_eq!(next, None);
    bus.effects.clear();
    bus.reset();
    assert_eq!(bus.lost(), [receiver.id]);
    assert!(bus.known_sessions().is_empty());
    assert_eq!(bus.counts().size, 0);
    bus.send_to("b", "2");
    assert_eq!(bus.woken().len(), 1, "who waited goes on waiting");
}

#[test]
fn a_detached_session_receiver_unlocks_without_counting_deliveries() {
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
fn a_message_expired_under_a_session_lock_leaves_on_detach() {
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
fn a_released_session_without_messages_and_state_is_removed() {
    let mut bus = sessions();
    let receiver = bus.accept("a");
    assert_eq!(bus.known_sessions(), ["a"]);
    bus.close(receiver);
    assert!(bus.known_sessions().is_empty());
}

#[test]
fn sessions_are_removed_once_receivers_completed_their_messages() {
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
fn after_a_takeover_the_new_holder_settles_by_the_same_lock_tokens() {
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
fn a_takeover_moves_reserved_messages_to_the_new_holder() {
    let mut bus = sessions();
    let (first, token) = open(&mut bus);
    bus.credit(first, 5);
    bus.send_all_to("a", &["1", "2"]);
    let second = take_over(&mut bus, token).unwrap();
    assert!(bus.take(first).is_empty());
    assert_eq!(ids(&bus.receive(second, 5)), ["1", "2"]);
}

#[test]
fn the_session_lock_expires_after_a_takeover() {
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
fn the_next_available_session_can_be_accepted_as_non_exclusive() {
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

/// A session whose lock has ended after it received one message and deferred another: behind so many deadlines that the end
/// of the lock is not among those that the next operation runs.
fn ended_behind_many_deadlines() -> (Bus, Delivery, SequenceNumber) {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    let receiver = bus.accept("a");
    let deferred = bus.receive_one(receiver);
    bus.defer(&deferred).unwrap();
    let held = bus.receive_one(receiver);
    for _ in 0..3_000 {
        let later = message("later").session("b");
        bus.post(&later.scheduled_at(START + secs(1))).unwrap();
    }
    bus.pass(secs(60));
    (bus, held, deferred.broker_properties.sequence_number)
}

#[test]
fn the_lock_has_ended_even_behind_many_deadlines() {
    let (mut bus, held, _) = ended_behind_many_deadlines();
    assert_eq!(bus.complete(&held), Err(SettleError::SessionLockLost));
    let (mut bus, _, deferred) = ended_behind_many_deadlines();
    let received = bus.receive_deferred_of(Some("a"), &[deferred]);
    assert_eq!(received.unwrap_err(), ReceiveDeferredError::SessionLockLost);
    let lost = || SessionError::LockLost(name("a"));
    let (mut bus, ..) = ended_behind_many_deadlines();
    assert_eq!(bus.state("a"), Err(lost()));
    let (mut bus, ..) = ended_behind_many_deadlines();
    assert_eq!(bus.set_state("a", Some(b"state")), Err(lost()));
    let (mut bus, ..) = ended_behind_many_deadlines();
    assert_eq!(bus.renew_session("a"), Err(lost()));
}
