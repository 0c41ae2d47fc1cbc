//! A transaction works on one queue, or on one topic and its subscriptions.
//!
//! In a partitioned entity it stays within one partition (semantics §15). Also transactions with sessions (semantics §6,
//! §12).

use servicebus_broker::{
    CommitError, Delivery, ReceiverId, SendError, SettleError, SubQueue, TransactError,
};

use crate::bus::{START, message, rules, secs};
use crate::world::{World, abandon, dead_lettered};

fn second(first: &str, second: &str) -> TransactError {
    TransactError::SecondEntity {
        first: first.parse().unwrap(),
        second: second.parse().unwrap(),
    }
}

#[test]
fn a_transaction_refuses_a_second_queue_and_stays_usable() {
    let mut world = World::new();
    for name in ["a", "b"] {
        world.declare(name, rules());
    }
    world.send("b", "locked");
    let locked = world.lock("b");
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "a", "1");
    let error = second("a", "b");
    let refused = world.post_in(&mut transaction, "b", &[message("2")]);
    assert_eq!(refused, Err(error.clone()));
    let refused = world.complete_in(&mut transaction, "b", &locked);
    assert_eq!(refused, Err(error.clone()));
    let words =
        "Local transactions cannot span multiple top-level entities such as queue or topic.";
    assert!(error.to_string().starts_with(words), "{error}");
    world.send_in(&mut transaction, "A", "3");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("a"), ["1", "3"]);
    assert_eq!(world.queued("b"), ["locked"]);
}

#[test]
fn a_topic_and_its_subscriptions_are_one_entity() {
    let mut world = World::topic(&["t/Subscriptions/one", "t/Subscriptions/two"]);
    world.send("t", "a");
    let (one, two) = (
        world.lock("t/Subscriptions/one"),
        world.lock("t/Subscriptions/two"),
    );
    let mut transaction = world.transaction();
    let settled = world.complete_in(&mut transaction, "t/Subscriptions/one", &one);
    settled.unwrap();
    let settled = world.settle_in(
        &mut transaction,
        "t/Subscriptions/two",
        &two,
        dead_lettered("why"),
    );
    settled.unwrap();
    world.send_in(&mut transaction, "t", "b");
    for name in ["t/Subscriptions/one", "t/Subscriptions/two"] {
        assert_eq!(world.queued(name), ["a"]);
    }
    world.commit(transaction).unwrap();
    for name in ["t/Subscriptions/one", "t/Subscriptions/two"] {
        assert_eq!(world.queued(name), ["b"]);
    }
    assert_eq!(world.dead_letters("t/Subscriptions/two"), ["a"]);
}

#[test]
fn a_lost_lock_in_one_subscription_fails_the_transaction() {
    let mut world = World::topic(&["t/Subscriptions/one", "t/Subscriptions/two"]);
    world.send("t", "a");
    let one = world.lock("t/Subscriptions/one");
    world.advance(secs(30));
    let two = world.lock("t/Subscriptions/two");
    let mut transaction = world.transaction();
    for (name, locked) in [("t/Subscriptions/two", two), ("t/Subscriptions/one", one)] {
        world.complete_in(&mut transaction, name, &locked).unwrap();
    }
    world.send_in(&mut transaction, "t", "b");
    world.advance(secs(30));
    world.commit(transaction).unwrap_err();
    for name in ["t/Subscriptions/one", "t/Subscriptions/two"] {
        assert_eq!(world.queued(name), ["a"]);
    }
    let counts = world.entity("t/Subscriptions/two").counts(SubQueue::Active);
    assert_eq!(counts.locked, 1);
}

#[test]
fn a_transaction_refuses_a_subscription_of_another_topic() {
    let mut world = World::topic(&["t/Subscriptions/one"]);
    world.declare_topic("u", |_| {});
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "u", "1");
    world.send("t", "2");
    let locked = world.lock("t/Subscriptions/one");
    let refused = world.complete_in(&mut transaction, "t/Subscriptions/one", &locked);
    assert_eq!(refused, Err(second("u", "t")));
}

#[test]
fn a_message_scheduled_at_a_topic_by_a_transaction_is_published() {
    let mut world = World::topic(&["t/Subscriptions/one"]);
    let mut transaction = world.transaction();
    let later = message("a").scheduled_at(START + secs(60));
    world.schedule_in(&mut transaction, "t", &[later]).unwrap();
    world.commit(transaction).unwrap();
    assert!(world.queued("t/Subscriptions/one").is_empty());
    world.advance(secs(60));
    assert_eq!(world.queued("t/Subscriptions/one"), ["a"]);
}

fn world() -> World {
    let mut world = World::new();
    world.declare("q", rules().partitioned());
    world
}

