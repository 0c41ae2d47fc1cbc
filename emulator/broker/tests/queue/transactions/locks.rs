//! An enlisted lock is held, still expires, and must be held at the commit.

use servicebus_broker::{CommitError, SequenceNumber, SettleError, SubQueue, TransactError};

use crate::bus::{START, message, rules, secs};
use crate::world::{World, abandon};

/// What a client does meanwhile.
type Change = fn(&mut World);

/// A queue with a locked message, whose completion is enlisted beside a message that is sent.
fn world() -> (
    World,
    servicebus_broker::Transaction,
    servicebus_broker::Delivery,
) {
    let mut world = World::chain(&["q"]);
    world.send("q", "a");
    let locked = world.lock("q");
    let mut transaction = world.transaction();
    world.complete_in(&mut transaction, "q", &locked).unwrap();
    world.send_in(&mut transaction, "q", "b");
    (world, transaction, locked)
}

fn settle(world: &mut World, locked: &servicebus_broker::Delivery) -> Result<(), SettleError> {
    let token = locked.token;
    world.operate("q", |entity, cx| {
        entity.settle(cx, SubQueue::Active, token, abandon())
    })
}

#[test]
fn an_enlisted_lock_cannot_be_settled_otherwise() {
    let (mut world, transaction, locked) = world();
    assert_eq!(settle(&mut world, &locked), Err(SettleError::LockLost));
    let lost = Err(TransactError::Settle(SettleError::LockLost));
    let mut other = world.transaction();
    assert_eq!(world.complete_in(&mut other, "q", &locked), lost);
    let mut own = transaction;
    assert_eq!(world.complete_in(&mut own, "q", &locked), lost);
    world.commit(own).unwrap();
    assert_eq!(world.queued("q"), ["b"]);
}

#[test]
fn an_enlisted_lock_can_be_renewed() {
    let (mut world, transaction, locked) = world();
    world.advance(secs(50));
    let tokens = [locked.token];
    let renewed = world.operate("q", |entity, cx| {
        entity.renew_locks(cx, SubQueue::Active, &tokens)
    });
    assert_eq!(renewed, Ok(vec![START + secs(110)]));
    world.advance(secs(59));
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["b"]);
}

/// Nothing has happened, and the message has failed one delivery.
fn is_as_if_abandoned(world: &mut World, error: &CommitError) {
    let CommitError::LockLost { entity, number, .. } = error else {
        panic!("{error:?}");
    };
    assert_eq!((entity.as_str(), *number), ("q", SequenceNumber(1)));
    assert_eq!(world.queued("q"), ["a"]);
    let (properties, _) = world.the_only("q", SubQueue::Active);
    assert_eq!(properties.delivery_count, 1);
}

#[test]
fn an_enlisted_lock_that_expires_fails_the_commit() {
    let (mut world, transaction, _) = world();
    world.advance(secs(60));
    let error = world.commit(transaction).unwrap_err();
    is_as_if_abandoned(&mut world, &error);
}

#[test]
fn an_enlisted_lock_that_expires_before_the_timer_fails_the_commit() {
    let (mut world, transaction, _) = world();
    world.now = START + secs(60);
    let error = world.commit(transaction).unwrap_err();
    is_as_if_abandoned(&mut world, &error);
}

#[test]
fn an_enlisted_lock_that_expires_behind_many_deadlines_fails_the_commit() {
    let (mut world, transaction, _) = world();
    for _ in 0..3_000 {
        let later = message("later").scheduled_at(START + secs(1));
        world.post("q", &later).expect("there is room");
    }
    world.now = START + secs(60);
    let committed = world.commit(transaction);
    assert!(
        matches!(committed, Err(CommitError::LockLost { .. })),
        "{committed:?}"
    );
}

#[test]
fn an_enlisted_lock_ended_by_update_or_request_fails_the_commit() {
    let losses: [Change; 2] = [
        |world| world.update("q", |queue| queue.max_delivery_count = 5),
        |world| world.operate("q", |entity, cx| entity.lose_locks(cx)),
    ];
    for lose in losses {
        let (mut world, transaction, _) = world();
        lose(&mut world);
        let error = world.commit(transaction).unwrap_err();
        is_as_if_abandoned(&mut world, &error);
    }
}

