//! The outcomes of a delivery (semantics §2.3).
//!
//! Transfers of messages take three steps, between which other operations run.

use std::panic::{AssertUnwindSafe, catch_unwind};

use servicebus_broker::{
    Entity, EventKind, LockToken, Outcome, PropertyChanges, SettleError, SubQueue,
};
use uuid::Uuid;

use crate::bus::{bus, ids, message, rules, secs, text};
use crate::world::World;

#[test]
fn completed_messages_are_removed() {
    let mut bus = bus().with(&["a"]);
    let (_, delivery) = bus.receive_first();
    assert_eq!(bus.complete(&delivery), Ok(()));
    assert!(bus.queued().is_empty());
    assert_eq!(bus.counts(), servicebus_broker::Counts::default());
    assert_eq!(bus.next_deadline(), None);
}

#[test]
fn a_second_settlement_of_a_delivery_is_a_lost_lock() {
    let mut bus = bus().with(&["a"]);
    let (_, delivery) = bus.receive_first();
    bus.complete(&delivery).unwrap();
    assert_eq!(bus.complete(&delivery), Err(SettleError::LockLost));
    assert_eq!(bus.abandon(&delivery), Err(SettleError::LockLost));
}

#[test]
fn an_earlier_lock_token_does_not_settle_a_new_delivery() {
    let mut bus = bus().with(&["a"]);
    let (receiver, first) = bus.receive_first();
    bus.abandon(&first).unwrap();
    bus.receive_one(receiver);
    assert_eq!(bus.complete(&first), Err(SettleError::LockLost));
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn unknown_lock_tokens_settle_nothing() {
    let mut bus = bus().with(&["a"]);
    for bits in [0, u128::MAX, 1, 0x1234_5678 << 64] {
        let token = LockToken::from(Uuid::from_u128(bits));
        let settled = bus.settle(SubQueue::Active, token, Outcome::Complete);
        assert_eq!(settled, Err(SettleError::LockLost));
    }
}

#[test]
fn an_abandoned_message_is_counted_and_delivered_first() {
    let mut bus = bus().with(&["a", "b"]);
    let (receiver, delivery) = bus.receive_first();
    bus.abandon(&delivery).unwrap();
    let taken = bus.receive(receiver, 2);
    assert_eq!(ids(&taken), ["a", "b"]);
    assert_eq!(taken[0].broker_properties.delivery_count, 1);
    assert_eq!(taken[1].broker_properties.delivery_count, 0);
}

#[test]
fn a_released_message_is_not_counted_and_keeps_its_order() {
    let mut bus = bus().with(&["a", "b", "c"]);
    let receiver = bus.receiver();
    let taken = bus.receive(receiver, 2);
    bus.release(&taken[1]).unwrap();
    bus.release(&taken[0]).unwrap();
    let again = bus.receive(receiver, 3);
    assert_eq!(ids(&again), ["a", "b", "c"]);
    assert!(
        again
            .iter()
            .all(|delivery| delivery.broker_properties.delivery_count == 0)
    );
}

#[test]
fn releasing_a_message_never_dead_letters_it() {
    let mut bus = rules().max_delivery_count(1).bus().with(&["a"]);
    let receiver = bus.receiver();
    for _ in 0..5 {
        let delivery = bus.receive_one(receiver);
        bus.release(&delivery).unwrap();
    }
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn properties_set_by_an_abandon_appear_on_the_next_delivery() {
    let mut bus = bus().with(&["a"]);
    let receiver = bus.receiver();
    for (name, value) in [("attempt", "1"), ("node", "x"), ("attempt", "2")] {
        let delivery = bus.receive_one(receiver);
        let mut changes = PropertyChanges::new();
        changes.set_text(name, value);
        let outcome = Outcome::Abandon { changes };
        bus.settle(SubQueue::Active, delivery.token, outcome)
            .unwrap();
    }
    let message = bus.receive_one(receiver).message;
    assert_eq!(text(&message, "attempt").as_deref(), Some("2"));
    assert_eq!(text(&message, "node").as_deref(), Some("x"));
}

#[test]
fn a_message_received_and_deleted_cannot_be_settled() {
    let mut bus = bus().with(&["a", "b"]);
    let receiver = bus.deleting_receiver();
    let delivery = bus.receive_one(receiver);
    assert_eq!(delivery.broker_properties.lock, None);
    assert_eq!(delivery.broker_properties.delivery_count, 0);
    assert_eq!(bus.queued(), ["b"]);
    assert_eq!(bus.complete(&delivery), Err(SettleError::LockLost));
    assert_eq!(bus.release(&delivery), Err(SettleError::LockLost));
    bus.close(receiver);
    assert_eq!(bus.queued(), ["b"]);
}

#[test]
fn every_delivery_has_its_own_lock_token() {
    let mut bus = bus().with(&["a", "b"]);
    let (locking, deleting) = (bus.receiver(), bus.deleting_receiver());
    let taken = [bus.receive_one(deleting), bus.receive_one(locking)];
    assert_ne!(taken[0].token, taken[1].token);
}

#[test]
fn the_events_of_a_message_are_recorded_in_order() {
    let mut bus = bus().with(&["a"]);
    let (receiver, first) = bus.receive_first();
    bus.abandon(&first).unwrap();
    bus.receive_one(receiver);
    bus.advance(secs(60));
    let last = bus.receive_one(receiver);
    bus.complete(&last).unwrap();
    let kinds: Vec<_> = bus.history().into_iter().map(|(_, kind)| kind).collect();
    assert!(matches!(
        kinds[..],
        [
            EventKind::Enqueued { .. },
            EventKind::Delivered { delivery: 1, .. },
            EventKind::Abandoned { delivery_count: 1 },
            EventKind::Delivered { delivery: 2, .. },
            EventKind::LockExpired { delivery_count: 2 },
            EventKind::Delivered { delivery: 3, .. },
            EventKind::Completed,
        ]
    ));
}

#[test]
fn a_reset_during_a_transfer_does_not_fail_the_transfer() {
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
fn a_transfer_in_progress_completes_after_forward_to_is_unset() {
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
fn deleting_the_source_during_a_transfer_does_not_fail_the_transfer() {
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
fn a_recreated_source_does_not_complete_transfers_of_its_predecessor() {
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
fn a_message_refused_by_the_old_target_goes_to_the_new_target() {
    let mut world = World::new();
    world.declare("a", rules().forward_to("missing"));
    world.declare("b", rules());
    world.interrupt_before("missing", |world| retarget(world, "a", "b"));
    world.send("a", "1");
    assert_eq!(world.queued("b"), ["1"]);
    assert!(world.transfer_dead_letters("a").is_empty());
}

#[test]
fn a_dead_letter_refused_by_the_old_target_goes_to_the_new_target() {
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
fn a_message_sent_during_a_transfer_is_forwarded_after_it() {
    let mut world = World::chain(&["a", "b"]);
    world.interrupt_before("b", |world| {
        world.send("a", "2");
        assert_eq!(world.queued("a"), ["1", "2"], "one batch at a time");
    });
    world.send("a", "1");
    assert_eq!(world.queued("b"), ["1", "2"]);
}

#[test]
fn a_message_in_transfer_does_not_expire_at_its_source() {
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
