//! What we write, read by another implementation's types, and what it writes, read by us.

use fe2o3_amqp_types::definitions::{
    AmqpError, Error, Fields, ReceiverSettleMode, Role, SenderSettleMode,
};
use fe2o3_amqp_types::messaging::{Accepted, DeliveryState, Source, Target};
use fe2o3_amqp_types::performatives::{
    Attach, Begin, Close, Detach, Disposition, End, Flow, Open, Transfer,
};
use fe2o3_amqp_types::sasl::{SaslInit, SaslMechanisms, SaslOutcome};
use serde_amqp::primitives::Symbol;
use serde_amqp::serde::{Deserialize, Serialize};
use servicebus_amqp::{AttachReply, Config, Event, LinkId, Outcome};

use crate::peer::*;

fn read<'a, T: Deserialize<'a>>(frame: &'a Frame) -> T {
    serde_amqp::from_slice(&frame.body).expect("the other implementation reads it")
}

fn write<T: Serialize>(peer: &mut Peer, channel: u16, performative: &T) {
    peer.send(&framed(
        0,
        channel,
        &serde_amqp::to_vec(performative).unwrap(),
    ));
}

fn open() -> Open {
    Open {
        container_id: "other".into(),
        hostname: Some("host".into()),
        max_frame_size: 65_536.into(),
        channel_max: 255.into(),
        idle_time_out: Some(30_000),
        outgoing_locales: Some(vec![Symbol::from("en-US")].into()),
        incoming_locales: None,
        offered_capabilities: Some(vec![Symbol::from("A"), Symbol::from("B")].into()),
        desired_capabilities: None,
        properties: Some(Fields::default()),
    }
}

fn begin() -> Begin {
    Begin {
        remote_channel: None,
        next_outgoing_id: 0,
        incoming_window: 2048,
        outgoing_window: 2048,
        handle_max: Default::default(),
        offered_capabilities: None,
        desired_capabilities: None,
        properties: None,
    }
}

fn attach_as(role: Role, handle: u32) -> Attach {
    Attach {
        name: "link".into(),
        handle: handle.into(),
        initial_delivery_count: matches!(role, Role::Sender).then_some(0),
        role,
        snd_settle_mode: SenderSettleMode::Mixed,
        rcv_settle_mode: ReceiverSettleMode::Second,
        source: Some(Box::new(Source::from("queue"))),
        target: Some(Box::new(Target::from("queue").into())),
        unsettled: None,
        incomplete_unsettled: false,
        max_message_size: None,
        offered_capabilities: None,
        desired_capabilities: None,
        properties: None,
    }
}

/// A peer that has opened, begun and attached a receiver in the other's types.
fn receiver() -> (Peer, LinkId) {
    let mut peer = Peer::silent(Config::default());
    peer.send(AMQP_HEADER);
    write(&mut peer, 0, &open());
    write(&mut peer, 0, &begin());
    write(&mut peer, 0, &attach_as(Role::Receiver, 0));
    assert!(matches!(peer.event(), Event::Opened(_)));
    let (link, _) = peer.attached();
    peer.connection.accept_attach(link, AttachReply::default());
    (peer, link)
}

#[test]
fn open_begin_and_attach_decode_in_the_types_of_fe2o3() {
    let (mut peer, _) = receiver();
    let frames = peer.frames();
    let ours: Open = read(&frames[0]);
    assert_eq!(ours.channel_max.0, 4999);
    assert_eq!(ours.max_frame_size.0, 65_536);
    let ours: Begin = read(&frames[1]);
    assert_eq!(ours.remote_channel, Some(0));
    let ours: Attach = read(&frames[2]);
    assert_eq!(ours.role, Role::Sender);
    assert_eq!(ours.rcv_settle_mode, ReceiverSettleMode::Second);
    assert_eq!(ours.snd_settle_mode, SenderSettleMode::Mixed);
    assert_eq!(ours.initial_delivery_count, Some(0));
    assert_eq!(ours.source, attach_as(Role::Receiver, 0).source);
    assert_eq!(ours.target, attach_as(Role::Receiver, 0).target);
    assert_eq!(ours.unsettled, None);
    assert_eq!(ours.properties, Some(Fields::default()));
}

