//! Time to live with eager expiry (semantics §4; decisions D1, D5, D7, D24), and expiry that waits for an active receiver
//! (decision D1, `Expiry: on-receive`).

use servicebus_broker::{EventKind, SettleError, SubQueue, Timestamp};

use crate::bus::{Bus, START, bus, ids, millis, rules, secs};

fn expiries(bus: &Bus) -> Vec<u64> {
    let history = bus.history().into_iter();
    let expired = history.filter(|(_, kind)| *kind == EventKind::Expired);
    expired.map(|(at, _)| at.since(START).as_secs()).collect()
}

#[test]
fn a_message_expires_at_the_end_of_its_time_to_live() {
    let mut bus = bus().with_ttl("a", secs(10));
    assert_eq!(bus.next_deadline(), Some(START + secs(10)));
    bus.advance(secs(10) - millis(1));
    assert_eq!(bus.queued(), ["a"]);
    bus.advance(millis(1));
    assert!(bus.queued().is_empty());
    assert_eq!(expiries(&bus), [10]);
    assert_eq!(bus.next_deadline(), None);
}

#[test]
fn a_late_timer_does_not_change_the_expiry_instant() {
    let mut bus = bus().with_ttl("a", secs(10));
    bus.send_with_ttl("b", secs(20));
    bus.pass(secs(500));
    let receiver = bus.receiver();
    assert!(bus.receive(receiver, 2).is_empty());
    assert_eq!(expiries(&bus), [10, 20]);
}

#[test]
fn a_message_without_time_to_live_never_expires() {
    let mut bus = bus().with(&["a"]);
    bus.advance(secs(1_000_000_000));
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn the_queues_time_to_live_is_default_and_maximum_for_messages() {
    let mut bus = rules()
        .default_time_to_live(secs(20))
        .bus()
        .with(&["default"]);
    bus.send_with_ttl("less", secs(10));
    bus.send_with_ttl("more", secs(30));
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["default", "more"]);
    bus.advance(secs(10));
    assert!(bus.queued().is_empty());
}

#[test]
fn an_expired_message_is_dead_lettered_if_the_queue_is_configured_so() {
    let mut bus = rules()
        .dead_lettering_on_expiration()
        .bus()
        .with_ttl("a", secs(10));
    bus.advance(secs(10));
    assert!(bus.queued().is_empty());
    let (properties, reason, description) = bus.the_dead_letter();
    assert_eq!(reason.as_deref(), Some("TTLExpiredException"));
    let text = "The message expired and was dead lettered.";
    assert_eq!(description.as_deref(), Some(text));
    assert_eq!(properties.delivery_count, 0);
    assert_eq!(
        properties.enqueued_at, START,
        "when it was sent, not when it died"
    );
}

#[test]
fn a_locked_message_does_not_expire() {
    let mut bus = bus().with_ttl("a", secs(10));
    let (_, delivery) = bus.receive_first();
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
fn a_renewed_lock_protects_a_message_from_expiry() {
    let mut bus = bus().with_ttl("a", secs(10));
    let (_, delivery) = bus.receive_first();
    for _ in 0..5 {
        bus.advance(secs(50));
        bus.renew(&[delivery.token]).unwrap();
    }
    assert_eq!(bus.complete(&delivery), Ok(()));
}

#[test]
fn a_message_past_its_time_to_live_expires_when_its_lock_ends() {
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
        let mut bus = bus().with_ttl("a", secs(10));
        let (receiver, delivery) = bus.receive_first();
        bus.credit(receiver, 1);
        bus.advance(secs(30));
        end(&mut bus, &delivery).unwrap();
        assert!(bus.take(receiver).is_empty(), "it is not delivered again");
        assert_eq!(expiries(&bus), [at]);
    }
}

