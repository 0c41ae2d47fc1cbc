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

/// A queue `orders` whose dead letters go to `failed`, which is not declared.
fn world() -> World {
    let mut world = World::new();
    world.declare("orders", rules().forward_dead_letters_to("failed"));
    world
}

/// Sends a message to `orders` and dead-letters it.
fn send_and_dead_letter(world: &mut World, id: &str) {
    world.send("orders", id);
    world.dead_letter_next("orders", "bad");
}

#[test]
fn a_forwarded_dead_letter_arrives_with_reason_and_source() {
    let mut world = world();
    world.declare("failed", rules());
    world.send("orders", "before");
    world.receive("orders").unwrap();
    send_and_dead_letter(&mut world, "1");
    assert!(world.dead_letters("orders").is_empty());
    let (properties, message) = world.the_only("failed", ACTIVE);
    assert_eq!(text(&message, "DeadLetterReason").as_deref(), Some("bad"));
    let source = annotation(&message, &properties, SOURCE);
    assert_eq!(source.as_deref(), Some("orders"));
    assert_eq!(properties.sequence_number, SequenceNumber(1));
    assert_eq!(properties.enqueued_sequence_number, Some(SequenceNumber(2)));
    assert_eq!(properties.delivery_count, 0);
}

#[test]
fn a_dead_letter_that_is_not_forwarded_has_no_source() {
    let mut world = World::new();
    world.declare("orders", rules());
    send_and_dead_letter(&mut world, "1");
    let (properties, message) = world.the_only("orders", DEAD);
    assert_eq!(annotation(&message, &properties, SOURCE), None);
}

#[test]
fn a_message_dead_lettered_by_expiry_is_forwarded() {
    let mut world = World::new();
    let orders = rules().dead_lettering_on_expiration();
    world.declare("orders", orders.forward_dead_letters_to("failed"));
    world.declare("failed", rules());
    let short = message("1").time_to_live(secs(10));
    world.post("orders", &short).unwrap();
    world.advance(secs(10));
    assert_eq!(world.reasons("failed", ACTIVE), ["TTLExpiredException"]);
    world.advance(secs(10));
    assert!(
        world.queued("failed").is_empty(),
        "there it lives and dies as any other message"
    );
}

#[test]
fn dead_letters_refused_by_the_target_keep_their_reason() {
    let missing = world();
    let mut disabled = world();
    disabled.declare("failed", rules().status(EntityStatus::Disabled));
    let mut full = world();
    full.declare("failed", rules().of_one_megabyte());
    let filler = message("filler").body(1_048_520);
    full.post("failed", &filler).unwrap();
    for mut world in [missing, disabled, full] {
        send_and_dead_letter(&mut world, "1");
        send_and_dead_letter(&mut world, "2");
        assert_eq!(world.dead_letters("orders"), ["1", "2"]);
        assert_eq!(world.reasons("orders", DEAD), ["bad", "bad"]);
        assert!(world.transfer_dead_letters("orders").is_empty());
    }
}

#[test]
fn dead_letters_are_forwarded_in_order_once_the_target_is_created() {
    let mut world = world();
    for id in ["1", "2", "3"] {
        send_and_dead_letter(&mut world, id);
    }
    world.declare("failed", rules());
    send_and_dead_letter(&mut world, "4");
    assert!(world.queued("failed").is_empty(), "it is not tried yet");
    world.advance(RETRY_INTERVAL);
    assert_eq!(world.queued("failed"), ["1", "2", "3", "4"]);
    assert!(world.dead_letters("orders").is_empty());
}

#[test]
fn dead_letters_are_forwarded_in_order_once_the_target_is_enabled() {
    let mut world = world();
    world.declare("failed", rules().status(EntityStatus::SendDisabled));
    for id in ["1", "2", "3"] {
        send_and_dead_letter(&mut world, id);
    }
    world.update("failed", |queue| queue.status = EntityStatus::Active);
    world.advance(RETRY_INTERVAL);
    assert_eq!(world.queued("failed"), ["1", "2", "3"]);
}

/// A world whose queue `failed` has room for what is sent to it but not for a large dead letter.
fn with_little_room() -> World {
    let mut world = world();
    world.declare("failed", rules().of_one_megabyte());
    for id in ["filler 1", "filler 2"] {
        let filler = message(id).body(500_000);
        world.post("failed", &filler).unwrap();
    }
    world
}

#[test]
fn dead_letters_are_forwarded_in_order_once_the_target_has_space() {
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
    world.receive("failed").unwrap();
    world.advance(RETRY_INTERVAL);
    assert_eq!(world.queued("failed"), ["filler 2", "large", "small"]);
}

#[test]
fn dead_letters_of_each_source_are_retried_until_the_target_has_space() {
    let mut world = with_little_room();
    world.declare("returns", rules().forward_dead_letters_to("failed"));
    for name in ["orders", "returns"] {
        world.post(name, &message(name).body(300_000)).unwrap();
        world.dead_letter_next(name, "bad");
    }
    world.send("failed", "another");
    world.advance(RETRY_INTERVAL * 3);
    assert_eq!(world.dead_letters("orders"), ["orders"]);
    assert_eq!(world.dead_letters("returns"), ["returns"]);
    world.receive("failed").unwrap();
    world.advance(RETRY_INTERVAL);
    assert_eq!(
        world.queued("failed"),
        ["filler 2", "another", "orders"],
        "one of them finds room"
    );
    assert_eq!(world.dead_letters("returns"), ["returns"]);
}

