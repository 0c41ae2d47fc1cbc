//! No frame exceeds the max-frame-size of its peer, here the smallest that there may be.

use serde_amqp::Value;
use servicebus_amqp::{Config, DeliveryNumber, Error, Event, Outcome};

use crate::peer::*;

const TOO_SMALL: &str = "amqp:frame-size-too-small";

fn peer() -> Peer {
    Peer::with(Config::default(), &[uint(512)], 5000)
}

fn long_error() -> Error {
    let text = format!("{} TrackingId:t-1", "é".repeat(1000));
    Error::new("amqp:not-found", text)
}

#[test]
fn the_texts_of_errors_are_cut_before_their_tracking_ids() {
    let mut peer = peer();
    let receiver = peer.receiver(5);
    let sender = peer.link("s", 1, SENDER);
    let delivery = peer.deliver(receiver, 1, false).unwrap();
    let (refused, _) = peer.ask("refused", 2, SENDER);
    peer.frames();
    let rejected = || Outcome::from(long_error());
    peer.connection
        .outcome(sender, DeliveryNumber(0), rejected());
    peer.connection.settle(receiver, delivery, rejected());
    peer.connection.detach(sender, Some(long_error()));
    peer.connection.refuse_attach(refused, long_error());
    peer.connection.close(Some(long_error()));
    let frames = peer.frames();
    let expected = [DISPOSITION, DISPOSITION, DETACH, ATTACH, DETACH, CLOSE];
    assert_eq!(codes(&frames), expected);
    for frame in &frames {
        assert!(frame.size() <= 512, "{frame:?}");
        let error = match frame.code {
            DISPOSITION => refusal_of(&described_list(&frame.fields[4]).1[0]),
            DETACH => frame.refusal(2),
            CLOSE => frame.refusal(0),
            _ => continue,
        };
        assert!(frame.size() >= 510, "no more is cut than must be");
        assert_eq!(error.condition, "amqp:not-found");
        assert!(error.text.ends_with("é… TrackingId:t-1"), "{error:?}");
    }
}

#[test]
fn a_link_whose_attach_is_too_large_to_be_answered_is_refused_without_termini() {
    for role in [SENDER, RECEIVER] {
        let mut peer = peer();
        let long = source(&"x".repeat(600), None);
        let fields = attach_between("name", 0, role, long, target("to"));
        peer.frame(0, ATTACH, &fields);
        let (link, _) = peer.attached();
        peer.accept(link);
        let frames = peer.frames();
        assert_eq!(codes(&frames), [ATTACH, DETACH]);
        assert_eq!(frames[0].fields[5..7], [Value::Null, Value::Null]);
        let refusal = frames[1].refusal(2);
        assert_eq!(refusal.condition, TOO_SMALL);
        assert!(refusal.text.ends_with(" at most 512 bytes"), "{refusal:?}");
        assert!(matches!(peer.event(), Event::Detached { link: gone, .. } if gone == link));
    }
}

#[test]
fn a_link_name_that_does_not_fit_ends_the_session() {
    let mut peer = peer();
    peer.frame(0, ATTACH, &attach(&"n".repeat(500), 0, SENDER));
    let end = peer.only();
    assert_eq!((end.code, end.size() <= 512), (END, true));
    assert_eq!(end.refusal(0).condition, TOO_SMALL);
}
