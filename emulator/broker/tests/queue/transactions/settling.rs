//! Settlements in a transaction take effect at the commit.

use servicebus_broker::{
    EntityStatus, Outcome, PropertyChanges, ReceiveMode, SettleError, SubQueue, TransactError,
};

use crate::bus::{message, rules, text};
use crate::world::{World, abandon, dead_lettered, defer};

fn world(ids: &[&str]) -> World {
    let mut world = World::chain(&["q"]);
    for id in ids {
        world.send("q", id);
    }
    world
}

#[test]
fn every_outcome_but_release_waits_for_the_commit() {
    let mut world = world(&["a", "b", "c", "d"]);
    let mut transaction = world.transaction();
    for outcome in [Outcome::Complete, abandon(), defer(), dead_lettered("why")] {
        let locked = world.lock("q");
        let settled = world.settle_in(&mut transaction, "q", &locked, outcome);
        settled.unwrap();
    }
    let counts = world.entity("q").counts(SubQueue::Active);
    assert_eq!((counts.locked, counts.deferred), (4, 0));
    assert_eq!(world.queued("q"), ["a", "b", "c", "d"]);
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["b", "c"]);
    assert_eq!(world.dead_letters("q"), ["d"]);
    assert_eq!(world.reasons("q", SubQueue::DeadLetter), ["why"]);
    let counts = world.entity("q").counts(SubQueue::Active);
    assert_eq!((counts.locked, counts.deferred), (0, 1));
    let abandoned = world.receive("q").unwrap();
    assert_eq!(abandoned.message.id(), "b");
    assert_eq!(abandoned.broker_properties.delivery_count, 1);
}

#[test]
fn a_message_cannot_be_released_in_a_transaction() {
    let mut world = world(&["a"]);
    let mut transaction = world.transaction();
    let locked = world.lock("q");
    let refused = world.settle_in(&mut transaction, "q", &locked, Outcome::Release);
    assert_eq!(refused, Err(TransactError::Release));
    world.complete_in(&mut transaction, "q", &locked).unwrap();
    world.commit(transaction).unwrap();
    assert!(world.queued("q").is_empty());
}

#[test]
fn a_transaction_completes_and_sends_atomically() {
    let mut world = world(&["in"]);
    let mut transaction = world.transaction();
    let locked = world.lock("q");
    world.complete_in(&mut transaction, "q", &locked).unwrap();
    world.send_in(&mut transaction, "q", "out");
    assert_eq!(world.queued("q"), ["in"]);
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["out"]);
}

#[test]
fn a_committed_abandon_at_the_delivery_limit_dead_letters() {
    let mut world = World::new();
    world.declare("q", rules().max_delivery_count(1));
    world.send("q", "a");
    let mut transaction = world.transaction();
    let locked = world.lock("q");
    let settled = world.settle_in(&mut transaction, "q", &locked, abandon());
    settled.unwrap();
    world.commit(transaction).unwrap();
    assert_eq!(world.dead_letters("q"), ["a"]);
}

#[test]
fn a_commit_applies_property_changes() {
    let mut world = world(&["a"]);
    let mut transaction = world.transaction();
    let locked = world.lock("q");
    let mut changes = PropertyChanges::new();
    changes.set_text("attempt", "1");
    let outcome = Outcome::Abandon { changes };
    let settled = world.settle_in(&mut transaction, "q", &locked, outcome);
    settled.unwrap();
    let shown = |world: &World| text(&world.the_only("q", SubQueue::Active).1, "attempt");
    assert_eq!(shown(&world), None);
    world.commit(transaction).unwrap();
    assert_eq!(shown(&world).as_deref(), Some("1"));
}