#[test]
fn waiting_dead_letters_can_be_received_and_are_forwarded_after_the_lock() {
    let mut world = world();
    for id in ["1", "2", "3"] {
        send_and_dead_letter(&mut world, id);
    }
    let mode = ReceiveMode::ReceiveAndDelete;
    world.take("orders", DEAD, mode).unwrap();
    let mode = ReceiveMode::PeekLock;
    world.take("orders", DEAD, mode).unwrap();
    world.declare("failed", rules());
    world.advance(RETRY_INTERVAL);
    assert_eq!(world.queued("failed"), ["3"]);
    world.advance(secs(60));
    assert_eq!(world.queued("failed"), ["3", "2"]);
}

#[test]
fn dead_letters_are_forwarded_at_once_to_a_changed_target() {
    let mut world = world();
    send_and_dead_letter(&mut world, "1");
    world.declare("archive", rules());
    world.update("orders", |queue| {
        queue.forward_dead_lettered_messages_to = Some("archive".parse().unwrap());
    });
    assert_eq!(world.queued("archive"), ["1"]);
}

#[test]
fn existing_dead_letters_are_forwarded_when_a_target_is_set() {
    let mut world = World::new();
    world.declare("orders", rules());
    world.declare("failed", rules());
    send_and_dead_letter(&mut world, "1");
    send_and_dead_letter(&mut world, "2");
    world.update("orders", |queue| {
        queue.forward_dead_lettered_messages_to = Some("failed".parse().unwrap());
    });
    assert_eq!(world.queued("failed"), ["1", "2"]);
}

#[test]
fn a_dead_letter_with_its_last_hop_used_is_not_forwarded_further() {
    let mut world = World::new();
    for (name, next) in [("q1", "q2"), ("q2", "q3"), ("q3", "q4"), ("q4", "q5")] {
        world.declare(name, rules().forward_to(next));
    }
    let last = rules().forward_to("q6").forward_dead_letters_to("failed");
    world.declare("q5", last.failed_forwards_to_dead_letters());
    world.declare("failed", rules());
    world.send("q1", "five hops");
    world.send("q5", "one hop");
    assert_eq!(world.dead_letters("q5"), ["five hops"]);
    assert_eq!(world.reasons("q5", DEAD), ["MaxTransferHopCountExceeded"]);
    assert_eq!(world.queued("failed"), ["one hop"]);
    let reasons = world.reasons("failed", ACTIVE);
    assert_eq!(reasons, ["MessagingEntityNotFoundException"]);
}

#[test]
fn a_dead_letter_keeps_the_hop_count_of_its_message() {
    let mut world = World::chain(&["q1", "q2", "q3", "q4", "q5"]);
    world.declare("failed", rules());
    world.update("q5", |queue| {
        queue.forward_dead_lettered_messages_to = Some("failed".parse().unwrap());
    });
    world.send("q1", "1");
    world.dead_letter_next("q5", "bad");
    assert_eq!(world.dead_letters("q5"), ["1"]);
    assert_eq!(world.reasons("q5", DEAD), ["bad"], "the first reason");
    world.send("q2", "2");
    world.dead_letter_next("q5", "bad");
    assert_eq!(world.queued("failed"), ["2"]);
}

#[test]
fn a_dead_letter_that_cannot_be_forwarded_does_not_block_later_ones() {
    const SUBSCRIPTION: &str = "t/Subscriptions/s";
    let expected = [
        (rules().partitioned(), vec!["torn"], vec!["sound"]),
        (rules(), vec![], vec!["torn", "sound"]),
    ];
    for (failed, left, arrived) in expected {
        let mut world = World::topic(&[]);
        world.declare("failed", failed);
        let change = |subscription: &mut EntityDescription| {
            subscription.forward_dead_lettered_messages_to = Some("failed".parse().unwrap());
        };
        let action = acting("r", Filter::True, "SET sys.PartitionKey = 'k'");
        world.subscribe_by(SUBSCRIPTION, change, [action]);
        for sent in [message("torn").session("s"), message("sound")] {
            world.post("t", &sent).unwrap();
            world.dead_letter_next(SUBSCRIPTION, "bad");
        }
        assert_eq!(world.dead_letters(SUBSCRIPTION), left);
        assert_eq!(world.queued("failed"), arrived);
        world.declare("plain", rules());
        world.update(SUBSCRIPTION, |subscription| {
            subscription.forward_dead_lettered_messages_to = Some("plain".parse().unwrap());
        });
        assert_eq!(world.queued("plain"), left, "another target accepts it");
    }
}

#[test]
fn a_forwarded_dead_letter_over_the_header_limit_is_dead_lettered() {
    let mut world = World::new();
    let long = "a".repeat(260);
    world.declare(&long, rules().forward_dead_letters_to("failed"));
    world.declare("failed", rules());
    // Just within the limits when it is sent; the name of the queue is added when it is forwarded.
    let texts = ["x".repeat(32 * 1024), "y".repeat(32 * 1024 - 200)];
    let large = message("1").text(&texts[0]).text(&texts[1]);
    world.post(&long, &large).unwrap();
    world.dead_letter_next(&long, "bad");
    assert!(world.queued("failed").is_empty());
    let reasons = world.reasons("failed", DEAD);
    assert_eq!(reasons, ["HeaderSizeExceeded"]);
}

#[test]
fn a_dead_letter_forwarded_to_its_own_queue_stops_at_the_hop_limit() {
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
fn dead_letters_are_forwarded_after_a_dropped_transaction_frees_space() {
    let mut world = world();
    world.declare("failed", rules().of_one_megabyte());
    let mut transaction = world.transaction();
    world
        .post_in(
            &mut transaction,
            "failed",
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
    assert_eq!(world.queued("failed"), ["large"]);
}
