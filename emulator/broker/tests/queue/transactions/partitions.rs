//! In a partitioned entity a transaction stays within one partition (semantics §15).

use servicebus_broker::{SubQueue, TransactError};

use crate::bus::{message, rules};
use crate::world::World;

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
        .map(|(broker_properties, _)| broker_properties.sequence_number.0);
    numbers.map(|number| number >> 48).collect()
}

fn is_second_partition(result: &Result<(), TransactError>) -> bool {
    matches!(result, Err(TransactError::SecondPartition { .. }))
}

#[test]
fn messages_have_the_same_key_and_those_without_go_with_them() {
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
fn locks_belong_to_the_partition_of_their_messages() {
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
fn numbers_of_scheduled_messages_show_the_partition() {
    let mut world = world();
    let mut transaction = world.transaction();
    let later = message("a")
        .partition_key("one")
        .scheduled_at(crate::bus::START + crate::bus::secs(60));
    let numbers = world.schedule_in(&mut transaction, "q", &[later]).unwrap();
    world.commit(transaction).unwrap();
    let (broker_properties, _) = world.the_only("q", SubQueue::Active);
    assert_eq!(numbers, [broker_properties.sequence_number]);
    world
        .operate("q", |entity, cx| entity.cancel_scheduled(cx, &numbers))
        .unwrap();
}

#[test]
fn a_message_that_passes_through_has_a_key_for_that() {
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
