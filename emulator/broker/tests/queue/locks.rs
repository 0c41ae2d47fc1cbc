//! Locks: when they begin, how long they last, what their end means (semantics §2.4).

use servicebus_broker::{LockToken, RenewError, SettleError, SubQueue};
use uuid::Uuid;

use crate::bus::{START, bus, ids, millis, secs};

#[test]
fn a_lock_begins_when_the_message_is_taken() {
    let mut bus = bus();
    bus.send("a");
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
    let mut bus = bus();
    bus.send("a");
    let receiver = bus.receiver();
    bus.receive_one(receiver);
    assert!(bus.receive(receiver, 5).is_empty());
}

#[test]
fn a_lock_that_runs_out_counts_and_gives_the_message_back() {
    let mut bus = bus();
    bus.send("a");
    let receiver = bus.receiver();
    let first = bus.receive_one(receiver);
    assert_eq!(first.broker_properties.delivery_count, 0);
    bus.advance(secs(60) - millis(1));
    assert!(bus.receive(receiver, 1).is_empty(), "the lock is held");
    bus.advance(millis(1));
    let second = bus.receive_one(receiver);
    assert_eq!(second.broker_properties.delivery_count, 1);
    assert_ne!(second.token, first.token);
}

#[test]
fn a_lock_is_over_at_its_instant_even_when_no_timer_has_fired() {
    let mut bus = bus();
    bus.send("a");
    let receiver = bus.receiver();
    let delivery = bus.receive_one(receiver);
    bus.pass(secs(60));
    assert_eq!(bus.complete(&delivery), Err(SettleError::LockLost));
    assert_eq!(bus.queued(), ["a"]);

    let delivery = bus.receive_one(receiver);
    bus.pass(secs(60) - millis(1));
    assert_eq!(bus.complete(&delivery), Ok(()));
    assert!(bus.queued().is_empty());
}

#[test]
fn a_waiting_receiver_gets_the_message_whose_lock_ran_out() {
    let mut bus = bus();
    bus.send("a");
    let (slow, waiting) = (bus.receiver(), bus.receiver());
    bus.receive_one(slow);
    bus.credit(waiting, 1);
    bus.woken();
    bus.advance(secs(60));
    assert_eq!(bus.woken(), [waiting.id]);
    assert_eq!(ids(&bus.take(waiting)), ["a"]);
}

#[test]
fn a_renewed_lock_lasts_from_now() {
    let mut bus = bus();
    bus.send("a");
    let receiver = bus.receiver();
    let delivery = bus.receive_one(receiver);
    bus.advance(secs(59));
    assert_eq!(bus.renew(&[delivery.token]), Ok(vec![START + secs(119)]));
    bus.advance(secs(59));
    assert_eq!(bus.renew(&[delivery.token]), Ok(vec![START + secs(178)]));
    bus.advance(secs(59));
    assert_eq!(bus.complete(&delivery), Ok(()));
}

#[test]
fn a_renewed_lock_ends_later_however_soon() {
    let mut bus = bus();
    bus.send("a");
    let receiver = bus.receiver();
    let token = bus.receive_one(receiver).token;
    let ends = [1, 2].map(|later| START + secs(60) + millis(later));
    assert_eq!(bus.renew(&[token, token]), Ok(ends.to_vec()));
    assert_eq!(bus.renew(&[]), Ok(vec![]));
    assert_eq!(bus.next_deadline(), Some(ends[1]));
}

#[test]
fn all_locks_are_renewed_or_none() {
    let mut bus = bus();
    bus.send_all(&["a", "b", "c"]);
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
fn a_lock_that_is_over_cannot_be_renewed() {
    let mut bus = bus();
    bus.send("a");
    let receiver = bus.receiver();
    let token = bus.receive_one(receiver).token;
    bus.pass(secs(60));
    assert_eq!(bus.renew(&[token]), Err(RenewError::LockLost(token)));
}

#[test]
fn a_token_of_another_store_locks_nothing_here() {
    let mut bus = bus();
    bus.send_all(&["a", "b"]);
    let receiver = bus.receiver();
    let first = bus.receive_one(receiver);
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
fn every_bit_of_a_token_counts() {
    let mut bus = bus();
    bus.send("a");
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
