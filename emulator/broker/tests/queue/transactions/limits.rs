//! Limits of a transaction in messages and time, and its events in the record.

use servicebus_broker::{CommitError, EventKind, TransactError, TransactionId};

use crate::bus::{message, rules, secs};
use crate::world::World;

#[test]
fn a_transaction_sends_at_most_100_messages() {
    let mut world = World::chain(&["q", "other"]);
    world.update("q", |queue| queue.forward_to = None);
    let mut transaction = world.transaction();
    let messages: Vec<_> = (0..99).map(|id| message(&id.to_string())).collect();
    world.post_in(&mut transaction, "q", &messages).unwrap();
    let pair = [message("99"), message("100")];
    let refused = world.post_in(&mut transaction, "q", &pair);
    let expected = TransactError::TooManyMessages { held: 99, added: 2 };
    assert_eq!(refused, Err(expected));
    world
        .schedule_in(&mut transaction, "q", &pair[..1])
        .unwrap();
    let full = TransactError::TooManyMessages {
        held: 100,
        added: 1,
    };
    let one = &pair[1..];
    assert_eq!(world.post_in(&mut transaction, "q", one), Err(full.clone()));
    let transferred = world.transfer_in(&mut transaction, "q", "other", one);
    assert_eq!(transferred, Err(full.clone()));
    let scheduled = world.schedule_in(&mut transaction, "q", one);
    assert_eq!(scheduled, Err(full.clone()));
    let text = full.to_string();
    let words = "Can't send more than 100 messages in a single transaction";
    assert!(text.starts_with(words), "{text}");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q").len(), 100);
}

#[test]
fn settlements_do_not_count_towards_the_limit_of_100_messages() {
    let mut world = World::chain(&["q"]);
    let mut transaction = world.transaction();
    for id in 0..150 {
        world.send("q", &id.to_string());
    }
    for _ in 0..150 {
        let locked = world.lock("q");
        world.complete_in(&mut transaction, "q", &locked).unwrap();
    }
    world.send_in(&mut transaction, "q", "sent");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["sent"]);
}

#[test]
fn the_two_minutes_of_a_transaction_begin_at_its_first_operation() {
    let mut world = World::chain(&["q"]);
    let mut transaction = world.transaction();
    world.advance(secs(1000));
    world.send_in(&mut transaction, "q", "a");
    world.advance(secs(119));
    world.send_in(&mut transaction, "q", "b");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q"), ["a", "b"]);
}

#[test]
fn a_refused_operation_does_not_start_the_two_minutes() {
    let mut world = World::chain(&["q"]);
    let mut transaction = world.transaction();
    let messages = vec![message("x"); 101];
    world.post_in(&mut transaction, "q", &messages).unwrap_err();
    assert_eq!(transaction.deadline(), None);
    world.advance(secs(120));
    world.send_in(&mut transaction, "q", "a");
    world.commit(transaction).unwrap();
}

#[test]
fn a_transaction_older_than_two_minutes_refuses_work_and_commit() {
    let mut world = World::new();
    let mut slow = rules();
    slow.queue.lock_duration = secs(300);
    world.declare("q", slow);
    world.send("q", "a");
    let locked = world.lock("q");
    let mut transaction = world.transaction();
    let id = transaction.id();
    world.complete_in(&mut transaction, "q", &locked).unwrap();
    world.advance(secs(120));
    let refused = world.post_in(&mut transaction, "q", &[message("b")]);
    assert_eq!(refused, Err(TransactError::TimedOut(id)));
    let settled = world.complete_in(&mut transaction, "q", &locked);
    assert_eq!(settled, Err(TransactError::TimedOut(id)));
    assert_eq!(world.commit(transaction), Err(CommitError::TimedOut(id)));
    assert_eq!(world.queued("q"), ["a"]);
}

