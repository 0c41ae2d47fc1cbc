//! What happens to messages while they are on their way: carrying them takes three steps, and others work between them.

use std::panic::{AssertUnwindSafe, catch_unwind};

use servicebus_broker::{Entity, SubQueue};

use crate::bus::{message, rules, secs};
use crate::world::World;

#[test]
fn what_is_removed_while_it_is_carried_is_not_missed() {
    let mut world = World::chain(&["a", "b"]);
    world.interrupt_before("b", |world| {
        world.operate("a", Entity::reset);
    });
    world.send("a", "1");
    assert!(world.queued("a").is_empty());
    assert_eq!(world.queued("b"), ["1"], "it had left");
    world.send("a", "2");
    assert_eq!(world.queued("b"), ["1", "2"]);
}

#[test]
fn what_is_carried_while_forwarding_is_unset_has_left() {
    let mut world = World::chain(&["a", "b"]);
    world.interrupt_before("b", |world| {
        world.update("a", |queue| queue.forward_to = None);
    });
    world.send("a", "1");
    world.send("a", "2");
    assert_eq!(world.queued("b"), ["1"]);
    assert_eq!(world.queued("a"), ["2"]);
}

#[test]
fn a_source_that_is_deleted_while_it_is_carried_from_is_not_missed() {
    let mut world = World::chain(&["a", "b"]);
    world.interrupt_before("b", |world| {
        world.delete("a");
        world.declare("a", rules().forward_to("b"));
    });
    world.send("a", "1");
    assert_eq!(world.queued("b"), ["1"]);
    world.send("a", "2");
    assert_eq!(world.queued("b"), ["1", "2"]);
}

#[test]
fn what_is_carried_by_the_name_of_another_is_not_taken_for_its_own() {
    let mut world = World::chain(&["a", "b"]);
    world.interrupt_before("b", |world| {
        world.delete("a");
        world.declare("a", rules().forward_to("b"));
        // Another thread is about to hand over the first message of the new entity, which has the number of the old one's.
        world.interrupt_before("b", |_| panic!("it gets no further"));
        let sent = catch_unwind(AssertUnwindSafe(|| world.send("a", "2")));
        assert!(sent.is_err());
    });
    world.send("a", "1");
    assert_eq!(world.queued("b"), ["1"]);
    assert_eq!(
        world.held("a", SubQueue::Active),
        ["2"],
        "not handed over yet"
    );
}

#[test]
fn what_the_old_target_refuses_goes_to_the_new_one() {
    let mut world = World::new();
    world.declare("a", rules().forward_to("missing"));
    world.declare("b", rules());
    world.interrupt_before("missing", |world| retarget(world, "a", "b"));
    world.send("a", "1");
    assert_eq!(world.queued("b"), ["1"]);
    assert!(world.transfer_dead_letters("a").is_empty());
}

#[test]
fn so_does_a_dead_letter() {
    let mut world = World::new();
    world.declare("a", rules().forward_dead_letters_to("missing"));
    world.declare("b", rules());
    world.interrupt_before("missing", |world| {
        world.update("a", |queue| {
            queue.forward_dead_lettered_messages_to = Some("b".parse().unwrap());
        });
    });
    world.send("a", "1");
    world.dead_letter_next("a", "bad");
    assert_eq!(world.queued("b"), ["1"]);
}

#[test]
fn what_is_sent_while_others_are_carried_follows_them() {
    let mut world = World::chain(&["a", "b"]);
    world.interrupt_before("b", |world| {
        world.send("a", "2");
        assert_eq!(world.queued("a"), ["1", "2"], "one batch at a time");
    });
    world.send("a", "1");
    assert_eq!(world.queued("b"), ["1", "2"]);
}

#[test]
fn nothing_expires_that_is_carried() {
    let mut world = World::chain(&["a", "b"]);
    world.interrupt_before("b", |world| world.advance(secs(10)));
    let short = message("1").time_to_live(secs(10));
    world.post("a", &short).unwrap();
    assert_eq!(world.queued("b"), ["1"]);
    world.advance(secs(10));
    assert!(world.queued("b").is_empty());
}

fn retarget(world: &mut World, name: &str, target: &str) {
    world.update(name, |queue| {
        queue.forward_to = Some(target.parse().unwrap())
    });
}
