//! Sends to other entities via the entity of the transaction.
//!
//! Messages to an entity that forwards are forwarded after the commit.

use servicebus_broker::{
    EntityPath, EntityStatus, FailedForwards, NamespaceSettings, ReceiveMode, SequenceNumber,
    SubQueue,
};

use crate::bus::{MessageBuilder, START, message, rules, secs};
use crate::world::{World, dead_lettered};

/// What a client does meanwhile.
type Change = fn(&mut World);

const TRANSFER: SubQueue = SubQueue::TransferDeadLetter;

/// Queues that do not know of each other.
fn world(names: &[&str]) -> World {
    let mut world = World::new();
    for name in names {
        world.declare(name, rules());
    }
    world
}

fn messages(ids: &[&str]) -> Vec<MessageBuilder> {
    ids.iter().map(|id| message(id)).collect()
}

#[test]
fn a_transaction_completes_in_one_queue_and_sends_to_another() {
    let mut world = world(&["in", "out"]);
    world.send("in", "request");
    let locked = world.lock("in");
    let mut transaction = world.transaction();
    world.complete_in(&mut transaction, "in", &locked).unwrap();
    let sent = world.transfer_in(&mut transaction, "in", "out", &messages(&["reply"]));
    sent.unwrap();
    assert_eq!(world.everything(), ["request"]);
    world.commit(transaction).unwrap();
    assert!(world.queued("in").is_empty());
    assert_eq!(world.queued("out"), ["reply"]);
}

#[test]
fn a_rollback_discards_send_via_messages() {
    let mut world = world(&["in", "out"]);
    let mut transaction = world.transaction();
    let sent = world.transfer_in(&mut transaction, "in", "out", &messages(&["a"]));
    sent.unwrap();
    world.roll_back(transaction);
    assert!(world.everything().is_empty());
}

#[test]
fn each_via_destination_gets_its_messages_in_order() {
    let mut world = world(&["via", "a", "b"]);
    let mut transaction = world.transaction();
    for (to, id) in [("a", "1"), ("b", "2"), ("a", "3"), ("b", "4"), ("a", "5")] {
        let sent = world.transfer_in(&mut transaction, "via", to, &messages(&[id]));
        sent.unwrap();
    }
    world.send_in(&mut transaction, "via", "own");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("a"), ["1", "3", "5"]);
    assert_eq!(world.queued("b"), ["2", "4"]);
    assert_eq!(world.queued("via"), ["own"]);
}

#[test]
fn many_send_via_messages_keep_their_order() {
    let mut world = world(&["via", "a"]);
    let ids: Vec<String> = (0..100).map(|id| id.to_string()).collect();
    let all: Vec<_> = ids.iter().map(|id| message(id)).collect();
    let mut transaction = world.transaction();
    world
        .transfer_in(&mut transaction, "via", "a", &all)
        .unwrap();
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("a"), ids);
}

#[test]
fn send_via_messages_in_progress_count_as_transfers() {
    let mut world = world(&["via", "out"]);
    let mut transaction = world.transaction();
    let sent = world.transfer_in(&mut transaction, "via", "out", &messages(&["a", "b"]));
    sent.unwrap();
    world.interrupt_before("out", |world| {
        let counts = world.entity("via").counts(SubQueue::Active);
        assert_eq!((counts.active, counts.transfer), (0, 2));
        assert!(world.receive("via").is_none());
        world.update("via", |queue| queue.max_delivery_count = 3);
    });
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("out"), ["a", "b"]);
    assert!(!world.entity("via").is_forwarding());
}

#[test]
fn send_via_messages_refused_by_the_destination_are_dead_lettered() {
    let changes: [(Change, &str); 3] = [
        (
            |world| world.delete("out"),
            "MessagingEntityNotFoundException",
        ),
        (
            |world| world.update("out", |queue| queue.status = EntityStatus::Disabled),
            "MessagingEntityDisabledException",
        ),
        (
            |world| {
                world.update("out", |queue| queue.max_size_in_megabytes = 1);
                let filler = message("filler").body(1_048_400);
                world.post("out", &filler).unwrap();
            },
            "QuotaExceededException",
        ),
    ];
    for (change, reason) in changes {
        let mut world = world(&["via", "out"]);
        let mut transaction = world.transaction();
        let large = [message("a").body(1_000), message("b").body(1_000)];
        let sent = world.transfer_in(&mut transaction, "via", "out", &large);
        sent.unwrap();
        change(&mut world);
        world.commit(transaction).unwrap();
        assert_eq!(world.transfer_dead_letters("via"), ["a", "b"]);
        assert_eq!(world.reasons("via", TRANSFER), [reason; 2]);
        assert!(world.queued("via").is_empty());
    }
}