#[test]
fn an_enlisted_lock_taken_by_another_receiver_fails_the_commit() {
    let (mut world, transaction, _) = world();
    world.advance(secs(60));
    let again = world.lock("q");
    let error = world.commit(transaction).unwrap_err();
    assert!(matches!(error, CommitError::LockLost { .. }), "{error:?}");
    assert_eq!(settle(&mut world, &again), Ok(()));
}

#[test]
fn a_lost_lock_fails_the_commit_although_its_successor_is_enlisted() {
    let (mut world, mut transaction, _) = world();
    world.advance(secs(60));
    let again = world.lock("q");
    world.complete_in(&mut transaction, "q", &again).unwrap();
    let error = world.commit(transaction).unwrap_err();
    assert!(matches!(error, CommitError::LockLost { .. }), "{error:?}");
    assert_eq!(world.queued("q"), ["a"]);
    assert_eq!(settle(&mut world, &again), Ok(()));
}

#[test]
fn a_reset_or_deletion_of_the_queue_fails_the_commit() {
    let (mut world, transaction, _) = world();
    world.operate("q", |entity, cx| entity.reset(cx));
    let error = world.commit(transaction).unwrap_err();
    assert!(matches!(error, CommitError::LockLost { .. }), "{error:?}");
    assert!(world.queued("q").is_empty());

    let (mut world, transaction, _) = self::world();
    world.delete("q");
    assert!(world.commit(transaction).is_err());
}

#[test]
fn a_detach_keeps_or_ends_an_enlisted_lock_as_configured() {
    let mut world = World::new();
    world.declare("q", rules().release_on_detach());
    world.send("q", "a");
    let mut transaction = world.transaction();
    let id = servicebus_broker::ReceiverId(500);
    let store = SubQueue::Active;
    let mut taken = Vec::new();
    world.operate("q", |entity, cx| {
        entity.attach_receiver(store, id, servicebus_broker::ReceiveMode::PeekLock);
        entity.set_credit(cx, store, id, 1);
        entity.acquire(cx, store, id, 1, usize::MAX, &mut taken);
    });
    let settled = world.complete_in(&mut transaction, "q", &taken[0]);
    settled.unwrap();
    world.operate("q", |entity, cx| entity.detach_receiver(cx, store, id));
    let error = world.commit(transaction).unwrap_err();
    assert!(matches!(error, CommitError::LockLost { .. }), "{error:?}");
    let (properties, _) = world.the_only("q", store);
    assert_eq!(properties.delivery_count, 0);
}

#[test]
fn a_rollback_leaves_lock_and_delivery_count_unchanged() {
    let (mut world, transaction, locked) = world();
    world.roll_back(transaction);
    assert!(world.receive("q").is_none());
    assert_eq!(world.queued("q"), ["a"]);
    assert_eq!(world.entity("q").counts(SubQueue::Active).locked, 1);
    world.advance(secs(59));
    assert!(world.receive("q").is_none());
    assert_eq!(settle(&mut world, &locked), Ok(()));
    let again = world.receive("q").unwrap();
    assert_eq!(again.broker_properties.delivery_count, 1);
}

#[test]
fn a_failed_commit_releases_the_other_enlisted_locks() {
    let mut world = World::chain(&["q"]);
    world.send("q", "a");
    world.send("q", "b");
    let first = world.lock("q");
    world.advance(secs(30));
    let second = world.lock("q");
    let mut transaction = world.transaction();
    world.complete_in(&mut transaction, "q", &first).unwrap();
    world.complete_in(&mut transaction, "q", &second).unwrap();
    world.advance(secs(30));
    world.commit(transaction).unwrap_err();
    assert_eq!(world.queued("q"), ["a", "b"]);
    assert_eq!(settle(&mut world, &second), Ok(()));
}
