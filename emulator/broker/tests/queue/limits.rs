//! The maximum size of a queue (semantics §1, §20.2), and deleting its messages (§17.3).
//!
//! Large numbers of everything: an operation that is not cheap would not end in a lifetime.
//!
//! Recently seen ids (semantics §9).

use servicebus_broker::{
    EntityDescription, EntityStatus, EventKind, LockToken, SendError, SequenceNumber, SessionError,
    SubQueue,
};

use crate::bus::{
    Bus, DROPPED, MessageBuilder, Rules, START, bus, ids, message, millis, rules, secs,
};

const MEGABYTE: u64 = 1024 * 1024;

/// A queue that holds a megabyte.
fn small() -> Bus {
    rules().of_one_megabyte().bus()
}

/// A message of about 400 kB, of which two fit.
fn large(id: &str) -> MessageBuilder {
    message(id).body(400_000)
}

#[test]
fn a_full_queue_refuses_with_its_sizes() {
    let mut bus = small();
    bus.post(&large("a")).unwrap();
    bus.post(&large("b")).unwrap();
    let held = bus.counts().size;
    let refused = bus.post(&large("c")).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "The maximum entity size has been reached or exceeded for Queue: 'orders'. Size of entity \
             in bytes:{held}, Max entity size in bytes:{MEGABYTE}."
        )
    );
    assert_eq!(bus.queued(), ["a", "b"]);
}

#[test]
fn a_queue_can_be_filled_to_the_last_byte() {
    let mut bus = small();
    bus.post(&large("a")).unwrap();
    let room = MEGABYTE - bus.counts().size;
    let overhead = bus.counts().size - 400_000;
    let exact = (room - overhead) as usize;
    let too_large = bus.post(&message("b").body(exact + 1));
    assert!(matches!(too_large, Err(SendError::QuotaExceeded { .. })));
    bus.post(&message("b").body(exact)).unwrap();
    assert_eq!(bus.counts().size, MEGABYTE);
}

#[test]
fn scheduled_and_dead_lettered_messages_count_towards_the_size() {
    let mut bus = small();
    let scheduled = large("scheduled").scheduled_at(START + secs(60));
    bus.post(&scheduled).unwrap();
    bus.post(&large("dead")).unwrap();
    let (_, delivery) = bus.receive_first();
    bus.dead_letter(&delivery).unwrap();
    assert!(bus.post(&large("a")).is_err());
    let deleting = bus.open(
        SubQueue::DeadLetter,
        servicebus_broker::ReceiveMode::ReceiveAndDelete,
    );
    bus.receive_one(deleting);
    assert!(bus.post(&large("a")).is_ok());
}

#[test]
fn a_full_queue_can_dead_letter_messages() {
    let mut bus = small();
    let room = MEGABYTE as usize - 400_100;
    bus.post(&large("a")).unwrap();
    bus.post(&message("b").body(room)).unwrap();
    let (_, delivery) = bus.receive_first();
    let outcome = crate::bus::dead_letter(Some("bad"), Some(&"x".repeat(1_000)));
    bus.settle(SubQueue::Active, delivery.token, outcome)
        .unwrap();
    assert_eq!(bus.dead_letters(), ["a"]);
    assert!(bus.counts().size > MEGABYTE);
    let refused = bus.post(&message("c"));
    assert!(matches!(refused, Err(SendError::QuotaExceeded { .. })));
}

#[test]
fn a_batch_is_accepted_whole_or_not_at_all() {
    let mut bus = small();
    let refused = bus.post_all(&["a", "b", "c"].map(large));
    assert!(matches!(refused, Err(SendError::QuotaExceeded { .. })));
    assert!(bus.queued().is_empty());
    assert!(bus.history().is_empty());
    assert_eq!(bus.post_all(&["a", "b"].map(large)).unwrap().len(), 2);
    assert!(bus.post_all(&[]).unwrap().is_empty());
}

#[test]
fn a_session_state_counts_by_its_growth_towards_the_size() {
    let mut bus = rules().sessions().of_one_megabyte().bus();
    bus.send_to("s", "a");
    bus.accept("s");
    bus.set_state("s", Some(&[0; 200_000])).unwrap();
    bus.set_state("s", Some(&[1; 250_000])).unwrap();
    while bus.post(&large("filler").session("s")).is_ok() {}
    while bus.post(&message("filler").session("s").body(900)).is_ok() {}
    while bus.post(&message("f").session("s")).is_ok() {}
    bus.set_state("s", Some(&[2; 250_000])).unwrap();
    let refused = bus.set_state("s", Some(&[3; 250_200]));
    assert!(matches!(refused, Err(SessionError::Full(_))), "{refused:?}");
}

