//! Forwarding to another queue (semantics §11; decisions D3, D8).

use servicebus_broker::{
    EntityStatus, EventKind, MessageAction, Outcome, PropertyChanges, ReceiveMode, SequenceNumber,
    SubQueue,
};

use crate::bus::{START, message, rules, secs, text};
use crate::world::World;

const TRANSFER: SubQueue = SubQueue::TransferDeadLetter;

#[test]
fn messages_are_forwarded_along_a_chain_in_order() {
    let mut world = World::chain(&["a", "b", "c"]);
    for id in ["1", "2", "3"] {
        world.send("a", id);
    }
    assert!(world.queued("a").is_empty());
    assert!(world.queued("b").is_empty());
    assert_eq!(world.queued("c"), ["1", "2", "3"]);
}

#[test]
fn a_batch_larger_than_one_transfer_is_forwarded_in_order() {
    let mut world = World::chain(&["a", "b"]);
    let ids: Vec<String> = (0..200).map(|number| number.to_string()).collect();
    let messages: Vec<_> = ids.iter().map(|id| message(id)).collect();
    world.post_all("a", &messages).unwrap();
    assert_eq!(world.queued("b"), ids);
}

#[test]
fn a_forwarded_message_keeps_only_its_enqueued_sequence_number() {
    let mut world = World::chain(&["a", "b", "c"]);
    world.send("b", "before");
    world.send("a", "before");
    world.advance(secs(5));
    let number = world.post("a", &message("x").text("kept")).unwrap();
    assert_eq!(number, SequenceNumber(2));
    let (properties, message) = world.peek("c", SubQueue::Active).pop().unwrap();
    assert_eq!(properties.sequence_number, SequenceNumber(3));
    assert_eq!(properties.enqueued_sequence_number, Some(SequenceNumber(2)));
    assert_eq!(properties.enqueued_at, START + secs(5));
    assert_eq!(text(&message, "text 0").as_deref(), Some("kept"));
}

#[test]
fn the_delivery_count_restarts_after_a_forward() {
    let mut world = World::new();
    world.declare("b", rules());
    world.declare("a", rules());
    world.send("a", "1");
    for _ in 0..3 {
        let changes = PropertyChanges::new();
        world.settle_next("a", Outcome::Abandon { changes });
    }
    world.update("a", |queue| queue.forward_to = Some("b".parse().unwrap()));
    let (properties, _) = world.the_only("b", SubQueue::Active);
    assert_eq!(properties.delivery_count, 0);
}

#[test]
fn a_message_that_is_activated_early_is_not_scheduled_again_where_it_is_forwarded() {
    let mut world = World::chain(&["a", "b"]);
    let later = message("x").scheduled_at(START + secs(90));
    let number = world.post("a", &later).unwrap();
    world.advance(secs(5));
    let done = world.operate("a", |entity, cx| {
        entity.apply_action(cx, SubQueue::Active, number, &MessageAction::Activate)
    });
    done.unwrap();
    let (properties, message) = world.the_only("b", SubQueue::Active);
    assert_eq!(properties.state, Some(0));
    assert_eq!(message.scheduled_at(), Some(START + secs(5)));
}

#[test]
fn four_forwards_are_allowed() {
    let mut world = World::chain(&["q1", "q2", "q3", "q4", "q5"]);
    world.send("q1", "1");
    assert_eq!(world.queued("q5"), ["1"]);
}

#[test]
fn the_fifth_forward_is_a_transfer_dead_letter_of_the_fifth_queue() {
    let mut world = World::chain(&["q1", "q2", "q3", "q4", "q5", "q6"]);
    world.send("q1", "1");
    world.send("q2", "2");
    assert_eq!(world.queued("q6"), ["2"]);
    let (properties, message) = world.the_only("q5", TRANSFER);
    let reason = text(&message, "DeadLetterReason");
    assert_eq!(reason.as_deref(), Some("MaxTransferHopCountExceeded"));
    let description = text(&message, "DeadLetterErrorDescription");
    let expected =
        "The maximum number of allowed hops when forwarding between queues. Value is set to 4.";
    assert_eq!(description.as_deref(), Some(expected));
    assert_eq!(properties.delivery_count, 0);
}

#[test]
fn a_forwarding_cycle_ends_at_the_hop_limit() {
    let mut world = World::new();
    world.declare("a", rules().forward_to("b"));
    world.declare("b", rules().forward_to("a"));
    world.send("a", "1");
    assert_eq!(world.transfer_dead_letters("a"), ["1"]);
    world.send("b", "2");
    assert_eq!(world.transfer_dead_letters("b"), ["2"]);
}

