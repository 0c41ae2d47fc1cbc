//! What clients do that the standard does not foresee, and that must work all the same.

use serde_amqp::Value;
use servicebus_amqp::{AttachReply, DeliveryNumber, Event, LinkId};

use crate::peer::*;

fn drain_flow(delivery_count: u32, credit: u32) -> Vec<Value> {
    let mut fields = credit_flow(0, delivery_count, credit);
    fields.extend([Value::Null, Value::Bool(true)]);
    fields
}

fn drained(peer: &mut Peer, link: LinkId) {
    assert!(matches!(peer.event(), Event::Credit { drain: true, .. }));
    peer.connection.drained(link);
    peer.output();
}

/// fe2o3-amqp gives credit again before it has seen the answer to its drain.
#[test]
fn credit_that_crosses_the_answer_to_a_drain_counts_from_there() {
    let mut peer = Peer::new();
    let link = peer.receiver(1);
    peer.frame(0, FLOW, &drain_flow(0, 1));
    drained(&mut peer, link);
    peer.frame(0, FLOW, &credit_flow(0, 0, 1));
    assert!(matches!(
        peer.event(),
        Event::Credit {
            credit: 1,
            drain: false,
            ..
        }
    ));
    assert!(peer.deliver(link, 1, false).is_some());
}

#[test]
fn once_the_peer_knows_of_its_drain_credit_counts_as_the_standard_says() {
    let mut peer = Peer::new();
    let link = peer.receiver(3);
    peer.frame(0, FLOW, &drain_flow(0, 3));
    drained(&mut peer, link);
    peer.frame(0, FLOW, &credit_flow(0, 3, 2));
    assert!(matches!(peer.event(), Event::Credit { credit: 2, .. }));
    peer.frame(0, FLOW, &credit_flow(0, 0, 3));
    assert!(matches!(peer.event(), Event::Credit { credit: 0, .. }));
}

/// fe2o3-amqp cuts what is above the link's limit into transfers with ids of their own and one tag.
#[test]
fn a_continuation_may_have_an_id_of_its_own_if_the_tag_is_the_same() {
    let mut peer = Peer::new();
    let (link, _) = peer.ask("s", 0, SENDER);
    let reply = AttachReply {
        max_message_size: 1000,
        ..AttachReply::default()
    };
    peer.connection.accept_attach(link, reply);
    peer.output();
    let mut again = transfer(0, Some(8), false, false);
    again[2] = binary(&7u32.to_be_bytes());
    peer.send(&performative(
        0,
        TRANSFER,
        &transfer(0, Some(7), false, true),
        &[1; 600],
    ));
    peer.send(&performative(0, TRANSFER, &again, &[2; 600]));
    let Event::TransferTooLarge { delivery, size, .. } = peer.event() else {
        panic!("the delivery is too large");
    };
    assert_eq!((delivery, size), (DeliveryNumber(7), 1200));
    assert!(peer.events().is_empty(), "the link stays");
}

/// fe2o3-amqp answers a refusal with two detaches.
#[test]
fn a_link_may_be_detached_twice() {
    let mut peer = Peer::new();
    let (link, _) = peer.ask("r", 0, RECEIVER);
    peer.connection.refuse_attach(link, an_error());
    peer.output();
    for _ in 0..2 {
        peer.frame(0, DETACH, &[uint(0), Value::Bool(true)]);
    }
    assert!(peer.frames().is_empty(), "the session stays");
    peer.link("again", 0, RECEIVER);
}

#[test]
fn a_performative_may_be_named_by_its_symbol() {
    let mut peer = Peer::new();
    let named = |name: &str| {
        let body = [&[0x00, 0xa3, name.len() as u8], name.as_bytes(), &[0x45]].concat();
        framed(0, 0, &body)
    };
    peer.send(&named("amqp:end:list"));
    assert_eq!(codes(&peer.frames()), [END]);
    peer.send(&named("amqp:close:list"));
    assert_eq!(codes(&peer.frames()), [CLOSE]);
}
