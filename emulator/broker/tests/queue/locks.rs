//! Locks: their begin, duration and end (semantics §2.4); detached receivers (semantics §2.4, decision D2), and resets.

use servicebus_broker::{EventKind, LockToken, RenewError, SettleError, SubQueue};
use uuid::Uuid;

use crate::bus::{Bus, MessageBuilder, START, bus, ids, message, millis, rules, secs};

#[test]
fn a_lock_begins_when_the_message_is_acquired() {
    let mut bus = bus().with(&["a"]);
    let receiver = bus.receiver_with_credit(1);
    bus.advance(secs(10));
    assert_eq!(bus.counts().locked, 0, "reserved is not locked");
    let taken = bus.take(receiver);
    let (_, until) = taken[0].broker_properties.lock.unwrap();
    assert_eq!(until, START + secs(10) + secs(60));
    assert_eq!(bus.counts().locked, 1);
    assert_eq!(bus.next_deadline(), Some(until));
}

#[test]
fn a_locked_message_is_not_delivered() {
    let mut bus = bus().with(&["a"]);
    let (receiver, _) = bus.receive_first();
    assert!(bus.receive(receiver, 5).is_empty());
}

#[test]
fn an_expired_lock_counts_as_delivery_and_returns_the_message() {
    let mut bus = bus().with(&["a"]);
    let (receiver, first) = bus.receive_first();
    assert_eq!(first.broker_properties.delivery_count, 0);
    bus.advance(secs(60) - millis(1));
    assert!(bus.receive(receiver, 1).is_empty(), "the lock is held");
    bus.advance(millis(1));
    let second = bus.receive_one(receiver);
    assert_eq!(second.broker_properties.delivery_count, 1);
    assert_ne!(second.token, first.token);
}

#[test]
fn a_lock_ends_at_its_instant_before_the_timer_fires() {
    let mut bus = bus().with(&["a"]);
    let (receiver, delivery) = bus.receive_first();
    bus.pass(secs(60));
    assert_eq!(bus.complete(&delivery), Err(SettleError::LockLost));
    assert_eq!(bus.queued(), ["a"]);

    let delivery = bus.receive_one(receiver);
    bus.pass(secs(60) - millis(1));
    assert_eq!(bus.complete(&delivery), Ok(()));
    assert!(bus.queued().is_empty());
}

#[test]
fn a_waiting_receiver_gets_a_message_whose_lock_expired() {
    let mut bus = bus().with(&["a"]);
    let (slow, waiting) = (bus.receiver(), bus.receiver());
    bus.receive_one(slow);
    bus.credit(waiting, 1);
    bus.woken();
    bus.advance(secs(60));
    assert_eq!(bus.woken(), [waiting.id]);
    assert_eq!(ids(&bus.take(waiting)), ["a"]);
}

#[test]
fn a_renewed_lock_lasts_from_its_renewal() {
    let mut bus = bus().with(&["a"]);
    let (_, delivery) = bus.receive_first();
    bus.advance(secs(59));
    assert_eq!(bus.renew(&[delivery.token]), Ok(vec![START + secs(119)]));
    bus.advance(secs(59));
    assert_eq!(bus.renew(&[delivery.token]), Ok(vec![START + secs(178)]));
    bus.advance(secs(59));
    assert_eq!(bus.complete(&delivery), Ok(()));
}

#[test]
fn a_renewed_lock_always_ends_later_than_before() {
    let mut bus = bus().with(&["a"]);
    let receiver = bus.receiver();
    let token = bus.receive_one(receiver).token;
    let ends = [1, 2].map(|later| START + secs(60) + millis(later));
    assert_eq!(bus.renew(&[token, token]), Ok(ends.to_vec()));
    assert_eq!(bus.renew(&[]), Ok(vec![]));
    assert_eq!(bus.next_deadline(), Some(ends[1]));
}

#[test]
fn a_request_renews_all_locks_or_none() {
    let mut bus = bus().with(&["a", "b", "c"]);
    let receiver = bus.receiver();
    let taken = bus.receive(receiver, 3);
    let tokens: Vec<_> = taken.iter().map(|delivery| delivery.token).collect();
    bus.complete(&taken[1]).unwrap();
    bus.advance(secs(30));
    assert_eq!(bus.renew(&tokens), Err(RenewError::LockLost(tokens[1])));
    bus.advance(secs(30));
    assert_eq!(bus.counts().locked, 0, "nothing was renewed");
}