/// The partitions of what is queued.
fn partitions(world: &World) -> Vec<u64> {
    let seen = world.peek("q", SubQueue::Active);
    let numbers = seen
        .iter()
        .map(|(properties, _)| properties.sequence_number.0);
    numbers.map(|number| number >> 48).collect()
}

fn is_second_partition(result: &Result<(), TransactError>) -> bool {
    matches!(result, Err(TransactError::SecondPartition { .. }))
}

#[test]
fn messages_of_a_transaction_share_a_partition_key() {
    let mut world = world();
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "q", "none");
    let keyed = |id: &str, key: &str| [message(id).partition_key(key)];
    let mut with_key = world.transaction();
    for id in ["1", "2"] {
        let sent = world.post_in(&mut with_key, "q", &keyed(id, "one"));
        sent.unwrap();
    }
    world.send_in(&mut with_key, "q", "3");
    let refused = world.post_in(&mut with_key, "q", &keyed("4", "two"));
    assert!(is_second_partition(&refused), "{refused:?}");
    let text = refused.unwrap_err().to_string();
    let words = "Local transactions cannot span multiple entities or partitions.";
    assert!(text.starts_with(words), "{text}");
    assert!(text.contains("'one'") && text.contains("'two'"), "{text}");
    world.commit(with_key).unwrap();
    let seen = partitions(&world);
    assert_eq!(seen.len(), 3);
    assert!(seen.iter().all(|partition| *partition == seen[0]));
}

#[test]
fn a_transaction_settles_locks_of_its_partition_only() {
    let mut world = world();
    for key in ["one", "two"] {
        let message = message(key).partition_key(key);
        world.post("q", &message).unwrap();
    }
    let both = partitions(&world);
    assert_ne!(both[0], both[1], "the keys are in different partitions");
    let (one, two) = (world.lock("q"), world.lock("q"));
    let mut transaction = world.transaction();
    world.complete_in(&mut transaction, "q", &one).unwrap();
    let refused = world.complete_in(&mut transaction, "q", &two);
    assert!(is_second_partition(&refused), "{refused:?}");
    let elsewhere = [message("a").partition_key("two")];
    let refused = world.post_in(&mut transaction, "q", &elsewhere);
    assert!(is_second_partition(&refused), "{refused:?}");
    world.send_in(&mut transaction, "q", "b");
    // What was refused came back (spec/observed.md 42).
    let back = world.lock("q");
    assert_eq!(back.message.id(), "two");
    world.commit(transaction).unwrap();
    assert_eq!(partitions(&world), [both[1], both[0]]);
}

#[test]
fn transactions_of_partitioned_subscriptions_have_one_partition() {
    let mut world = World::new();
    world.declare_topic("t", |topic| topic.enable_partitioning = true);
    let names = ["t/Subscriptions/one", "t/Subscriptions/two"];
    for name in names {
        world.subscribe(name, |_| {});
    }
    for key in ["one", "two"] {
        let message = message(key).partition_key(key);
        world.post("t", &message).unwrap();
    }
    let (one, _) = (world.lock(names[0]), world.lock(names[0]));
    let (same, two) = (world.lock(names[1]), world.lock(names[1]));
    let mut transaction = world.transaction();
    world.complete_in(&mut transaction, names[0], &one).unwrap();
    world
        .complete_in(&mut transaction, names[1], &same)
        .unwrap();
    let refused = world.complete_in(&mut transaction, names[1], &two);
    assert!(is_second_partition(&refused), "{refused:?}");
    world.commit(transaction).unwrap();
}

#[test]
fn messages_scheduled_by_a_transaction_have_the_partition_in_their_numbers() {
    let mut world = world();
    let mut transaction = world.transaction();
    let later = message("a")
        .partition_key("one")
        .scheduled_at(START + secs(60));
    let numbers = world.schedule_in(&mut transaction, "q", &[later]).unwrap();
    world.commit(transaction).unwrap();
    let (properties, _) = world.the_only("q", SubQueue::Active);
    assert_eq!(numbers, [properties.sequence_number]);
    world
        .operate("q", |entity, cx| entity.cancel_scheduled(cx, &numbers))
        .unwrap();
}

#[test]
fn a_send_via_message_has_its_own_via_partition_key() {
    let mut world = world();
    world.declare("out", rules().partitioned());
    let mut transaction = world.transaction();
    let via =
        |id: &str, key: &str, own: &str| [message(id).via_partition_key(key).partition_key(own)];
    for own in ["x", "y"] {
        let sent = world.transfer_in(&mut transaction, "q", "out", &via(own, "one", own));
        sent.unwrap();
    }
    let refused = world.transfer_in(&mut transaction, "q", "out", &via("z", "two", "x"));
    assert!(is_second_partition(&refused), "{refused:?}");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("out"), ["x", "y"]);
}

