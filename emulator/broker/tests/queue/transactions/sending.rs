//! Sends in a transaction are checked at once and accepted at the commit.
//!
//! Scheduled messages get sequence numbers at once, and exist from the commit.

use servicebus_broker::{
    CommitError, EntityStatus, ReceiveMode, ReceiverId, SendError, SequenceNumber, SubQueue,
    TransactError,
};

use crate::bus::{START, message, rules, secs};
use crate::world::World;

/// What a client does meanwhile.
type Change = fn(&mut World);

fn world() -> World {
    World::chain(&["q"])
}

#[test]
fn messages_are_invisible_before_the_commit() {
    let mut world = world();
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "q", "a");
    assert!(world.queued("q").is_empty());
    assert!(world.receive("q").is_none());
    assert_eq!(world.entity("q").size(), 0);
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["a"]);
}

#[test]
fn a_commit_delivers_all_messages_to_a_waiting_receiver() {
    let mut world = world();
    let (id, store) = (ReceiverId(500), SubQueue::Active);
    let mut taken = Vec::new();
    world.operate("q", |entity, cx| {
        entity.attach_receiver(store, id, ReceiveMode::PeekLock);
        entity.set_credit(cx, store, id, 2);
    });
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "q", "a");
    world.send_in(&mut transaction, "q", "b");
    assert_eq!(world.entity("q").reserved(store, id), 0);
    world.commit(transaction).unwrap();
    world.operate("q", |entity, cx| {
        entity.acquire(cx, store, id, 2, usize::MAX, &mut taken);
    });
    let ids: Vec<_> = taken.iter().map(|delivery| delivery.message.id()).collect();
    assert_eq!(ids, ["a", "b"]);
}

#[test]
fn messages_of_rolled_back_or_dropped_transactions_are_discarded() {
    let mut world = world();
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "q", "a");
    world.roll_back(transaction);
    let mut forgotten = world.transaction();
    world.send_in(&mut forgotten, "q", "b");
    drop(forgotten);
    assert!(world.queued("q").is_empty());
}

#[test]
fn sequence_numbers_and_enqueued_times_are_assigned_at_commit() {
    let mut world = world();
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "q", "enlisted first");
    world.send("q", "sent first");
    world.advance(secs(5));
    world.commit(transaction).unwrap();
    let seen = world.peek("q", SubQueue::Active);
    let numbers: Vec<_> = seen
        .iter()
        .map(|(properties, _)| properties.sequence_number)
        .collect();
    assert_eq!(world.queued("q"), ["sent first", "enlisted first"]);
    assert_eq!(numbers, [SequenceNumber(1), SequenceNumber(2)]);
    assert_eq!(seen[1].0.enqueued_at, START + secs(5));
}

#[test]
fn messages_of_a_transaction_are_enqueued_together_in_order() {
    let mut world = world();
    let mut first = world.transaction();
    let mut second = world.transaction();
    for id in ["1", "2", "3"] {
        world.send_in(&mut first, "q", &format!("first {id}"));
        world.send_in(&mut second, "q", &format!("second {id}"));
    }
    world.commit(second).unwrap();
    world.commit(first).unwrap();
    let expected = [
        "second 1", "second 2", "second 3", "first 1", "first 2", "first 3",
    ];
    assert_eq!(world.queued("q"), expected);
}

#[test]
fn the_time_to_live_begins_at_commit() {
    let mut world = world();
    let mut transaction = world.transaction();
    let short = message("a").time_to_live(secs(10));
    world.post_in(&mut transaction, "q", &[short]).unwrap();
    world.advance(secs(60));
    world.commit(transaction).unwrap();
    world.advance(secs(9));
    assert_eq!(world.queued("q"), ["a"]);
    world.advance(secs(1));
    assert!(world.queued("q").is_empty());
}

#[test]
fn a_refused_send_leaves_the_transaction_usable() {
    let mut world = World::new();
    world.declare("q", rules().of_one_megabyte());
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "q", "a");
    let half = |id: &str| message(id).body(600_000);
    world.post_in(&mut transaction, "q", &[half("b")]).unwrap();
    let refused = world.post_in(&mut transaction, "q", &[half("c")]);
    let full = TransactError::Send(SendError::QuotaExceeded {
        kind: servicebus_broker::EntityKind::Queue,
        path: "q".parse().unwrap(),
        size: [message("a"), half("b")]
            .iter()
            .map(|message| message.encoded().len() as u64)
            .sum(),
        max: 1024 * 1024,
    });
    assert_eq!(refused, Err(full));
    let both = world.post_in(&mut transaction, "q", &[message("d"), half("e")]);
    assert!(both.is_err(), "all of a batch or none");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["a", "b"]);
}