#[test]
fn a_disabled_full_queue_reports_that_it_is_disabled() {
    let mut bus = small();
    bus.post_all(&["a", "b"].map(large)).unwrap();
    bus.update(|queue| queue.status = EntityStatus::Disabled);
    let refused = bus.post(&large("c"));
    assert!(matches!(refused, Err(SendError::Disabled(_))));
}

#[test]
fn a_raised_maximum_size_lets_a_full_queue_accept_messages() {
    let mut bus = small();
    bus.post_all(&["a", "b"].map(large)).unwrap();
    bus.update(|queue| queue.max_size_in_megabytes = 2);
    assert!(bus.post(&large("c")).is_ok());
    bus.update(|queue| queue.max_size_in_megabytes = 1);
    assert_eq!(bus.queued(), ["a", "b", "c"], "what is there stays");
    assert!(bus.post(&message("d")).is_err());
}

#[test]
fn a_batch_delete_starts_at_the_oldest_and_ends_at_count_or_cutoff() {
    let mut bus = bus().with(&["1", "2", "3"]);
    bus.advance(secs(10));
    bus.send_all(&["4", "5"]);
    assert_eq!(bus.delete_messages(2, START + secs(10)), 2);
    assert_eq!(bus.queued(), ["3", "4", "5"]);
    assert_eq!(bus.delete_messages(5, START + secs(10)), 1);
    assert_eq!(bus.queued(), ["4", "5"], "the cut-off itself stays");
    assert_eq!(bus.delete_messages(0, START + secs(11)), 0);
    assert_eq!(bus.delete_messages(5, START + secs(11)), 2);
    assert_eq!(bus.delete_messages(5, START + secs(11)), 0);
}

#[test]
fn a_batch_delete_leaves_locked_reserved_and_deferred_messages() {
    let mut bus = bus().with(&["deferred", "locked", "reserved", "ready"]);
    bus.schedule("scheduled", START + secs(60));
    bus.defer_next();
    bus.receive_first();
    let waiting = bus.receiver_with_credit(1);
    assert_eq!(bus.delete_messages(10, START + secs(1_000)), 1);
    assert_eq!(
        bus.queued(),
        ["deferred", "locked", "reserved", "scheduled"]
    );
    assert_eq!(ids(&bus.take(waiting)), ["reserved"]);
}

#[test]
fn dead_letters_are_batch_deleted_by_their_enqueued_time() {
    let mut bus = bus().with(&["old"]);
    bus.advance(secs(10));
    bus.send("young");
    let receiver = bus.receiver();
    let taken = bus.receive(receiver, 2);
    bus.dead_letter(&taken[1]).unwrap();
    bus.dead_letter(&taken[0]).unwrap();
    let deleted = bus.delete_messages_from(SubQueue::DeadLetter, 10, START + secs(10));
    assert_eq!(deleted, 1);
    assert_eq!(bus.dead_letters(), ["young"]);
}

#[test]
fn the_maximum_message_size_depends_on_tier_and_entity() {
    use servicebus_broker::{Entity, NamespaceSettings, Tier};
    let size = |tier, own| {
        let description = EntityDescription {
            max_message_size_in_kilobytes: own,
            ..EntityDescription::of_tier(tier)
        };
        let settings = NamespaceSettings {
            tier,
            ..NamespaceSettings::default()
        };
        let id = servicebus_broker::EntityId(1);
        let path = "orders".parse().unwrap();
        let queue = servicebus_broker::EntityKind::Queue;
        Entity::new(queue, id, path, description, &settings, START).max_message_size()
    };
    assert_eq!(size(Tier::Basic, None), 256 * 1024);
    assert_eq!(size(Tier::Standard, None), 256 * 1024);
    assert_eq!(size(Tier::Premium, None), MEGABYTE);
    assert_eq!(size(Tier::Premium, Some(102_400)), 100 * MEGABYTE);
}

const MANY: usize = 30_000;

