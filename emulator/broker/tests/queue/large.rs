//! Many of everything: what costs more than its share would not end here in a lifetime.

use servicebus_broker::LockToken;

use crate::bus::{Bus, Rules, bus, rules, secs};

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