#[test]
fn transfer_dead_letters_can_be_received_and_are_not_retried() {
    let mut world = world(&["via"]);
    let mut transaction = world.transaction();
    let sent = world.transfer_in(&mut transaction, "via", "out", &messages(&["a"]));
    sent.unwrap();
    world.commit(transaction).unwrap();
    world.declare("out", rules());
    assert_eq!(world.transfer_dead_letters("via"), ["a"]);
    let mode = ReceiveMode::ReceiveAndDelete;
    assert!(world.take("via", TRANSFER, mode).is_some());
}

#[test]
fn failed_send_via_messages_are_dead_lettered_if_configured() {
    let mut world = World::new();
    world.declare("via", rules().failed_forwards_to_dead_letters());
    let mut transaction = world.transaction();
    let sent = world.transfer_in(&mut transaction, "via", "out", &messages(&["a"]));
    sent.unwrap();
    world.commit(transaction).unwrap();
    assert_eq!(world.dead_letters("via"), ["a"]);
}

/// A topic has no other dead letters than those that could not be forwarded.
#[test]
fn failed_send_via_messages_of_a_topic_are_transfer_dead_letters() {
    let settings = NamespaceSettings {
        failed_forwards: FailedForwards::DeadLetter,
        ..NamespaceSettings::default()
    };
    let mut world = World::new();
    world.declare_topic_under(&settings, "t", |_| {});
    let missing = EntityPath::of_address("missing").unwrap();
    world.send_via("t", &missing, &messages(&["1"])).unwrap();
    assert_eq!(world.transfer_dead_letters("t"), ["1"]);
    let counts = world.entity("t").counts(SubQueue::Active);
    assert_eq!((counts.dead_letter, counts.transfer_dead_letter), (0, 1));
    let taken = world.take("t", SubQueue::TransferDeadLetter, ReceiveMode::PeekLock);
    let taken = taken.expect("it can be received");
    let holders = SubQueue::ALL.map(|kind| world.entity("t").lock_holders(kind).count());
    assert_eq!(holders, [0, 0, 1], "{taken:?} is counted once");
}

#[test]
fn a_send_via_does_not_count_as_a_hop() {
    let mut world = World::chain(&["q1", "q2", "q3", "q4", "q5"]);
    world.declare("via", rules());
    let mut transaction = world.transaction();
    let sent = world.transfer_in(&mut transaction, "via", "q1", &messages(&["a"]));
    sent.unwrap();
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("q5"), ["a"]);
}

#[test]
fn forward_to_of_the_via_entity_does_not_apply() {
    let mut world = World::new();
    for name in ["out", "other"] {
        world.declare(name, rules());
    }
    world.declare(
        "via",
        rules().forward_to("other").duplicate_detection(secs(60)),
    );
    world.send("via", "a");
    let mut transaction = world.transaction();
    let sent = world.transfer_in(&mut transaction, "via", "out", &messages(&["a"]));
    sent.unwrap();
    world.send_in(&mut transaction, "via", "b");
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("out"), ["a"]);
    assert_eq!(world.queued("other"), ["a", "b"]);
}

#[test]
fn forward_to_of_the_via_entity_may_change_meanwhile() {
    let mut world = world(&["via", "out", "other"]);
    for target in [Some("other"), None] {
        let target = target.map(|target| target.parse().unwrap());
        let mut transaction = world.transaction();
        let sent = world.transfer_in(&mut transaction, "via", "out", &messages(&["a"]));
        sent.unwrap();
        world.interrupt_before("out", move |world| {
            world.update("via", |queue| queue.forward_to = target);
        });
        world.commit(transaction).unwrap();
    }
    assert_eq!(world.queued("out"), ["a", "a"]);
    assert!(world.queued("other").is_empty());
}

#[test]
fn the_via_destination_applies_its_own_properties() {
    let mut world = World::new();
    world.declare("via", rules());
    world.declare("out", rules().duplicate_detection(secs(60)));
    let mut transaction = world.transaction();
    let later = message("b").scheduled_at(START + secs(60));
    let sent = world.transfer_in(
        &mut transaction,
        "via",
        "out",
        &[message("a"), message("a"), later],
    );
    sent.unwrap();
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("out"), ["a", "b"]);
    assert_eq!(world.entity("out").counts(SubQueue::Active).scheduled, 1);
}