#[test]
fn flow_transfer_and_disposition_decode_in_the_types_of_fe2o3() {
    let (mut peer, link) = receiver();
    peer.frames();
    let flow = Flow {
        next_incoming_id: Some(0),
        incoming_window: 2048,
        next_outgoing_id: 0,
        outgoing_window: 2048,
        handle: Some(0.into()),
        delivery_count: Some(0),
        link_credit: Some(5),
        available: None,
        drain: true,
        echo: false,
        properties: None,
    };
    write(&mut peer, 0, &flow);
    assert_eq!(peer.credited(), (5, true));
    peer.deliver(link, 3, false).unwrap();
    peer.connection.drained(link);
    let frames = peer.frames();
    let ours: Transfer = read(&frames[0]);
    assert_eq!(ours.delivery_tag.as_deref(), Some(&vec![3; 16]));
    assert_eq!(ours.settled, Some(false));
    let ours: Flow = read(&frames[1]);
    assert!(ours.drain && ours.link_credit == Some(0) && ours.delivery_count == Some(5));

    let disposition = Disposition {
        role: Role::Receiver,
        first: 0,
        last: None,
        settled: false,
        state: Some(DeliveryState::Accepted(Accepted {})),
        batchable: false,
    };
    write(&mut peer, 0, &disposition);
    assert!(matches!(peer.event(), Event::Settle(_)));
    peer.accept_settlement(link, 0);
    let ours: Disposition = read(&peer.only());
    assert!(ours.settled && matches!(ours.state, Some(DeliveryState::Accepted(_))));
}

#[test]
fn detach_end_and_close_decode_in_the_types_of_fe2o3() {
    let (mut peer, _) = receiver();
    peer.frames();
    let error = Error::new(AmqpError::NotFound, Some("gone".to_owned()), None);
    let detach = Detach {
        handle: 0.into(),
        closed: true,
        error: Some(error.clone()),
    };
    write(&mut peer, 0, &detach);
    let ours: Detach = read(&peer.only());
    assert!(ours.closed && ours.error.is_none());
    write(&mut peer, 0, &End { error: None });
    let _: End = read(&peer.only());
    write(&mut peer, 0, &Close { error: Some(error) });
    let _: Close = read(&peer.only());
    let events = peer.events();
    let Some(Event::Closed { error: Some(error) }) = events.last() else {
        panic!("{events:?}");
    };
    assert_eq!(error.condition, "amqp:not-found");
    assert_eq!(error.description, "gone");
}

#[test]
fn sasl_frames_decode_in_the_types_of_fe2o3() {
    let mut peer = Peer::silent(Config::default());
    peer.send(SASL_HEADER);
    let output = peer.output();
    let ours: SaslMechanisms = read(&split(&output)[0]);
    assert_eq!(ours.sasl_server_mechanisms.0.len(), 4);
    let init = SaslInit {
        mechanism: "PLAIN".into(),
        initial_response: Some(b"\0user\0key".to_vec().into()),
        hostname: None,
    };
    peer.send(&framed(1, 0, &serde_amqp::to_vec(&init).unwrap()));
    assert!(matches!(peer.event(), Event::Sasl { response, .. } if *response == *b"\0user\0key"));
    peer.connection.sasl_outcome(true);
    let _: SaslOutcome = read(&peer.only());
}

#[test]
fn every_outcome_decodes_in_the_types_of_fe2o3() {
    let mut peer = Peer::new();
    let link = peer.receiver(10);
    let outcomes = [
        Outcome::Accepted,
        Outcome::Released,
        Outcome::Rejected { error: None },
        Outcome::from(an_error()),
        Outcome::Modified {
            delivery_failed: true,
            undeliverable_here: true,
            annotations: None,
        },
    ];
    for outcome in outcomes {
        let delivery = peer.deliver(link, 1, false).unwrap();
        peer.frames();
        peer.connection.settle(link, delivery, outcome.clone());
        let frame = peer.only();
        let ours: Disposition = read(&frame);
        let state = ours.state.unwrap();
        match &outcome {
            Outcome::Accepted => assert!(matches!(state, DeliveryState::Accepted(_))),
            Outcome::Released => assert!(matches!(state, DeliveryState::Released(_))),
            Outcome::Rejected { error } => assert!(
                matches!(state, DeliveryState::Rejected(r) if r.error.is_some() == error.is_some())
            ),
            Outcome::Modified { .. } => assert!(
                matches!(state, DeliveryState::Modified(m) if m.undeliverable_here == Some(true))
            ),
        }
    }
}
