//! Time to live, where expiry is eager (semantics §4; decisions D1, D5, D7, D24).

use servicebus_broker::{EventKind, SettleError, SubQueue};

use crate::bus::{Bus, START, bus, ids, millis, rules, secs};

fn expiries(bus: &Bus) -> Vec<u64> {
    let history = bus.history().into_iter();
    let expired = history.filter(|(_, kind)| *kind == EventKind::Expired);
    expired.map(|(at, _)| at.since(START).as_secs()).collect()
}

#[test]
fn a_message_expires_at_its_instant() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    assert_eq!(bus.next_deadline(), Some(START + secs(10)));
    bus.advance(secs(10) - millis(1));
    assert_eq!(bus.queued(), ["a"]);
    bus.advance(millis(1));
    assert!(bus.queued().is_empty());
    assert_eq!(expiries(&bus), [10]);
    assert_eq!(bus.next_deadline(), None);
}

#[test]
fn a_late_timer_does_not_move_the_instant() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    bus.send_with_ttl("b", secs(20));
    bus.pass(secs(500));
    let receiver = bus.receiver();
    assert!(bus.receive(receiver, 2).is_empty());
    assert_eq!(expiries(&bus), [10, 20]);
}

#[test]
fn messages_without_time_to_live_stay_for_ever() {
    let mut bus = bus();
    bus.send("a");
    bus.advance(secs(1_000_000_000));
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn the_default_applies_to_messages_that_bring_none_and_is_the_ceiling_for_the_others() {
    let mut bus = rules().default_time_to_live(secs(20)).bus();
    bus.send("default");
    bus.send_with_ttl("less", secs(10));
    bus.send_with_ttl("more", secs(30));
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["default", "more"]);
    bus.advance(secs(10));
    assert!(bus.queued().is_empty());
}

#[test]
fn what_expires_is_dead_lettered_where_the_queue_says_so() {
    let mut bus = rules().dead_lettering_on_expiration().bus();
    bus.send_with_ttl("a", secs(10));
    bus.advance(secs(10));
    assert!(bus.queued().is_empty());
    let (broker_properties, reason, description) = bus.the_dead_letter();
    assert_eq!(reason.as_deref(), Some("TTLExpiredException"));
    let text = "The message expired and was dead lettered.";
    assert_eq!(description.as_deref(), Some(text));
    assert_eq!(broker_properties.delivery_count, 0);
    assert_eq!(
        broker_properties.enqueued_at, START,
        "when it was sent, not when it died"
    );
}

#[test]
fn a_lock_protects_from_expiry() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    let receiver = bus.receiver();
    let delivery = bus.receive_one(receiver);
    assert_eq!(
        bus.next_deadline(),
        Some(START + secs(60)),
        "only the lock ends"
    );
    bus.advance(secs(59));
    assert_eq!(bus.queued(), ["a"]);
    assert_eq!(
        bus.complete(&delivery),
        Ok(()),
        "after its time, under its lock"
    );
    assert!(expiries(&bus).is_empty());
}

#[test]
fn a_renewed_lock_goes_on_protecting() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    let receiver = bus.receiver();
    let delivery = bus.receive_one(receiver);
    for _ in 0..5 {
        bus.advance(secs(50));
        bus.renew(&[delivery.token]).unwrap();
    }
    assert_eq!(bus.complete(&delivery), Ok(()));
}

#[test]
fn a_message_that_outlived_its_time_under_a_lock_leaves_when_the_lock_ends() {
    type End = fn(&mut Bus, &servicebus_broker::Delivery) -> Result<(), SettleError>;
    let ends: [(End, u64); 3] = [
        (|bus, delivery| bus.abandon(delivery), 30),
        (|bus, delivery| bus.release(delivery), 30),
        (
            |bus, _| {
                bus.advance(secs(30));
                Ok(())
            },
            60,
        ),
    ];
    for (end, at) in ends {
        let mut bus = bus();
        bus.send_with_ttl("a", secs(10));
        let receiver = bus.receiver();
        let delivery = bus.receive_one(receiver);
        bus.credit(receiver, 1);
        bus.advance(secs(30));
        end(&mut bus, &delivery).unwrap();
        assert!(bus.take(receiver).is_empty(), "it is not delivered again");
        assert_eq!(expiries(&bus), [at]);
    }
}

