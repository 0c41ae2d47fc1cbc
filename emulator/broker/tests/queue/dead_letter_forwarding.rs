//! Forwarding of dead letters to another queue (semantics §3.3; decisions D3, D22, D23).

use servicebus_broker::filter::Filter;
use servicebus_broker::{
    EntityDescription, EntityStatus, RETRY_INTERVAL, ReceiveMode, SequenceNumber, SubQueue,
};

use crate::bus::{annotation, message, rules, secs, text};
use crate::world::{World, acting};

const ACTIVE: SubQueue = SubQueue::Active;
const DEAD: SubQueue = SubQueue::DeadLetter;
const SOURCE: &str = "x-opt-deadletter-source";

/// A queue `orders` whose dead letters go to `graveyard`, which is not declared.
fn world() -> World {
    let mut world = World::new();
    world.declare("orders", rules().forward_dead_letters_to("graveyard"));
    world
}

/// Sends a message to `orders` and dead-letters it.
fn bury(world: &mut World, id: &str) {
    world.send("orders", id);
    world.dead_letter_next("orders", "bad");
}

#[test]
fn they_arrive_as_messages_with_their_reason_and_their_source() {
    let mut world = world();
    world.declare("graveyard", rules());
    world.send("orders", "before");
    world.receive("orders").unwrap();
    bury(&mut world, "1");
    assert!(world.dead_letters("orders").is_empty());
    let (properties, message) = world.the_only("graveyard", ACTIVE);
    assert_eq!(text(&message, "DeadLetterReason").as_deref(), Some("bad"));
    let source = annotation(&message, &properties, SOURCE);
    assert_eq!(source.as_deref(), Some("orders"));
    assert_eq!(properties.sequence_number, SequenceNumber(1));
    assert_eq!(properties.enqueued_sequence_number, Some(SequenceNumber(2)));
    assert_eq!(properties.delivery_count, 0);
}

#[test]
fn what_is_not_forwarded_has_no_source() {
    let mut world = World::new();
    world.declare("orders", rules());
    bury(&mut world, "1");
    let (properties, message) = world.the_only("orders", DEAD);
    assert_eq!(annotation(&message, &properties, SOURCE), None);
}

#[test]
fn what_time_has_dead_lettered_goes_on_too() {
    let mut world = World::new();
    let orders = rules().dead_lettering_on_expiration();
    world.declare("orders", orders.forward_dead_letters_to("graveyard"));
    world.declare("graveyard", rules());
    let short = message("1").time_to_live(secs(10));
    world.post("orders", &short).unwrap();
    world.advance(secs(10));
    assert_eq!(world.reasons("graveyard", ACTIVE), ["TTLExpiredException"]);
    world.advance(secs(10));
    assert!(
        world.queued("graveyard").is_empty(),
        "there it lives and dies as any other message"
    );
}

#[test]
fn while_the_target_cannot_take_them_they_stay_with_their_first_reason() {
    let missing = world();
    let mut disabled = world();
    disabled.declare("graveyard", rules().status(EntityStatus::Disabled));
    let mut full = world();
    full.declare("graveyard", rules().of_one_megabyte());
    let filler = message("filler").body(1_048_520);
    full.post("graveyard", &filler).unwrap();
    for mut world in [missing, disabled, full] {
        bury(&mut world, "1");
        bury(&mut world, "2");
        assert_eq!(world.dead_letters("orders"), ["1", "2"]);
        assert_eq!(world.reasons("orders", DEAD), ["bad", "bad"]);
        assert!(world.transfer_dead_letters("orders").is_empty());
    }
}

#[test]
fn they_go_on_in_order_when_the_target_is_declared() {
    let mut world = world();
    for id in ["1", "2", "3"] {
        bury(&mut world, id);
    }
    world.declare("graveyard", rules());
    bury(&mut world, "4");
    assert!(world.queued("graveyard").is_empty(), "it is not tried yet");
    world.advance(RETRY_INTERVAL);
    assert_eq!(world.queued("graveyard"), ["1", "2", "3", "4"]);
    assert!(world.dead_letters("orders").is_empty());
}