#[test]
fn dead_letters_can_be_settled_in_a_transaction() {
    let mut world = world(&["a", "b", "c"]);
    for _ in 0..3 {
        world.dead_letter_next("q", "why");
    }
    let mut transaction = world.transaction();
    let place = ("q", SubQueue::DeadLetter);
    for outcome in [Outcome::Complete, abandon()] {
        let locked = world.take("q", SubQueue::DeadLetter, ReceiveMode::PeekLock);
        let tokens = [locked.unwrap().token];
        let settled = world.settle_all_in(&mut transaction, place, &tokens, &outcome);
        settled.unwrap();
    }
    world.send_in(&mut transaction, "q", "again");
    assert_eq!(world.dead_letters("q"), ["a", "b", "c"]);
    world.commit(transaction).unwrap();
    assert_eq!(world.dead_letters("q"), ["b", "c"]);
    assert_eq!(world.queued("q"), ["again"]);
    let (properties, _) = world.peek("q", SubQueue::DeadLetter).remove(0);
    assert_eq!(properties.delivery_count, 0, "nothing counts there");
}

#[test]
fn a_transaction_refuses_to_dead_letter_a_dead_letter() {
    let mut world = world(&["a"]);
    world.dead_letter_next("q", "why");
    let locked = world.take("q", SubQueue::DeadLetter, ReceiveMode::PeekLock);
    let mut transaction = world.transaction();
    let place = ("q", SubQueue::DeadLetter);
    let refused = world.settle_all_in(
        &mut transaction,
        place,
        &[locked.unwrap().token],
        &dead_lettered("again"),
    );
    let expected = TransactError::Settle(SettleError::AlreadyDeadLettered);
    assert_eq!(refused, Err(expected));
}

#[test]
fn a_request_enlists_all_locks_or_none() {
    let mut world = world(&["a", "b", "c"]);
    let mut transaction = world.transaction();
    let tokens = [world.lock("q").token, world.lock("q").token];
    let place = ("q", SubQueue::Active);
    let settle = |world: &mut World, transaction: &mut _, tokens: &[_]| {
        world.settle_all_in(transaction, place, tokens, &Outcome::Complete)
    };
    let lost = Err(TransactError::Settle(SettleError::LockLost));
    let twice = [tokens[0], tokens[0]];
    assert_eq!(settle(&mut world, &mut transaction, &twice), lost);
    settle(&mut world, &mut transaction, &tokens[..1]).unwrap();
    assert_eq!(settle(&mut world, &mut transaction, &tokens), lost);
    settle(&mut world, &mut transaction, &tokens[1..]).unwrap();
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["c"]);
}

#[test]
fn a_deferred_message_is_settled_in_a_transaction() {
    let mut world = world(&["a", "b"]);
    for outcome in [Outcome::Complete, abandon()] {
        world.settle_next("q", defer());
        let (properties, _) = world.peek("q", SubQueue::Active).remove(0);
        let mut transaction = world.transaction();
        let numbers = [properties.sequence_number];
        let received = world.operate("q", |entity, cx| {
            let holder = servicebus_broker::ReceiverId(1_000_000);
            let (store, mode) = (SubQueue::Active, ReceiveMode::PeekLock);
            entity.receive_deferred(cx, store, &numbers, mode, holder, None)
        });
        let locked = received.unwrap().remove(0);
        let settled = world.settle_in(&mut transaction, "q", &locked, outcome);
        settled.unwrap();
        world.commit(transaction).unwrap();
    }
    let counts = world.entity("q").counts(SubQueue::Active);
    assert_eq!((counts.active, counts.deferred), (1, 1));
    let (properties, _) = world.the_only("q", SubQueue::Active);
    assert_eq!(properties.delivery_count, 2);
}

#[test]
fn a_disabled_entity_refuses_transactional_settlements_and_commit() {
    let mut world = world(&["a", "b"]);
    let (first, second) = (world.lock("q"), world.lock("q"));
    let mut transaction = world.transaction();
    world.complete_in(&mut transaction, "q", &first).unwrap();
    world.update("q", |queue| queue.status = EntityStatus::ReceiveDisabled);
    let refused = world.complete_in(&mut transaction, "q", &second);
    assert_eq!(refused, Err(TransactError::Settle(SettleError::Disabled)));
    world
        .post_in(&mut transaction, "q", &[message("c")])
        .unwrap();
    let error = world.commit(transaction).unwrap_err();
    assert!(error.to_string().contains("'q' is disabled"), "{error}");
    assert_eq!(world.queued("q"), ["a", "b"]);
}