#[test]
fn a_message_refused_by_the_target_is_a_transfer_dead_letter() {
    let missing = World::new();
    let mut disabled = World::new();
    disabled.declare("b", rules().status(EntityStatus::Disabled));
    let mut no_sends = World::new();
    no_sends.declare("b", rules().status(EntityStatus::SendDisabled));
    let mut full = World::new();
    full.declare("b", rules().of_one_megabyte());
    full.post("b", &message("filler").body(1_048_000)).unwrap();
    let cases = [
        (missing, "MessagingEntityNotFoundException"),
        (disabled, "MessagingEntityDisabledException"),
        (no_sends, "MessagingEntityDisabledException"),
        (full, "QuotaExceededException"),
    ];
    for (mut world, reason) in cases {
        world.declare("a", rules().forward_to("b"));
        let messages = ["1", "2", "3"].map(|id| message(id).body(1_000));
        world.post_all("a", &messages).unwrap();
        assert_eq!(world.transfer_dead_letters("a"), ["1", "2", "3"]);
        assert_eq!(world.reasons("a", TRANSFER), [reason; 3]);
        assert!(world.dead_letters("a").is_empty());
        let counts = world.entity("a").counts(SubQueue::Active);
        assert_eq!((counts.transfer_dead_letter, counts.transfer), (3, 0));
    }
}

#[test]
fn failed_forwards_are_dead_lettered_if_the_namespace_is_configured_so() {
    let mut world = World::new();
    world.declare(
        "a",
        rules().forward_to("b").failed_forwards_to_dead_letters(),
    );
    world.send("a", "1");
    assert_eq!(world.dead_letters("a"), ["1"]);
    assert!(world.transfer_dead_letters("a").is_empty());
}

#[test]
fn a_target_that_fills_up_takes_the_messages_that_fit() {
    let mut world = World::new();
    world.declare("b", rules().of_one_megabyte());
    world.declare("a", rules().forward_to("b"));
    let messages = [("1", 600_000), ("2", 600_000), ("3", 300_000)];
    let messages = messages.map(|(id, bytes)| message(id).body(bytes));
    world.post_all("a", &messages).unwrap();
    assert_eq!(world.queued("b"), ["1", "3"]);
    assert_eq!(world.transfer_dead_letters("a"), ["2"]);
}

#[test]
fn messages_for_a_deleted_target_are_transfer_dead_letters() {
    let mut world = World::chain(&["a", "b"]);
    world.send("a", "1");
    world.delete("b");
    world.send("a", "2");
    assert_eq!(world.transfer_dead_letters("a"), ["2"]);
    world.declare("b", rules());
    world.send("a", "3");
    assert_eq!(world.queued("b"), ["3"]);
}

#[test]
fn the_time_to_live_restarts_at_the_forwarding_target() {
    let mut world = World::new();
    world.declare("b", rules());
    world.declare("a", rules());
    world
        .post("a", &message("own").time_to_live(secs(10)))
        .unwrap();
    world.send("a", "none");
    world.advance(secs(6));
    world.update("a", |queue| queue.forward_to = Some("b".parse().unwrap()));
    world.advance(secs(10) - secs(1));
    assert_eq!(world.queued("b"), ["own", "none"]);
    world.advance(secs(1));
    assert_eq!(world.queued("b"), ["none"]);
}

#[test]
fn the_default_time_to_live_of_the_target_limits_forwarded_messages() {
    let mut world = World::new();
    world.declare("b", rules().default_time_to_live(secs(5)));
    world.declare("a", rules().forward_to("b"));
    world
        .post("a", &message("1").time_to_live(secs(10)))
        .unwrap();
    world.advance(secs(5));
    assert!(world.queued("b").is_empty());
}

#[test]
fn a_forwarding_target_drops_duplicates() {
    let mut world = World::new();
    world.declare("b", rules().duplicate_detection(secs(60)));
    world.declare("a", rules().forward_to("b"));
    world.send("b", "1");
    world.send("a", "1");
    world.send("a", "2");
    assert_eq!(world.queued("b"), ["1", "2"]);
    assert!(world.everything().len() == 2, "nothing is left behind");
}

#[test]
fn messages_are_forwarded_when_forward_to_is_set_and_stay_when_unset() {
    let mut world = World::new();
    world.declare("b", rules());
    world.declare("a", rules());
    world.send("a", "1");
    world.update("a", |queue| queue.forward_to = Some("b".parse().unwrap()));
    world.send("a", "2");
    world.update("a", |queue| queue.forward_to = None);
    world.send("a", "3");
    assert_eq!(world.queued("b"), ["1", "2"]);
    assert_eq!(world.queued("a"), ["3"]);
    assert!(
        world.receive("a").is_some(),
        "it can be received from again"
    );
}