#[test]
fn they_go_on_in_order_when_the_target_is_enabled() {
    let mut world = world();
    world.declare("graveyard", rules().status(EntityStatus::SendDisabled));
    for id in ["1", "2", "3"] {
        bury(&mut world, id);
    }
    world.update("graveyard", |queue| queue.status = EntityStatus::Active);
    world.advance(RETRY_INTERVAL);
    assert_eq!(world.queued("graveyard"), ["1", "2", "3"]);
}

/// A world whose graveyard has room for what is sent to it but not for a large dead letter.
fn with_little_room() -> World {
    let mut world = world();
    world.declare("graveyard", rules().of_one_megabyte());
    for id in ["filler 1", "filler 2"] {
        let filler = message(id).body(500_000);
        world.post("graveyard", &filler).unwrap();
    }
    world
}

#[test]
fn they_go_on_in_order_when_there_is_room() {
    let mut world = with_little_room();
    for (id, bytes) in [("large", 300_000), ("small", 10)] {
        world.post("orders", &message(id).body(bytes)).unwrap();
        world.dead_letter_next("orders", "bad");
    }
    assert_eq!(
        world.dead_letters("orders"),
        ["large", "small"],
        "the small one does not overtake"
    );
    world.receive("graveyard").unwrap();
    world.advance(RETRY_INTERVAL);
    assert_eq!(world.queued("graveyard"), ["filler 2", "large", "small"]);
}

#[test]
fn each_is_tried_again_until_there_is_room_for_it() {
    let mut world = with_little_room();
    world.declare("returns", rules().forward_dead_letters_to("graveyard"));
    for name in ["orders", "returns"] {
        world.post(name, &message(name).body(300_000)).unwrap();
        world.dead_letter_next(name, "bad");
    }
    world.send("graveyard", "another");
    world.advance(RETRY_INTERVAL * 3);
    assert_eq!(world.dead_letters("orders"), ["orders"]);
    assert_eq!(world.dead_letters("returns"), ["returns"]);
    world.receive("graveyard").unwrap();
    world.advance(RETRY_INTERVAL);
    assert_eq!(
        world.queued("graveyard"),
        ["filler 2", "another", "orders"],
        "one of them finds room"
    );
    assert_eq!(world.dead_letters("returns"), ["returns"]);
}

#[test]
fn while_they_wait_they_can_be_received_and_go_on_when_their_lock_ends() {
    let mut world = world();
    for id in ["1", "2", "3"] {
        bury(&mut world, id);
    }
    let mode = ReceiveMode::ReceiveAndDelete;
    world.take("orders", DEAD, mode).unwrap();
    let mode = ReceiveMode::PeekLock;
    world.take("orders", DEAD, mode).unwrap();
    world.declare("graveyard", rules());
    world.advance(RETRY_INTERVAL);
    assert_eq!(world.queued("graveyard"), ["3"]);
    world.advance(secs(60));
    assert_eq!(world.queued("graveyard"), ["3", "2"]);
}

#[test]
fn a_new_target_is_tried_at_once() {
    let mut world = world();
    bury(&mut world, "1");
    world.declare("cellar", rules());
    world.update("orders", |queue| {
        queue.forward_dead_lettered_messages_to = Some("cellar".parse().unwrap());
    });
    assert_eq!(world.queued("cellar"), ["1"]);
}

#[test]
fn without_a_target_they_stay_and_go_on_when_there_is_one() {
    let mut world = World::new();
    world.declare("orders", rules());
    world.declare("graveyard", rules());
    bury(&mut world, "1");
    bury(&mut world, "2");
    world.update("orders", |queue| {
        queue.forward_dead_lettered_messages_to = Some("graveyard".parse().unwrap());
    });
    assert_eq!(world.queued("graveyard"), ["1", "2"]);
}

#[test]
fn what_ran_out_of_hops_is_not_forwarded_on() {
    let mut world = World::new();
    for (name, next) in [("q1", "q2"), ("q2", "q3"), ("q3", "q4"), ("q4", "q5")] {
        world.declare(name, rules().forward_to(next));
    }
    let last = rules()
        .forward_to("q6")
        .forward_dead_letters_to("graveyard");
    world.declare("q5", last.failed_forwards_to_dead_letters());
    world.declare("graveyard", rules());
    world.send("q1", "five hops");
    world.send("q5", "one hop");
    assert_eq!(world.dead_letters("q5"), ["five hops"]);
    assert_eq!(world.reasons("q5", DEAD), ["MaxTransferHopCountExceeded"]);
    assert_eq!(world.queued("graveyard"), ["one hop"]);
    let reasons = world.reasons("graveyard", ACTIVE);
    assert_eq!(reasons, ["MessagingEntityNotFoundException"]);
}

