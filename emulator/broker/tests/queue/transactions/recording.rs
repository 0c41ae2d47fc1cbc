//! What transactions do stands in the record, each with its name.

use servicebus_broker::{EventKind, TransactionId};

use crate::bus::message;
use crate::world::World;

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
fn a_commit_is_told_before_what_follows_from_it() {
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
    let told = &story(&world)[3..];
    let expected = [
        format!("{id}: committed"),
        "1 completed".into(),
        "b is 3".into(),
    ];
    assert_eq!(told[..3], expected);
    assert_eq!(told.last().unwrap(), "c is 4");
}

#[test]
fn a_rollback_is_told_in_each_entity_that_took_part() {
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
fn names_come_back_as_they_went() {
    let mut world = World::new();
    let id = world.transaction().id();
    assert_eq!(TransactionId::from_bytes(&id.to_bytes()), Some(id));
    assert_ne!(id, world.transaction().id());
    for illegal in [&[][..], &[0; 7], &[0; 9], &[0; 16]] {
        assert_eq!(TransactionId::from_bytes(illegal), None);
    }
}