/// A queue with sessions and two messages of the same one, the first of them locked.
fn world_with_session() -> (World, Delivery, ReceiverId) {
    let mut world = World::new();
    world.declare("q", rules().sessions());
    for id in ["a", "b"] {
        world.post("q", &message(id).session("s")).unwrap();
    }
    let (locked, holder) = world.take_from_next_session("q").unwrap();
    (world, locked, holder)
}

#[test]
fn a_transaction_refuses_a_message_without_session_id_at_once() {
    let (mut world, ..) = world_with_session();
    let mut transaction = world.transaction();
    let refused = world.post_in(&mut transaction, "q", &[message("x")]);
    assert_eq!(refused, Err(TransactError::Send(SendError::NoSession)));
    let refused = world.schedule_in(&mut transaction, "q", &[message("x")]);
    assert_eq!(refused, Err(TransactError::Send(SendError::NoSession)));
}

#[test]
fn a_transaction_settles_and_sends_in_a_session_in_order() {
    let (mut world, locked, holder) = world_with_session();
    let mut transaction = world.transaction();
    let settled = world.settle_in(&mut transaction, "q", &locked, abandon());
    settled.unwrap();
    let sent = world.post_in(&mut transaction, "q", &[message("c").session("s")]);
    sent.unwrap();
    world.commit(transaction).unwrap();
    let store = SubQueue::Active;
    let mut taken = Vec::new();
    world.operate("q", |entity, cx| {
        entity.set_credit(cx, store, holder, 3);
        entity.acquire(cx, store, holder, 3, usize::MAX, &mut taken);
    });
    let ids: Vec<_> = taken.iter().map(|delivery| delivery.message.id()).collect();
    assert_eq!(ids, ["a", "b", "c"]);
    assert_eq!(taken[0].broker_properties.delivery_count, 1);
}

#[test]
fn a_commit_after_a_lost_session_fails() {
    let losses: [fn(&mut World, ReceiverId); 4] = [
        |world, _| world.advance(secs(60)),
        |world, id| {
            let store = SubQueue::Active;
            world.operate("q", |entity, cx| entity.detach_receiver(cx, store, id));
        },
        |world, _| {
            let session = servicebus_broker::SessionName::new("s").unwrap();
            assert!(world.operate("q", |entity, cx| entity.lose_session_lock(cx, &session)));
        },
        |world, _| world.update("q", |queue| queue.max_delivery_count = 5),
    ];
    for lose in losses {
        let (mut world, locked, holder) = world_with_session();
        let mut transaction = world.transaction();
        world.complete_in(&mut transaction, "q", &locked).unwrap();
        let sent = world.post_in(&mut transaction, "q", &[message("c").session("s")]);
        sent.unwrap();
        lose(&mut world, holder);
        let error = world.commit(transaction).unwrap_err();
        assert!(matches!(error, CommitError::LockLost { .. }), "{error:?}");
        assert_eq!(world.queued("q"), ["a", "b"]);
        let mut late = world.transaction();
        let refused = world.complete_in(&mut late, "q", &locked);
        let lost = TransactError::Settle(SettleError::SessionLockLost);
        assert_eq!(refused, Err(lost));
    }
}

#[test]
fn a_renewed_session_lock_keeps_enlisted_settlements() {
    let (mut world, locked, _) = world_with_session();
    let mut transaction = world.transaction();
    world.complete_in(&mut transaction, "q", &locked).unwrap();
    world.advance(secs(50));
    let session = servicebus_broker::SessionName::new("s").unwrap();
    world
        .operate("q", |entity, cx| {
            entity.renew_session_lock(cx, servicebus_broker::ClientId(7), &session)
        })
        .unwrap();
    world.advance(secs(50));
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["b"]);
}

#[test]
fn send_via_messages_need_no_session_id() {
    let (mut world, ..) = world_with_session();
    world.declare("out", rules());
    let mut transaction = world.transaction();
    let passing = [message("1"), message("2").session("s")];
    let sent = world.transfer_in(&mut transaction, "q", "out", &passing);
    sent.unwrap();
    let sent = world.transfer_in(&mut transaction, "q", "missing", &passing);
    sent.unwrap();
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("out"), ["1", "2"]);
    assert_eq!(world.transfer_dead_letters("q"), ["1", "2"]);
    assert_eq!(world.queued("q"), ["a", "b"]);
}

#[test]
fn a_message_scheduled_by_a_transaction_joins_its_session() {
    let (mut world, ..) = world_with_session();
    let mut transaction = world.transaction();
    let later = message("c").session("other");
    let later = [later.scheduled_at(START + secs(30))];
    world.schedule_in(&mut transaction, "q", &later).unwrap();
    world.commit(transaction).unwrap();
    assert!(world.take_from_next_session("q").is_none());
    world.advance(secs(30));
    let (delivery, _) = world.take_from_next_session("q").unwrap();
    assert_eq!(delivery.message.id(), "c");
}