#[test]
fn a_message_abandoned_before_its_expiry_expires_at_its_instant() {
    let mut bus = bus().with_ttl("a", secs(10));
    let (_, delivery) = bus.receive_first();
    bus.advance(secs(5));
    bus.abandon(&delivery).unwrap();
    assert_eq!(bus.next_deadline(), Some(START + secs(10)));
    bus.advance(secs(5));
    assert_eq!(expiries(&bus), [10]);
}

#[test]
fn expiry_takes_precedence_over_the_delivery_limit() {
    for abandoned in [true, false] {
        let mut bus = rules()
            .max_delivery_count(1)
            .dead_lettering_on_expiration()
            .bus();
        bus.send_with_ttl("a", secs(10));
        let (_, delivery) = bus.receive_first();
        bus.advance(secs(20));
        if abandoned {
            bus.abandon(&delivery).unwrap();
        } else {
            bus.advance(secs(40));
        }
        let (properties, reason, _) = bus.the_dead_letter();
        assert_eq!(reason.as_deref(), Some("TTLExpiredException"));
        assert_eq!(properties.delivery_count, 1);
    }
}

#[test]
fn a_message_expires_when_its_lock_ends_at_the_expiry_instant() {
    let mut bus = rules().max_delivery_count(1).bus().with_ttl("a", secs(60));
    bus.receive_first();
    bus.advance(secs(60));
    assert_eq!(expiries(&bus), [60]);
    assert_eq!(bus.counts().dead_letter, 0);
}

#[test]
fn an_expired_reserved_message_leaves_the_credit_of_its_receiver() {
    let mut bus = bus().with_ttl("a", secs(10));
    let receiver = bus.receiver_with_credit(1);
    assert_eq!(bus.reserved(receiver), 1);
    bus.advance(secs(10));
    assert_eq!(bus.reserved(receiver), 0);
    bus.send("b");
    assert_eq!(ids(&bus.take(receiver)), ["b"]);
}