#[test]
fn a_timed_out_transaction_releases_its_enlisted_locks() {
    let mut world = World::new();
    let mut slow = rules();
    slow.queue.lock_duration = secs(300);
    world.declare("q", slow);
    world.send("q", "a");
    let locked = world.lock("q");
    let mut late = world.transaction();
    world.complete_in(&mut late, "q", &locked).unwrap();
    world.advance(secs(120));
    let mut next = world.transaction();
    world.complete_in(&mut next, "q", &locked).unwrap();
    world.roll_back(late);
    world.commit(next).unwrap();
    assert!(world.queued("q").is_empty());
}

#[test]
fn an_empty_transaction_can_be_committed_at_any_time() {
    let mut world = World::new();
    let transaction = world.transaction();
    world.advance(secs(1000));
    world.commit(transaction).unwrap();
}

/// What was recorded, in short.
fn story(world: &World) -> Vec<String> {
    let events = world.events.iter();
    events
        .map(|event| tell(world, &event.kind, event.number().map_or(0, |n| n.0)))
        .collect()
}

fn tell(world: &World, kind: &EventKind, number: u64) -> String {
    if let EventKind::SendEnlisted {
        message_id,
        transaction,
    } = kind
    {
        let id = world.events.read(*message_id);
        return format!("{transaction}: send {id} as {number}");
    }
    if let EventKind::Enqueued { message_id, .. } = kind {
        return format!("{} is {number}", world.events.read(*message_id));
    }
    if let EventKind::SettlementEnlisted { transaction } = kind {
        return format!("{transaction}: settle {number}");
    }
    if let EventKind::TransactionCommitted { transaction } = kind {
        return format!("{transaction}: committed");
    }
    if let EventKind::TransactionRolledBack { transaction } = kind {
        return format!("{transaction}: rolled back");
    }
    match kind == &EventKind::Completed {
        true => format!("{number} completed"),
        false => format!("{kind:?}"),
    }
}

#[test]
fn a_commit_is_recorded_before_its_consequences() {
    let mut world = World::chain(&["q"]);
    world.send("q", "a");
    let locked = world.lock("q");
    world.events = servicebus_broker::Events::new();
    let mut transaction = world.transaction();
    let id = transaction.id();
    world.complete_in(&mut transaction, "q", &locked).unwrap();
    world.send_in(&mut transaction, "q", "b");
    let later = message("c").scheduled_at(crate::bus::START);
    world.schedule_in(&mut transaction, "q", &[later]).unwrap();
    let enlisted = [
        format!("{id}: settle 1"),
        format!("{id}: send b as 0"),
        format!("{id}: send c as 2"),
    ];
    assert_eq!(story(&world), enlisted);
    world.commit(transaction).unwrap();
    let recorded = &story(&world)[3..];
    let expected = [
        format!("{id}: committed"),
        "1 completed".into(),
        "b is 3".into(),
    ];
    assert_eq!(recorded[..3], expected);
    assert_eq!(recorded.last().unwrap(), "c is 4");
}

#[test]
fn a_rollback_is_recorded_in_each_participating_entity() {
    let mut world = World::topic(&["t/Subscriptions/one"]);
    world.send("t", "a");
    let locked = world.lock("t/Subscriptions/one");
    let mut transaction = world.transaction();
    let id = transaction.id();
    let settled = world.complete_in(&mut transaction, "t/Subscriptions/one", &locked);
    settled.unwrap();
    world.send_in(&mut transaction, "t", "b");
    world.events = servicebus_broker::Events::new();
    world.roll_back(transaction);
    assert_eq!(story(&world), vec![format!("{id}: rolled back"); 2]);
}

#[test]
fn a_transaction_id_decodes_to_itself() {
    let mut world = World::new();
    let id = world.transaction().id();
    assert_eq!(TransactionId::from_bytes(&id.to_bytes()), Some(id));
    assert_ne!(id, world.transaction().id());
    for illegal in [&[][..], &[0; 7], &[0; 9], &[0; 16]] {
        assert_eq!(TransactionId::from_bytes(illegal), None);
    }
}
