//! What is sent to an entity that forwards goes on after the commit.

use servicebus_broker::SubQueue;

use crate::bus::{rules, secs};
use crate::world::{World, bury};

#[test]
fn nothing_goes_on_before_the_commit_and_all_of_it_after() {
    let mut world = World::chain(&["a", "b", "c"]);
    let mut transaction = world.transaction();
    for id in ["1", "2"] {
        world.send_in(&mut transaction, "a", id);
    }
    assert!(world.everything().is_empty());
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("c"), ["1", "2"]);
}

#[test]
fn dead_letters_go_on_after_the_commit() {
    let mut world = World::new();
    world.declare("graves", rules());
    world.declare("q", rules().forward_dead_letters_to("graves"));
    world.send("q", "a");
    let locked = world.lock("q");
    let mut transaction = world.transaction();
    let settled = world.settle_in(&mut transaction, "q", &locked, bury("why"));
    settled.unwrap();
    assert!(world.queued("graves").is_empty());
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("graves"), ["a"]);
    assert_eq!(world.reasons("graves", SubQueue::Active), ["why"]);
}

#[test]
fn a_target_drops_the_duplicates_of_a_transaction() {
    let mut world = World::new();
    world.declare("b", rules().duplicate_detection(secs(600)));
    world.declare("a", rules().forward_to("b"));
    let mut transaction = world.transaction();
    for id in ["1", "1", "2"] {
        world.send_in(&mut transaction, "a", id);
    }
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("b"), ["1", "2"]);
}