#[test]
fn an_expired_lock_cannot_be_renewed() {
    let mut bus = bus().with(&["a"]);
    let receiver = bus.receiver();
    let token = bus.receive_one(receiver).token;
    bus.pass(secs(60));
    assert_eq!(bus.renew(&[token]), Err(RenewError::LockLost(token)));
}

#[test]
fn a_lock_token_of_another_sub_queue_is_unknown() {
    let mut bus = bus().with(&["a", "b"]);
    let (receiver, first) = bus.receive_first();
    bus.dead_letter(&first).unwrap();
    let second = bus.receive_one(receiver);
    let dead_letters = bus.dead_letter_receiver();
    let dead = bus.receive_one(dead_letters);
    let complete = || servicebus_broker::Outcome::Complete;
    let lost = Err(SettleError::LockLost);
    assert_eq!(
        bus.settle(SubQueue::DeadLetter, second.token, complete()),
        lost
    );
    assert_eq!(bus.settle(SubQueue::Active, dead.token, complete()), lost);
    assert_eq!(
        bus.settle(SubQueue::DeadLetter, dead.token, complete()),
        Ok(())
    );
    assert_eq!(
        bus.settle(SubQueue::Active, second.token, complete()),
        Ok(())
    );
}

#[test]
fn a_lock_token_with_one_changed_bit_is_unknown() {
    let mut bus = bus().with(&["a"]);
    let receiver = bus.receiver();
    let token = bus.receive_one(receiver).token;
    for bit in 0..128 {
        let forged = LockToken::from(Uuid::from_u128(token.uuid().as_u128() ^ (1 << bit)));
        assert_eq!(
            bus.renew(&[forged]),
            Err(RenewError::LockLost(forged)),
            "bit {bit}"
        );
    }
    assert!(bus.renew(&[token]).is_ok());
}

#[test]
fn released_reservations_go_to_other_receivers() {
    let mut bus = bus().with(&["a", "b"]);
    let gone = bus.receiver_with_credit(2);
    let events = bus.events.len();
    bus.close(gone);
    assert_eq!(bus.events.len(), events, "nothing happened");
    let receiver = bus.receiver();
    let taken = bus.receive(receiver, 2);
    assert_eq!(ids(&taken), ["a", "b"]);
    assert!(
        taken
            .iter()
            .all(|delivery| delivery.broker_properties.delivery_count == 0)
    );
}

#[test]
fn the_credit_of_a_detached_receiver_is_dropped() {
    let mut bus = bus();
    let gone = bus.receiver_with_credit(5);
    let receiver = bus.receiver_with_credit(1);
    bus.close(gone);
    bus.send("a");
    assert_eq!(ids(&bus.take(receiver)), ["a"]);
}

#[test]
fn locks_outlive_their_detached_receiver() {
    let mut bus = bus().with(&["a", "b"]);
    let gone = bus.receiver();
    let taken = bus.receive(gone, 2);
    bus.close(gone);
    let receiver = bus.receiver();
    assert!(bus.receive(receiver, 2).is_empty());
    assert_eq!(bus.complete(&taken[0]), Ok(()), "its token still settles");
    assert!(bus.renew(&[taken[1].token]).is_ok(), "and renews");
    bus.advance(secs(61));
    let again = bus.receive_one(receiver);
    assert_eq!(again.broker_properties.delivery_count, 1, "then it counts");
}

#[test]
fn locks_are_released_on_detach_if_the_namespace_is_configured_so() {
    let mut bus = rules()
        .release_on_detach()
        .max_delivery_count(1)
        .bus()
        .with(&["a", "b", "c"]);
    let (gone, stays) = (bus.receiver(), bus.receiver());
    let taken = bus.receive(gone, 2);
    let kept = bus.receive_one(stays);
    bus.close(gone);
    assert_eq!(bus.complete(&taken[0]), Err(SettleError::LockLost));
    assert_eq!(bus.complete(&kept), Ok(()), "those of others stay");
    let again = bus.receive(stays, 5);
    assert_eq!(ids(&again), ["a", "b"], "at their old places");
    assert!(
        again
            .iter()
            .all(|delivery| delivery.broker_properties.delivery_count == 0)
    );
}

