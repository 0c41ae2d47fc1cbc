//! What the engine refuses itself has an id by which log and peer mean the same thing.

use servicebus_amqp::{Config, Event};

use crate::peer::*;

fn tracked() -> Peer {
    let config = Config {
        tracking_id: "t-1".into(),
        ..Config::default()
    };
    Peer::with(config, &[], 5000)
}

#[test]
fn an_error_of_the_engine_carries_the_tracking_id_and_is_told_to_the_owner() {
    let mut peer = tracked();
    peer.send(&performative(
        0,
        TRANSFER,
        &transfer(9, Some(1), false, false),
        b"x",
    ));
    let Some(Event::Refused(told)) = peer.connection.poll_event() else {
        panic!("the owner is told");
    };
    assert_eq!(told.condition, "amqp:session:unattached-handle");
    assert!(told.description.ends_with(" TrackingId:t-1"), "{told:?}");
    let error = peer.only().refusal(0);
    assert_eq!(
        (error.condition, error.text),
        (told.condition.into_owned(), told.description)
    );
}

#[test]
fn a_disposition_for_an_unknown_delivery_too() {
    let mut peer = tracked();
    peer.receiver(1);
    peer.frame(0, DISPOSITION, &disposition(5, 5, false, accepted()));
    let Some(Event::Refused(told)) = peer.connection.poll_event() else {
        panic!("the owner is told");
    };
    assert!(told.description.ends_with(" TrackingId:t-1"), "{told:?}");
}