/// A queue with many messages that one receiver was reserved and has not taken.
fn reserved(rules: Rules) -> Bus {
    let mut bus = rules.bus();
    let receiver = bus.receiver_with_credit(u32::MAX);
    bus.unchecked = true;
    bus.send_all(&vec!["a"; MANY]);
    assert_eq!(bus.reserved(receiver), MANY);
    bus
}

#[test]
fn a_reset_removes_many_reserved_messages() {
    let mut bus = reserved(rules());
    bus.reset();
    assert_eq!(bus.counts().active, 0);
}

#[test]
fn many_reserved_messages_expire() {
    let mut bus = reserved(rules().default_time_to_live(secs(10)));
    bus.advance(secs(10));
    assert_eq!(bus.counts().active, 0);
}

#[test]
fn many_receivers_attach_acquire_and_detach() {
    let mut bus = rules().release_on_detach().bus();
    bus.unchecked = true;
    bus.send_all(&vec!["a"; MANY]);
    let mut receivers = Vec::new();
    for _ in 0..MANY / 10 {
        let receiver = bus.receiver_with_credit(10);
        assert_eq!(bus.take(receiver).len(), 10);
        receivers.push(receiver);
    }
    for receiver in receivers {
        bus.close(receiver);
    }
    assert_eq!(bus.counts().locked, 0);
}

#[test]
fn many_receivers_raise_and_withdraw_credit() {
    let mut bus = bus();
    bus.unchecked = true;
    let receivers: Vec<_> = (0..2_000).map(|_| bus.receiver()).collect();
    for credit in 1..=20 {
        for &receiver in &receivers {
            bus.credit(receiver, credit);
        }
    }
    for &receiver in &receivers {
        bus.credit(receiver, 1);
        bus.credit(receiver, 0);
    }
    bus.send("a");
    assert!(
        receivers
            .iter()
            .all(|&receiver| bus.reserved(receiver) == 0)
    );
}

#[test]
fn many_locks_are_renewed_together() {
    let mut bus = bus();
    bus.unchecked = true;
    bus.send_all(&vec!["a"; MANY]);
    let receiver = bus.receiver();
    let tokens: Vec<LockToken> = bus
        .receive(receiver, u32::MAX)
        .iter()
        .map(|d| d.token)
        .collect();
    bus.advance(secs(30));
    assert_eq!(bus.renew(&tokens).unwrap().len(), MANY);
    bus.advance(secs(60));
    assert_eq!(bus.counts().locked, 0);
}

/// A queue that remembers ids for a minute.
fn detecting() -> Bus {
    rules().duplicate_detection(secs(60)).bus()
}

#[test]
fn a_duplicate_is_accepted_and_dropped() {
    let mut bus = detecting();
    assert_eq!(bus.send("a"), SequenceNumber(1));
    assert_eq!(bus.send("a"), DROPPED);
    assert_eq!(bus.send("b"), SequenceNumber(2), "it has used no number");
    assert_eq!(bus.queued(), ["a", "b"]);
    let EventKind::DuplicateDropped { message_id } = bus.history()[1].1 else {
        panic!("dropped: {:?}", bus.history());
    };
    assert_eq!(bus.events.read(message_id), "a");
}

#[test]
fn a_queue_without_duplicate_detection_drops_no_message() {
    let mut bus = bus().with(&["a", "a"]);
    assert_eq!(bus.queued(), ["a", "a"]);
}

#[test]
fn a_received_message_id_stays_in_the_duplicate_window() {
    let mut bus = detecting().with(&["a"]);
    let receiver = bus.deleting_receiver();
    bus.receive_one(receiver);
    assert_eq!(bus.send("a"), DROPPED);
}

#[test]
fn a_duplicate_does_not_extend_the_duplicate_window() {
    let mut bus = detecting().with(&["a"]);
    bus.advance(secs(30));
    assert_eq!(bus.send("a"), DROPPED);
    bus.advance(secs(30) - millis(1));
    assert_eq!(bus.send("a"), DROPPED);
    bus.advance(millis(1));
    assert_eq!(bus.send("a"), SequenceNumber(2));
}

#[test]
fn message_ids_are_compared_case_sensitively() {
    let mut bus = detecting().with(&["a", "A", "a ", ""]);
    assert_eq!(bus.queued(), ["a", "A", "a ", ""]);
}