#[test]
fn a_dead_letter_has_no_more_hops_than_others() {
    let mut world = World::chain(&["q1", "q2", "q3", "q4", "q5"]);
    world.declare("graveyard", rules());
    world.update("q5", |queue| {
        queue.forward_dead_lettered_messages_to = Some("graveyard".parse().unwrap());
    });
    world.send("q1", "1");
    world.dead_letter_next("q5", "bad");
    assert_eq!(world.dead_letters("q5"), ["1"]);
    assert_eq!(world.reasons("q5", DEAD), ["bad"], "the first reason");
    world.send("q2", "2");
    world.dead_letter_next("q5", "bad");
    assert_eq!(world.queued("graveyard"), ["2"]);
}

#[test]
fn one_that_can_never_go_on_does_not_hold_up_the_others() {
    const SUBSCRIPTION: &str = "t/Subscriptions/s";
    let expected = [
        (rules().partitioned(), vec!["torn"], vec!["sound"]),
        (rules(), vec![], vec!["torn", "sound"]),
    ];
    for (graveyard, left, arrived) in expected {
        let mut world = World::topic(&[]);
        world.declare("graveyard", graveyard);
        let change = |subscription: &mut EntityDescription| {
            subscription.forward_dead_lettered_messages_to = Some("graveyard".parse().unwrap());
        };
        let action = acting("r", Filter::True, "SET sys.PartitionKey = 'k'");
        world.subscribe_by(SUBSCRIPTION, change, [action]);
        for sent in [message("torn").session("s"), message("sound")] {
            world.post("t", &sent).unwrap();
            world.dead_letter_next(SUBSCRIPTION, "bad");
        }
        assert_eq!(world.dead_letters(SUBSCRIPTION), left);
        assert_eq!(world.queued("graveyard"), arrived);
    }
}

#[test]
fn a_copy_that_exceeds_the_header_limit_is_dead_lettered_on_arrival() {
    let mut world = World::new();
    let long = "a".repeat(260);
    world.declare(&long, rules().forward_dead_letters_to("graveyard"));
    world.declare("graveyard", rules());
    // Just within the limits when it is sent; the name of the queue is added when it is forwarded.
    let texts = ["x".repeat(32 * 1024), "y".repeat(32 * 1024 - 200)];
    let large = message("1").text(&texts[0]).text(&texts[1]);
    world.post(&long, &large).unwrap();
    world.dead_letter_next(&long, "bad");
    assert!(world.queued("graveyard").is_empty());
    let reasons = world.reasons("graveyard", DEAD);
    assert_eq!(reasons, ["HeaderSizeExceeded"]);
}

#[test]
fn dead_letters_that_come_back_to_their_own_queue_stay_when_their_hops_are_used_up() {
    let mut world = World::new();
    world.declare(
        "a",
        rules().max_delivery_count(1).forward_dead_letters_to("a"),
    );
    world.send("a", "1");
    for _ in 0..4 {
        world.dead_letter_next("a", "bad");
        assert_eq!(world.queued("a"), ["1"]);
    }
    world.dead_letter_next("a", "bad");
    assert!(world.queued("a").is_empty());
    assert_eq!(world.dead_letters("a"), ["1"]);
}

#[test]
fn room_that_became_free_without_an_operation_is_found_as_well() {
    let mut world = world();
    world.declare("graveyard", rules().of_one_megabyte());
    let mut transaction = world.transaction();
    world
        .post_in(
            &mut transaction,
            "graveyard",
            &[message("reserved").body(900_000)],
        )
        .unwrap();
    world
        .post("orders", &message("large").body(300_000))
        .unwrap();
    world.dead_letter_next("orders", "bad");
    assert_eq!(world.dead_letters("orders"), ["large"]);
    drop(transaction);
    world.advance(RETRY_INTERVAL);
    assert_eq!(world.queued("graveyard"), ["large"]);
}
