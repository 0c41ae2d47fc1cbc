//! How much a queue may hold (semantics §1, §20.2), and clearing it away (§17.3).
//!
//! Many of everything: what costs more than its share would not end here in a lifetime.

use servicebus_broker::{EntityDescription, EntityStatus, LockToken, SendError, SubQueue};

use crate::bus::{Bus, MessageBuilder, Rules, START, bus, ids, message, rules, secs};

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
fn it_can_be_filled_to_the_last_byte() {
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
fn scheduled_and_dead_lettered_messages_count() {
    let mut bus = small();
    let scheduled = large("scheduled").scheduled_at(START + secs(60));
    bus.post(&scheduled).unwrap();
    bus.post(&large("dead")).unwrap();
    let receiver = bus.receiver();
    let delivery = bus.receive_one(receiver);
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
fn a_full_queue_still_dead_letters() {
    let mut bus = small();
    let room = MEGABYTE as usize - 400_100;
    bus.post(&large("a")).unwrap();
    bus.post(&message("b").body(room)).unwrap();
    let receiver = bus.receiver();
    let delivery = bus.receive_one(receiver);
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
fn disabled_is_said_before_full() {
    let mut bus = small();
    bus.post_all(&["a", "b"].map(large)).unwrap();
    bus.update(|queue| queue.status = EntityStatus::Disabled);
    let refused = bus.post(&large("c"));
    assert!(matches!(refused, Err(SendError::Disabled(_))));
}

#[test]
fn an_update_gives_room() {
    let mut bus = small();
    bus.post_all(&["a", "b"].map(large)).unwrap();
    bus.update(|queue| queue.max_size_in_megabytes = 2);
    assert!(bus.post(&large("c")).is_ok());
    bus.update(|queue| queue.max_size_in_megabytes = 1);
    assert_eq!(bus.queued(), ["a", "b", "c"], "what is there stays");
    assert!(bus.post(&message("d")).is_err());
}

#[test]
fn deleting_begins_with_the_first_and_ends_with_the_count_or_the_cut_off() {
    let mut bus = bus();
    bus.send_all(&["1", "2", "3"]);
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
fn what_a_receiver_has_is_passed_over_and_so_is_what_is_set_aside() {
    let mut bus = bus();
    bus.send_all(&["deferred", "locked", "reserved", "ready"]);
    bus.schedule("scheduled", START + secs(60));
    bus.defer_next();
    let receiver = bus.receiver();
    bus.receive_one(receiver);
    let waiting = bus.receiver_with_credit(1);
    assert_eq!(bus.delete_messages(10, START + secs(1_000)), 1);
    assert_eq!(
        bus.queued(),
        ["deferred", "locked", "reserved", "scheduled"]
    );
    assert_eq!(ids(&bus.take(waiting)), ["reserved"]);
}

#[test]
fn dead_letters_are_deleted_by_when_they_were_enqueued() {
    let mut bus = bus();
    bus.send("old");
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
fn the_largest_message_follows_tier_and_entity() {
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
fn removing_what_is_assigned() {
    let mut bus = reserved(rules());
    bus.reset();
    assert_eq!(bus.counts().active, 0);
}

#[test]
fn expiring_what_is_assigned() {
    let mut bus = reserved(rules().default_time_to_live(secs(10)));
    bus.advance(secs(10));
    assert_eq!(bus.counts().active, 0);
}

#[test]
fn receivers_that_come_and_go() {
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
fn credit_that_goes_up_and_down() {
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
fn locks_that_are_renewed_together() {
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
