//! `DELETE`, `PUT` and `POST {entity}/messages/{message id or sequence number}/{lock token}`.

use crate::support::*;

const LOST: &str = "The lock supplied is invalid. Either the lock expired, or the message has already been removed from \
                    the queue. For more information please see https://aka.ms/ServiceBusExceptions .";

/// A queue with a message, and the path of its lock.
fn locked(settings: &str) -> (Bus, Rest, String) {
    let bus = Bus::configured(&queues(settings, &[("q", "")]));
    let rest = bus.rest();
    rest.send(
        "q",
        &[("BrokerProperties", r#"{"MessageId":"m-1"}"#)],
        "hello",
    );
    let lock = rest.peek_lock("q").lock();
    (bus, rest, lock)
}

#[test]
fn a_message_is_completed_by_its_number() {
    let (bus, rest, lock) = locked("");
    let completed = rest.ask("DELETE", &lock);
    assert_eq!((completed.status, completed.text()), (200, ""));
    assert_eq!(bus.http.held("q"), (0, 0));
    assert_eq!(rest.ask("DELETE", &lock).refusal(404), LOST);
}

#[test]
fn a_message_is_named_by_its_id_too() {
    let (bus, rest, lock) = locked("");
    let by_id = lock.replace("/messages/1/", "/Messages/m-1/");
    assert_eq!(rest.ask("POST", &by_id).status, 200);
    for wrong in ["/messages/2/", "/messages/m-2/", "/messages/01/"] {
        let path = lock.replace("/messages/1/", wrong);
        for method in ["DELETE", "PUT", "POST"] {
            assert_eq!(
                rest.ask(method, &path).refusal(404),
                LOST,
                "{method} {path}"
            );
        }
    }
    assert_eq!(rest.ask("DELETE", &by_id).status, 200);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn an_unlocked_message_is_ready_again_and_its_delivery_counts() {
    let (_bus, rest, lock) = locked("");
    let unlocked = rest.ask("PUT", &lock);
    assert_eq!((unlocked.status, unlocked.text()), (200, ""));
    assert_eq!(rest.ask("PUT", &lock).refusal(404), LOST);
    let again = rest.peek_lock("q");
    assert_eq!(again.property("DeliveryCount"), 2);
    assert_ne!(again.lock(), lock);
}

#[test]
fn a_lock_ends_with_its_time_and_lasts_when_it_is_renewed() {
    let (bus, rest, lock) = locked("");
    bus.http.freeze();
    bus.http.advance(50.0);
    let renewed = rest.ask("POST", &lock);
    assert_eq!((renewed.status, renewed.text()), (200, ""));
    bus.http.advance(50.0);
    assert_eq!(rest.peek_lock("q").status, 204, "it is still locked");
    bus.http.advance(11.0);
    for method in ["POST", "PUT", "DELETE"] {
        assert_eq!(rest.ask(method, &lock).refusal(404), LOST);
    }
    assert_eq!(rest.peek_lock("q").property("DeliveryCount"), 2);
}

#[test]
fn tokens_that_are_none_lock_nothing() {
    let (bus, rest, lock) = locked("");
    let zero = "00000000-0000-0000-0000-000000000000";
    for token in [zero, "x", "%20", "%ff", "1"] {
        let path = format!("/q/messages/1/{token}");
        assert_eq!(rest.ask("DELETE", &path).refusal(404), LOST, "{token}");
    }
    let elsewhere = lock.replace("/q/", "/q/$DeadLetterQueue/");
    assert_eq!(rest.ask("DELETE", &elsewhere).refusal(404), LOST);
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn locks_belong_to_no_link_and_stay_whatever_happens_to_links() {
    let (bus, rest, lock) = locked(r#""LocksOnDetach":"release""#);
    assert_eq!(bus.http.counts("q")["locked"], 1);
    assert_eq!(rest.ask("POST", &lock).status, 200);
    assert_eq!(rest.ask("DELETE", &lock).status, 200);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_lock_of_the_one_door_is_settled_at_the_other() {
    let (bus, rest, lock) = locked("");
    let mut peer = bus.client();
    let token = lock.rsplit('/').next().and_then(|token| token.parse().ok());
    let node = peer.node("q/$management");
    peer.settle_by_token(&node, "completed", token.expect("a token"));
    assert_eq!(rest.ask("DELETE", &lock).refusal(404), LOST);

    rest.send("q", &[], "again");
    let receiver = peer.receiver("q");
    let delivery = peer.receive_one(&receiver);
    let path = format!("/q/messages/2/{}", delivery.token());
    assert_eq!(rest.ask("DELETE", &path).status, 200);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn an_entity_that_is_disabled_settles_nothing_and_the_lock_runs_on() {
    let (bus, rest, lock) = locked("");
    bus.http.set_status("q", "ReceiveDisabled");
    for method in ["DELETE", "PUT", "POST"] {
        let refused = rest.ask(method, &lock);
        assert!(
            refused.refusal(400).contains("is currently disabled"),
            "{refused:?}"
        );
    }
    bus.http.set_status("q", "Active");
    assert_eq!(rest.ask("DELETE", &lock).status, 200);
}