#[test]
fn duplicates_within_one_batch_are_dropped() {
    let mut bus = detecting().with(&["a"]);
    let numbers = bus.send_all(&["b", "a", "b", "c"]);
    assert_eq!(numbers, [2, 0, 0, 3].map(SequenceNumber));
    assert_eq!(bus.queued(), ["a", "b", "c"]);
}

#[test]
fn a_full_queue_drops_duplicates() {
    let mut bus = rules()
        .duplicate_detection(secs(60))
        .of_one_megabyte()
        .bus();
    bus.post(&large("a")).unwrap();
    bus.post(&large("b")).unwrap();
    assert_eq!(bus.post(&large("a")), Ok(DROPPED));
    let both = ["a", "b"].map(large);
    assert_eq!(bus.post_all(&both), Ok(vec![DROPPED; 2]));
    bus.post_all(&["a", "c"].map(large)).unwrap_err();
    bus.advance(secs(60));
    bus.post(&large("a")).unwrap_err();
}

#[test]
fn the_message_ids_of_a_refused_batch_are_not_remembered() {
    let mut bus = rules()
        .duplicate_detection(secs(60))
        .of_one_megabyte()
        .bus();
    let messages = ["a", "b"].map(|id| message(id).body(600_000));
    bus.post_all(&messages).unwrap_err();
    assert_eq!(bus.post(&messages[0]), Ok(SequenceNumber(1)));
}

#[test]
fn scheduled_messages_take_part_in_duplicate_detection() {
    let mut bus = detecting();
    bus.schedule("scheduled", START + secs(500));
    assert_eq!(bus.send("scheduled"), DROPPED);
    bus.send("active");
    assert_eq!(bus.schedule("active", START + secs(50)), DROPPED);
    assert_eq!(bus.queued(), ["scheduled", "active"]);
}

#[test]
fn the_duplicate_window_of_a_scheduled_message_counts_from_activation() {
    let mut bus = detecting();
    bus.schedule("a", START + secs(500));
    bus.advance(secs(499));
    assert_eq!(bus.send("a"), DROPPED, "before");
    bus.advance(secs(60));
    assert_eq!(bus.send("a"), DROPPED, "after");
    bus.advance(secs(1));
    assert_eq!(bus.send("a"), SequenceNumber(3));
}

#[test]
fn the_duplicate_window_of_a_cancelled_message_counts_from_arrival() {
    let mut bus = detecting();
    let number = bus.schedule("a", START + secs(500));
    bus.advance(secs(59));
    bus.cancel(&[number]).unwrap();
    assert_eq!(bus.send("a"), DROPPED);
    bus.advance(secs(1));
    assert_eq!(bus.send("a"), SequenceNumber(2));
}

#[test]
fn a_changed_duplicate_window_applies_to_known_message_ids() {
    let mut bus = detecting().with(&["a", "b"]);
    bus.update(|queue| queue.duplicate_detection_history_time_window = secs(120));
    bus.advance(secs(119));
    assert_eq!(bus.send("a"), DROPPED);
    bus.update(|queue| queue.duplicate_detection_history_time_window = secs(60));
    assert_eq!(bus.send("a"), SequenceNumber(3));
}

#[test]
fn an_update_of_other_properties_keeps_known_message_ids() {
    let mut bus = detecting().with(&["a"]);
    bus.update(|queue| queue.max_delivery_count = 3);
    assert_eq!(bus.send("a"), DROPPED);
}

#[test]
fn a_reset_clears_the_known_message_ids() {
    let mut bus = detecting().with(&["a"]);
    bus.reset();
    assert_eq!(bus.send("a"), SequenceNumber(2));
}

#[test]
fn duplicates_in_a_partitioned_queue_have_the_same_partition_key() {
    let mut bus = rules().duplicate_detection(secs(60)).partitioned().bus();
    for message in [
        message("a").partition_key("x"),
        message("a").partition_key("y"),
        message("a").session("z"),
        message("a"),
    ] {
        assert_ne!(bus.post(&message), Ok(DROPPED));
        assert_eq!(bus.post(&message), Ok(DROPPED));
    }
}

#[test]
fn duplicates_in_a_plain_queue_may_have_other_partition_keys() {
    let mut bus = detecting().with(&["a"]);
    let other = message("a").partition_key("y");
    assert_eq!(bus.post(&other), Ok(DROPPED));
}