#[test]
fn uncommitted_messages_count_towards_the_quota() {
    let mut world = World::new();
    world.declare("q", rules().of_one_megabyte());
    let half = |id: &str| message(id).body(600_000);
    let full = |result: Result<_, TransactError>| {
        matches!(
            result,
            Err(TransactError::Send(SendError::QuotaExceeded { .. }))
        )
    };
    let mut transactions = [(); 3].map(|()| world.transaction());
    let [first, second, _] = &mut transactions;
    world.post_in(first, "q", &[half("a")]).unwrap();
    assert!(full(world.post_in(second, "q", &[half("b")])), "of another");
    assert!(full(world.schedule_in(second, "q", &[half("b")]).map(drop)));
    assert!(world.post("q", &half("c")).is_err(), "outside of any");
    let [first, second, third] = transactions;
    world.roll_back(first);

    let mut second = second;
    world.post_in(&mut second, "q", &[half("b")]).unwrap();
    assert!(world.post("q", &half("c")).is_err());
    // Its connection was lost, say.
    drop(second);

    let mut third = third;
    world.post_in(&mut third, "q", &[half("c")]).unwrap();
    world.commit(third).unwrap();
    assert!(world.post("q", &half("d")).is_err());
    world.post("q", &message("e").body(400_000)).unwrap();
    assert_eq!(world.queued("q"), ["c", "e"], "counted once");
}

#[test]
fn a_disabled_entity_refuses_a_transactional_send_at_once() {
    let mut world = World::new();
    world.declare("q", rules().status(EntityStatus::SendDisabled));
    let mut transaction = world.transaction();
    let refused = world.post_in(&mut transaction, "q", &[message("a")]);
    let disabled = SendError::Disabled("q".parse().unwrap());
    assert_eq!(refused, Err(TransactError::Send(disabled)));
    world.commit(transaction).unwrap();
}

#[test]
fn a_commit_fails_if_the_entity_refuses_the_messages_meanwhile() {
    let cases: [(Change, &str); 3] = [
        (
            |world| world.update("q", |queue| queue.status = EntityStatus::Disabled),
            "Messaging entity 'q' is currently disabled",
        ),
        (
            |world| world.delete("q"),
            "The messaging entity 'q' could not be found",
        ),
        (
            |world| world.update("q", |queue| queue.max_size_in_megabytes = 1),
            "The maximum entity size has been reached",
        ),
    ];
    for (change, expected) in cases {
        let mut world = World::new();
        world.declare("q", rules());
        let mut transaction = world.transaction();
        world.send_in(&mut transaction, "q", "a");
        let large = message("b").body(1_100_000);
        world.post_in(&mut transaction, "q", &[large]).unwrap();
        change(&mut world);
        let error = world.commit(transaction).unwrap_err();
        assert!(matches!(error, CommitError::Send { .. }), "{error:?}");
        assert!(error.to_string().contains(expected), "{error}");
        assert!(!world.everything().contains(&"a".to_owned()));
    }
}

#[test]
fn a_recreated_entity_gets_no_messages_for_its_predecessor() {
    let mut world = world();
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "q", "a");
    world.delete("q");
    world.declare("q", rules());
    world.send_in(&mut transaction, "q", "b");
    let error = world.commit(transaction).unwrap_err();
    assert!(matches!(error, CommitError::Send { .. }), "{error:?}");
    assert!(world.queued("q").is_empty());
}

#[test]
fn duplicates_are_detected_at_commit() {
    let mut world = World::new();
    world.declare("q", rules().duplicate_detection(secs(600)));
    world.send("q", "before");
    let mut transaction = world.transaction();
    for id in ["before", "twice", "twice", "meanwhile", "other"] {
        world.send_in(&mut transaction, "q", id);
    }
    world.send("q", "meanwhile");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["before", "meanwhile", "twice", "other"]);
}

#[test]
fn a_rolled_back_message_id_is_not_a_duplicate() {
    let mut world = World::new();
    world.declare("q", rules().duplicate_detection(secs(600)));
    let mut transaction = world.transaction();
    world.send_in(&mut transaction, "q", "a");
    world.roll_back(transaction);
    let mut again = world.transaction();
    world.send_in(&mut again, "q", "a");
    world.commit(again).unwrap();
    assert_eq!(world.queued("q"), ["a"]);
}