#[test]
fn locked_messages_are_forwarded_when_forward_to_is_set() {
    let mut world = World::new();
    world.declare("b", rules());
    world.declare("a", rules());
    world.send("a", "1");
    let mode = ReceiveMode::PeekLock;
    world.take("a", SubQueue::Active, mode).unwrap();
    world.update("a", |queue| queue.forward_to = Some("b".parse().unwrap()));
    assert_eq!(world.queued("b"), ["1"]);
}

#[test]
fn deferred_messages_are_not_forwarded() {
    let mut world = World::new();
    world.declare("b", rules());
    world.declare("a", rules());
    world.send("a", "1");
    let changes = PropertyChanges::new();
    world.settle_next("a", Outcome::Defer { changes });
    world.update("a", |queue| queue.forward_to = Some("b".parse().unwrap()));
    assert_eq!(world.queued("a"), ["1"]);
    assert!(world.queued("b").is_empty());
}

#[test]
fn a_queue_that_forwards_cannot_be_received_from() {
    let mut world = World::new();
    world.declare("a", rules().forward_to("b"));
    world.interrupt_before("b", |world| {
        assert_eq!(world.entity("a").counts(SubQueue::Active).transfer, 1);
        assert!(world.entity("a").is_forwarding());
    });
    world.declare("b", rules());
    world.send("a", "1");
    assert!(world.receive("a").is_none());
}

#[test]
fn a_scheduled_message_is_forwarded_when_it_becomes_active() {
    let mut world = World::chain(&["a", "b"]);
    let later = message("later").scheduled_at(START + secs(60));
    world.post("a", &later).unwrap();
    world.send("a", "now");
    assert_eq!(world.queued("a"), ["later"]);
    world.advance(secs(60));
    assert_eq!(world.queued("b"), ["now", "later"]);
    let (properties, _) = world.peek("b", SubQueue::Active).pop().unwrap();
    assert_eq!(properties.enqueued_at, START + secs(60));
    let number = properties.enqueued_sequence_number;
    assert_eq!(number, Some(SequenceNumber(3)), "that of its activation");
}

#[test]
fn a_forwarded_event_has_the_target() {
    let mut world = World::chain(&["a", "b"]);
    world.send("a", "1");
    let last = world.events.iter().last().unwrap();
    let EventKind::Forwarded { to } = last.kind else {
        panic!("forwarded, and nothing after it: {last:?}");
    };
    assert_eq!(world.events.read(to), "b");
}

#[test]
fn a_queue_that_forwards_to_itself_stops_at_the_hop_limit() {
    let mut world = World::new();
    world.declare("a", rules().forward_to("a"));
    for id in ["1", "2"] {
        world.send("a", id);
    }
    assert!(world.queued("a").is_empty());
    assert_eq!(world.held("a", TRANSFER), ["1", "2"]);
    let hops = "MaxTransferHopCountExceeded".to_owned();
    assert_eq!(world.reasons("a", TRANSFER), [hops.clone(), hops]);
    // Each hop assigns a sequence number: sent as 1, forwarded as 2 to 5, dead-lettered under the next.
    let (properties, _) = world.peek("a", TRANSFER).remove(0);
    assert_eq!(properties.enqueued_sequence_number, Some(SequenceNumber(1)));
}

#[test]
fn a_subscription_forwarding_to_its_own_topic_stops_at_the_hop_limit() {
    let mut world = World::new();
    world.declare_topic("t", |_| {});
    let own = "t/Subscriptions/a";
    world.subscribe(own, |own| own.forward_to = Some("t".parse().unwrap()));
    world.send("t", "1");
    assert_eq!(world.held(own, TRANSFER), ["1"]);
}

#[test]
fn an_entity_with_sessions_forwards_messages_with_a_session_id() {
    let mut world = World::new();
    world.declare("b", rules().sessions());
    world.declare("a", rules().sessions().forward_to("b"));
    world.post("a", &message("1").session("s")).unwrap();
    world.post("a", &message("2").session("r")).unwrap();
    assert!(world.post("a", &message("3")).is_err());
    assert!(world.queued("a").is_empty());
    assert_eq!(world.queued("b"), ["1", "2"]);
    // Waiting messages are forwarded when forwarding is set, in the order of their numbers.
    world.update("a", |queue| queue.forward_to = None);
    world.post("a", &message("4").session("s")).unwrap();
    world.post("a", &message("5").session("r")).unwrap();
    world.update("a", |queue| queue.forward_to = Some("b".parse().unwrap()));
    assert!(world.queued("a").is_empty());
    assert_eq!(world.queued("b"), ["1", "2", "4", "5"]);
}