#[test]
fn only_held_locks_are_released_on_detach() {
    let mut bus =
        rules()
            .release_on_detach()
            .bus()
            .with(&["completed", "abandoned", "expired", "renewed"]);
    let gone = bus.receiver();
    let taken = bus.receive(gone, 4);
    bus.complete(&taken[0]).unwrap();
    bus.abandon(&taken[1]).unwrap();
    bus.advance(secs(30));
    bus.renew(&[taken[3].token]).unwrap();
    bus.advance(secs(30));
    let other = bus.receiver();
    let theirs = bus.receive(other, 2);
    assert_eq!(ids(&theirs), ["abandoned", "expired"]);
    bus.close(gone);
    let released = bus.history().into_iter();
    let released = released.filter(|(_, kind)| *kind == EventKind::Released);
    assert_eq!(released.count(), 1);
    assert_eq!(bus.counts().locked, 2);
    assert_eq!(ids(&bus.receive(other, 5)), ["renewed"]);
}

#[test]
fn a_released_lock_on_an_expired_message_lets_it_expire() {
    let mut bus = rules()
        .release_on_detach()
        .dead_lettering_on_expiration()
        .bus();
    bus.send_with_ttl("a", secs(10));
    let (gone, _) = bus.receive_first();
    bus.advance(secs(20));
    bus.close(gone);
    assert_eq!(bus.dead_letters(), ["a"]);
}

#[test]
fn a_lock_expired_before_the_detach_counts_as_delivery() {
    let mut bus = rules().release_on_detach().bus().with(&["a"]);
    let (gone, _) = bus.receive_first();
    bus.pass(secs(60));
    bus.close(gone);
    let (properties, _) = bus.peek(SubQueue::Active).pop().unwrap();
    assert_eq!(properties.delivery_count, 1);
}

#[test]
fn a_reset_removes_everything_and_keeps_the_receivers() {
    let mut bus = bus().with(&["locked", "dead", "reserved", "ready"]);
    let busy = bus.receiver();
    let taken = bus.receive(busy, 2);
    bus.dead_letter(&taken[1]).unwrap();
    let first = bus.receiver_with_credit(1);
    let second = bus.receiver_with_credit(2);
    bus.reset();
    assert!(bus.queued().is_empty());
    assert!(bus.dead_letters().is_empty());
    assert_eq!(bus.counts(), servicebus_broker::Counts::default());
    assert_eq!(bus.next_deadline(), None);
    assert_eq!(bus.complete(&taken[0]), Err(SettleError::LockLost));
    bus.send_all(&["a", "b", "c"]);
    assert_eq!(ids(&bus.take(second)), ["a", "c"], "it still had credit");
    assert_eq!(ids(&bus.take(first)), ["b"]);
}

#[test]
fn a_detached_receiver_releases_its_reserved_messages_and_keeps_its_locks() {
    for mut bus in [bus(), rules().release_on_detach().bus()] {
        bus.send_all(&["a", "b"]);
        let gone = bus.receiver_with_credit(1);
        let taken = bus.take(gone);
        bus.credit(gone, 1);
        bus.dismiss(gone);
        let receiver = bus.receiver();
        assert_eq!(ids(&bus.receive(receiver, 2)), ["b"]);
        assert_eq!(bus.complete(&taken[0]), Ok(()), "its token still settles");
    }
}

#[test]
fn a_lock_token_finds_its_message_while_locked() {
    let mut bus = bus().with(&["a", "b"]);
    let receiver = bus.receiver();
    let taken = bus.receive(receiver, 2);
    let token = taken[1].token;
    let found = |bus: &Bus| {
        let locked = bus.entity().locked_message(SubQueue::Active, token);
        locked.map(|(number, message)| (number.0, message.id().into_owned()))
    };
    assert_eq!(found(&bus), Some((2, "b".to_owned())));
    assert_eq!(bus.complete(&taken[1]), Ok(()));
    assert_eq!(found(&bus), None);
}

#[test]
fn thousands_of_locks_that_end_together_all_end_on_time() {
    let mut bus = bus();
    let messages = (0..5_000).map(|number| message(&number.to_string()));
    bus.post_all(&messages.collect::<Vec<MessageBuilder>>())
        .unwrap();
    let receiver = bus.receiver_with_credit(5_000);
    let mut taken = Vec::new();
    while taken.len() < 5_000 {
        taken.extend(bus.take(receiver));
    }
    bus.pass(secs(60));
    let last = taken.last().unwrap();
    let lost = RenewError::LockLost(last.token);
    assert_eq!(bus.renew(&[last.token]), Err(lost));
    assert_eq!(bus.complete(last), Err(SettleError::LockLost));
}