#[test]
fn topics_and_subscriptions_can_be_via_entities() {
    for via in ["t", "t/Subscriptions/one"] {
        let mut world = World::topic(&["t/Subscriptions/one"]);
        world.declare_topic("u", |_| {});
        world.subscribe("u/Subscriptions/s", |_| {});
        let mut transaction = world.transaction();
        let sent = world.transfer_in(&mut transaction, via, "u", &messages(&["a", "b"]));
        sent.unwrap();
        world.send_in(&mut transaction, "t", "c");
        world.commit(transaction).unwrap();
        assert_eq!(world.queued("u/Subscriptions/s"), ["a", "b"], "{via}");
        assert_eq!(world.queued("t/Subscriptions/one"), ["c"], "{via}");
    }
}

#[test]
fn a_message_can_be_sent_via_an_entity_without_a_transaction() {
    let mut world = world(&["via", "out"]);
    world.send("via", "before");
    let out = "out".parse().unwrap();
    let messages = messages(&["a", "b"]);
    world.send_via("via", &out, &messages).unwrap();
    assert_eq!(world.queued("out"), ["a", "b"]);
    let (properties, _) = world.peek("out", SubQueue::Active).remove(0);
    assert_eq!(properties.sequence_number, SequenceNumber(1));
    assert_eq!(properties.enqueued_sequence_number, Some(SequenceNumber(2)));
}

#[test]
fn a_message_can_be_scheduled_via_an_entity() {
    let mut world = world(&["via", "out"]);
    let out = "out".parse().unwrap();
    let later = ["a", "b"].map(|id| message(id).scheduled_at(START + secs(10)));
    let numbers = world.schedule_via("via", &out, &later).unwrap();
    assert_eq!(numbers, [SequenceNumber(1), SequenceNumber(2)]);
    assert_eq!(world.entity("via").counts(SubQueue::Active).scheduled, 2);
    assert!(world.queued("out").is_empty());
    world.advance(secs(10));
    assert_eq!(world.queued("out"), ["a", "b"]);
}

#[test]
fn a_cancelled_message_via_an_entity_leaves_its_duplicate_detection_unchanged() {
    let mut world = World::new();
    world.declare("via", rules().duplicate_detection(secs(600)));
    world.declare("out", rules());
    let out = "out".parse().unwrap();
    world.send("via", "x");
    world.advance(secs(300));
    let later = [message("x").scheduled_at(START + secs(3600))];
    let numbers = world.schedule_via("via", &out, &later).unwrap();
    world
        .operate("via", |entity, cx| entity.cancel_scheduled(cx, &numbers))
        .unwrap();
    world.advance(secs(299));
    world.send("via", "x");
    assert_eq!(world.queued("via"), ["x"]);
    world.advance(secs(1));
    world.send("via", "x");
    assert_eq!(world.queued("via"), ["x", "x"]);
}

#[test]
fn send_via_messages_of_several_partitions_are_refused() {
    let mut world = World::new();
    world.declare("via", rules().partitioned());
    world.declare("out", rules());
    let out = "out".parse().unwrap();
    let keyed = ["one", "two"].map(|key| message(key).via_partition_key(key));
    let torn = [message("a").session("s").partition_key("k")];
    for refused in [
        world.send_via("via", &out, &keyed).map(|()| vec![]),
        world.schedule_via("via", &out, &keyed),
        world.send_via("via", &out, &torn).map(|()| vec![]),
    ] {
        refused.unwrap_err();
    }
    assert!(world.everything().is_empty());
}

#[test]
fn messages_of_a_transaction_are_forwarded_after_the_commit() {
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
fn dead_letters_of_a_transaction_are_forwarded_after_the_commit() {
    let mut world = World::new();
    world.declare("failed", rules());
    world.declare("q", rules().forward_dead_letters_to("failed"));
    world.send("q", "a");
    let locked = world.lock("q");
    let mut transaction = world.transaction();
    let settled = world.settle_in(&mut transaction, "q", &locked, dead_lettered("why"));
    settled.unwrap();
    assert!(world.queued("failed").is_empty());
    world.commit(transaction).unwrap();
    assert_eq!(world.queued("failed"), ["a"]);
    assert_eq!(world.reasons("failed", SubQueue::Active), ["why"]);
}

#[test]
fn a_forwarding_target_drops_duplicates_of_a_transaction() {
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