#[test]
fn a_message_whose_lock_ends_in_time_expires_later() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    let receiver = bus.receiver();
    let delivery = bus.receive_one(receiver);
    bus.advance(secs(5));
    bus.abandon(&delivery).unwrap();
    assert_eq!(bus.next_deadline(), Some(START + secs(10)));
    bus.advance(secs(5));
    assert_eq!(expiries(&bus), [10]);
}

#[test]
fn expiry_wins_over_the_delivery_limit() {
    for abandoned in [true, false] {
        let mut bus = rules()
            .max_delivery_count(1)
            .dead_lettering_on_expiration()
            .bus();
        bus.send_with_ttl("a", secs(10));
        let receiver = bus.receiver();
        let delivery = bus.receive_one(receiver);
        bus.advance(secs(20));
        if abandoned {
            bus.abandon(&delivery).unwrap();
        } else {
            bus.advance(secs(40));
        }
        let (broker_properties, reason, _) = bus.the_dead_letter();
        assert_eq!(reason.as_deref(), Some("TTLExpiredException"));
        assert_eq!(broker_properties.delivery_count, 1);
    }
}

#[test]
fn expiry_and_the_end_of_the_lock_at_one_instant() {
    let mut bus = rules().max_delivery_count(1).bus();
    bus.send_with_ttl("a", secs(60));
    let receiver = bus.receiver();
    bus.receive_one(receiver);
    bus.advance(secs(60));
    assert_eq!(expiries(&bus), [60]);
    assert_eq!(bus.counts().dead_letter, 0);
}

#[test]
fn what_is_assigned_but_not_taken_expires_and_its_credit_stays() {
    let mut bus = bus();
    bus.send_with_ttl("a", secs(10));
    let receiver = bus.receiver_with_credit(1);
    assert_eq!(bus.reserved(receiver), 1);
    bus.advance(secs(10));
    assert_eq!(bus.reserved(receiver), 0);
    bus.send("b");
    assert_eq!(ids(&bus.take(receiver)), ["b"]);
}

#[test]
fn a_received_message_shows_what_applies() {
    let mut bus = rules().default_time_to_live(secs(20)).bus();
    bus.send("none");
    bus.send_with_ttl("less", secs(10));
    bus.send_with_ttl("more", secs(30));
    let receiver = bus.receiver();
    let taken = bus.receive(receiver, 3);
    let shown = taken
        .iter()
        .map(|delivery| delivery.broker_properties.time_to_live);
    let shown: Vec<_> = shown.collect();
    assert_eq!(shown, [Some(20_000), Some(10_000), Some(20_000)]);
}

#[test]
fn a_peeked_message_shows_a_time_to_live_only_if_it_brought_one() {
    let mut bus = rules().default_time_to_live(secs(20)).bus();
    bus.send("none");
    bus.send_with_ttl("less", secs(10));
    bus.send_with_ttl("more", secs(30));
    let seen = bus.peek(SubQueue::Active);
    let shown: Vec<_> = seen
        .iter()
        .map(|(broker_properties, _)| broker_properties.time_to_live)
        .collect();
    assert_eq!(shown, [None, Some(10_000), Some(20_000)]);
}

#[test]
fn where_nothing_applies_nothing_is_shown() {
    let mut bus = bus();
    bus.send("a");
    let receiver = bus.receiver();
    let broker_properties = bus.receive_one(receiver).broker_properties;
    assert_eq!(broker_properties.time_to_live, None);
}