#[test]
fn a_received_message_shows_the_effective_time_to_live() {
    let mut bus = rules().default_time_to_live(secs(20)).bus().with(&["none"]);
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
fn a_peeked_message_shows_a_time_to_live_only_if_it_was_sent_with_one() {
    let mut bus = rules().default_time_to_live(secs(20)).bus().with(&["none"]);
    bus.send_with_ttl("less", secs(10));
    bus.send_with_ttl("more", secs(30));
    let seen = bus.peek(SubQueue::Active);
    let shown: Vec<_> = seen
        .iter()
        .map(|(properties, _)| properties.time_to_live)
        .collect();
    assert_eq!(shown, [None, Some(10_000), Some(20_000)]);
}

#[test]
fn a_received_message_without_time_to_live_shows_none() {
    let mut bus = bus().with(&["a"]);
    let receiver = bus.receiver();
    let properties = bus.receive_one(receiver).broker_properties;
    assert_eq!(properties.time_to_live, None);
}

fn on_receive() -> Bus {
    rules()
        .expiry_on_receive()
        .dead_lettering_on_expiration()
        .bus()
}

fn expired_at(bus: &Bus) -> Vec<Timestamp> {
    let history = bus.history().into_iter();
    let moved = history.filter(|(_, kind)| matches!(kind, EventKind::DeadLettered { .. }));
    moved.map(|(at, _)| at).collect()
}

#[test]
fn an_expired_message_without_a_receiver_stays_and_is_counted() {
    let mut bus = on_receive().with_ttl("a", secs(10));
    bus.advance(secs(1_000));
    assert_eq!(
        bus.next_deadline(),
        None,
        "no receiver needs to be woken for it"
    );
    assert_eq!(bus.queued(), ["a"], "peeking is not receiving");
    assert_eq!(bus.counts().active, 1);
}

#[test]
fn a_link_without_credit_is_not_a_receiver() {
    let mut bus = on_receive().with_ttl("a", secs(10));
    let receiver = bus.receiver();
    bus.credit(receiver, 0);
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn an_expired_message_leaves_when_a_receiver_grants_credit() {
    let mut bus = on_receive().with_ttl("a", secs(10));
    bus.send("b");
    let receiver = bus.receiver();
    bus.advance(secs(30));
    bus.credit(receiver, 1);
    assert_eq!(ids(&bus.take(receiver)), ["b"]);
    assert_eq!(
        expired_at(&bus),
        [START + secs(30)],
        "then, not in the past"
    );
    assert_eq!(bus.dead_letters(), ["a"]);
}

#[test]
fn a_message_expires_on_time_while_a_receiver_is_active() {
    let mut bus = on_receive();
    bus.receiver_with_credit(5);
    bus.send_with_ttl("a", secs(10));
    assert_eq!(
        bus.next_deadline(),
        Some(START + secs(10)),
        "the timer is set"
    );
    bus.advance(secs(10) - millis(1));
    assert!(expired_at(&bus).is_empty());
    bus.advance(millis(1));
    assert_eq!(expired_at(&bus), [START + secs(10)]);
}

#[test]
fn a_late_timer_does_not_change_the_expiry_with_an_active_receiver() {
    let mut bus = on_receive();
    bus.receiver_with_credit(5);
    bus.send_with_ttl("a", secs(10));
    bus.pass(secs(30));
    assert!(bus.queued().is_empty());
    assert_eq!(expired_at(&bus), [START + secs(10)]);
}

#[test]
fn an_expiry_due_before_the_credit_is_withdrawn_takes_place() {
    let mut bus = on_receive();
    let receiver = bus.receiver_with_credit(5);
    bus.send_with_ttl("a", secs(10));
    bus.pass(secs(30));
    bus.credit(receiver, 0);
    assert_eq!(expired_at(&bus), [START + secs(10)]);
}

#[test]
fn a_receiver_whose_credit_is_used_up_is_not_active() {
    let mut bus = on_receive().with(&["b"]);
    bus.send_with_ttl("a", secs(10));
    let receiver = bus.receiver_with_credit(1);
    assert!(bus.next_deadline().is_some(), "reserved, and not taken yet");
    assert_eq!(ids(&bus.take(receiver)), ["b"]);
    assert_eq!(bus.next_deadline(), Some(START + secs(60)), "the lock of b");
    bus.advance(secs(20));
    assert_eq!(bus.queued(), ["b", "a"]);
}

#[test]
fn a_detached_receiver_is_not_active() {
    let mut bus = on_receive().with_ttl("a", secs(10));
    let receiver = bus.receiver_with_credit(5);
    bus.close(receiver);
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn an_expired_message_leaves_when_its_lock_ends() {
    let mut bus = on_receive().with_ttl("a", secs(10));
    bus.send_with_ttl("b", secs(10));
    let receiver = bus.receiver();
    let taken = bus.receive(receiver, 2);
    bus.advance(secs(20));
    bus.abandon(&taken[0]).unwrap();
    assert_eq!(bus.dead_letters(), ["a"]);
    bus.advance(secs(40));
    assert_eq!(bus.dead_letters(), ["a", "b"]);
    assert_eq!(expired_at(&bus), [START + secs(20), START + secs(60)]);
}

#[test]
fn a_receiver_of_dead_letters_does_not_let_active_messages_expire() {
    let mut bus = on_receive().with_ttl("a", secs(10));
    let receiver = bus.dead_letter_receiver();
    bus.credit(receiver, 5);
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["a"]);
}

#[test]
fn a_queue_set_to_forward_expires_messages_at_that_instant() {
    let mut bus = on_receive().with_ttl("a", secs(10));
    bus.advance(secs(30));
    assert_eq!(bus.queued(), ["a"]);
    bus.update(|queue| queue.forward_to = Some("elsewhere".parse().unwrap()));
    assert_eq!(bus.dead_letters(), ["a"]);
    assert_eq!(expired_at(&bus), [START + secs(30)]);
}
