//! Expired messages make no session available (decision D1).

use servicebus_broker::SubQueue;

use crate::bus::{message, rules, secs, sessions};

#[test]
fn a_session_whose_messages_have_expired_is_not_available() {
    let mut bus = sessions();
    let short = message("1").session("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    bus.advance(secs(10));
    assert!(bus.known_sessions().is_empty());
    assert_eq!(bus.accept_next().1, None);
}

#[test]
fn where_they_wait_for_a_receiver_one_who_waits_for_a_session_is_one() {
    let mut bus = rules().sessions().expiry_on_receive().bus();
    let short = message("1").session("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["1"]);
    assert_eq!(bus.accept_next().1, None);
    assert!(bus.queued().is_empty());
}

#[test]
fn one_who_holds_a_session_is_one_when_it_has_credit() {
    let mut bus = rules().sessions().expiry_on_receive().bus();
    let short = message("1").session("a").time_to_live(secs(10));
    bus.post(&short).unwrap();
    let receiver = bus.accept("b");
    bus.advance(secs(10));
    assert_eq!(bus.queued(), ["1"]);
    bus.credit(receiver, 1);
    assert!(bus.queued().is_empty());
}

#[test]
fn dead_letters_do_not_belong_to_sessions() {
    let mut bus = sessions();
    bus.send_all_to("a", &["1", "2"]);
    let receiver = bus.accept("a");
    for delivery in bus.receive(receiver, 2) {
        bus.dead_letter(&delivery).unwrap();
    }
    assert_eq!(
        bus.peek_session(SubQueue::DeadLetter, "a", 1, 10),
        ["1", "2"]
    );
    let dead = bus.dead_letter_receiver();
    let taken = bus.receive(dead, 2);
    assert_eq!(taken[0].message.session_id().as_deref(), Some("a"));
    let (_, until) = taken[0].broker_properties.lock.unwrap();
    assert_eq!(until, bus.now + secs(60));
    bus.settle(
        SubQueue::DeadLetter,
        taken[0].token,
        servicebus_broker::Outcome::Complete,
    )
    .unwrap();
    bus.close(receiver);
    assert!(bus.known_sessions().is_empty());
}