#[test]
fn a_transaction_may_send_a_scheduled_message() {
    let mut world = world();
    let mut transaction = world.transaction();
    let later = message("a").scheduled_at(START + secs(60));
    let past = message("b").scheduled_at(START + secs(5));
    world
        .post_in(&mut transaction, "q", &[later, past])
        .unwrap();
    world.advance(secs(10));
    world.commit(transaction).unwrap();
    let counts = world.entity("q").counts(SubQueue::Active);
    assert_eq!((counts.active, counts.scheduled), (1, 1));
    world.advance(secs(50));
    assert_eq!(world.queued("q"), ["b", "a"]);
}

const NUMBER: fn(u64) -> SequenceNumber = SequenceNumber;

fn later(id: &str) -> crate::bus::MessageBuilder {
    message(id).scheduled_at(START + secs(60))
}

#[test]
fn scheduled_sequence_numbers_are_returned_before_the_commit() {
    let mut world = World::chain(&["q"]);
    world.send("q", "a");
    let mut transaction = world.transaction();
    let messages = [later("b"), later("c")];
    let numbers = world.schedule_in(&mut transaction, "q", &messages);
    assert_eq!(numbers, Ok(vec![NUMBER(2), NUMBER(3)]));
    assert_eq!(world.send("q", "d"), NUMBER(4));
    let cancel = |world: &mut World, number| {
        world.operate("q", |entity, cx| entity.cancel_scheduled(cx, &[number]))
    };
    assert!(
        cancel(&mut world, NUMBER(2)).is_err(),
        "it is not there yet"
    );
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["a", "b", "c", "d"]);
    assert_eq!(world.entity("q").counts(SubQueue::Active).scheduled, 2);
    cancel(&mut world, NUMBER(2)).unwrap();
    world.advance(secs(60));
    assert_eq!(world.queued("q"), ["a", "d", "c"]);
}

#[test]
fn a_rollback_leaves_a_gap_in_the_sequence_numbers() {
    let mut world = World::chain(&["q"]);
    let mut transaction = world.transaction();
    world
        .schedule_in(&mut transaction, "q", &[later("a")])
        .unwrap();
    world.roll_back(transaction);
    assert_eq!(world.send("q", "b"), NUMBER(2));
    world.advance(secs(60));
    assert_eq!(world.queued("q"), ["b"]);
}

#[test]
fn a_scheduled_message_due_before_the_commit_is_active_at_once() {
    let mut world = World::chain(&["q"]);
    let mut transaction = world.transaction();
    world
        .schedule_in(&mut transaction, "q", &[later("a")])
        .unwrap();
    world.advance(secs(90));
    world.send("q", "b");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["b", "a"]);
    let (properties, _) = world.peek("q", SubQueue::Active).remove(1);
    assert_eq!(properties.sequence_number, NUMBER(3));
    assert_eq!(properties.enqueued_at, START + secs(90));
    assert!(world.receive("q").is_some());
}

#[test]
fn a_commit_may_use_a_number_below_those_already_completed() {
    let mut world = World::chain(&["q"]);
    let mut transaction = world.transaction();
    world
        .schedule_in(&mut transaction, "q", &[later("a")])
        .unwrap();
    for id in 0..500 {
        world.send("q", &id.to_string());
        world.receive("q").unwrap();
    }
    world.commit(transaction).unwrap();
    let (properties, _) = world.the_only("q", SubQueue::Active);
    assert_eq!(properties.sequence_number, NUMBER(1));
    world.advance(secs(60));
    assert_eq!(world.receive("q").unwrap().message.id(), "a");
}

#[test]
fn the_sequence_number_of_a_scheduled_duplicate_is_not_used() {
    let mut world = World::new();
    world.declare("q", rules().duplicate_detection(secs(600)));
    let mut transaction = world.transaction();
    let messages = [later("a"), later("a"), later("b")];
    let numbers = world.schedule_in(&mut transaction, "q", &messages);
    assert_eq!(numbers, Ok(vec![NUMBER(1), NUMBER(2), NUMBER(3)]));
    world.commit(transaction).unwrap();
    let seen = world.peek("q", SubQueue::Active);
    let held: Vec<_> = seen
        .iter()
        .map(|(properties, _)| properties.sequence_number)
        .collect();
    assert_eq!(held, [NUMBER(1), NUMBER(3)]);
}
