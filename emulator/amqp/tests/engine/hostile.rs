//! Random and mutated input: never a panic, never unbounded state, always sound output.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;
use proptest::{collection, sample};
use serde_amqp::Value;
use servicebus_amqp::{AttachReply, Config, Connection, Event, LinkRole, Outcome, Settlement};

use crate::peer::*;

/// Frames that a client might send in any order, right or wrong.
fn any_frame() -> impl Strategy<Value = Vec<u8>> {
    let small = 0u32..4;
    let number = prop_oneof![4 => 0u32..8, 1 => any::<u32>()];
    let frame = (
        0u8..14,
        small,
        number.clone(),
        number,
        any::<bool>(),
        any::<bool>(),
    );
    frame.prop_map(|(kind, handle, a, b, yes, also)| {
        let channel = (a % 2) as u16;
        let (code, fields) = match kind {
            0 => (BEGIN, vec![Value::Null, uint(a), uint(b), uint(7)]),
            1 => (END, vec![]),
            2 | 3 => (ATTACH, attach(&format!("link{}", a % 3), handle, yes)),
            4 => (DETACH, vec![uint(handle), Value::Bool(yes)]),
            5 | 6 => {
                let mut flow = vec![
                    uint(a),
                    uint(b),
                    uint(0),
                    uint(0),
                    uint(handle),
                    uint(a),
                    uint(b),
                ];
                flow.extend([Value::Null, Value::Bool(yes), Value::Bool(also)]);
                (FLOW, flow)
            }
            7..=9 => {
                let mut fields = transfer(handle, yes.then_some(a), yes, also);
                fields.extend([
                    Value::Null,
                    Value::Null,
                    Value::Null,
                    Value::Bool(b.is_multiple_of(7)),
                ]);
                return performative(channel, TRANSFER, &fields, &[1; 40]);
            }
            10 | 11 => (DISPOSITION, disposition(a, b, yes, accepted())),
            12 => (DISPOSITION, disposition(a, b, yes, Value::Null)),
            _ => (FLOW, vec![uint(a), uint(b), uint(0), uint(0)]),
        };
        performative(channel, code, &fields, &[])
    })
}

/// An owner that does something with everything.
fn serve(peer: &mut Peer, choice: u32) {
    let mut count = 0;
    while let Some(event) = peer.connection.poll_event() {
        count += 1;
        assert!(count < 10_000, "events without end");
        match event {
            Event::Sasl { .. } => peer.connection.sasl_outcome(!choice.is_multiple_of(5)),
            Event::Attach { link, attach } => match choice % 4 {
                0 => peer.connection.refuse_attach(link, an_error()),
                1 => {}
                _ => {
                    let reply = AttachReply {
                        max_message_size: 100,
                        filter: match attach.role() {
                            LinkRole::Receiver => vec![("f".into(), Value::Bool(true))],
                            LinkRole::Sender => vec![],
                        },
                        ..AttachReply::default()
                    };
                    peer.connection.accept_attach(link, reply);
                }
            },
            Event::Transfer(transfer) => {
                peer.connection
                    .outcome(transfer.link, transfer.delivery, Outcome::Accepted);
            }
            Event::TransferTooLarge { link, delivery, .. } => {
                let outcome = Outcome::from(an_error());
                peer.connection.outcome(link, delivery, outcome);
            }
            Event::Credit { link, drain, .. } => {
                for tag in 0..peer.connection.credit(link).min(5) as u8 {
                    let tail = Bytes::from(vec![0; 300 * tag as usize]);
                    peer.deliver_bytes(link, tag, choice.is_multiple_of(3), &[1; 20], tail);
                }
                if drain {
                    peer.connection.drained(link);
                }
            }
            Event::Settle(Settlement {
                link,
                delivery,
                outcome,
                ..
            }) => match choice % 6 {
                0 => peer.connection.detach(link, None),
                _ => peer.connection.settle(link, delivery, outcome),
            },
            Event::TransferDropped { .. }
            | Event::Opened(_)
            | Event::Detached { .. }
            | Event::Refused(_)
            | Event::Closed { .. } => {}
        }
    }
}

fn drive(mut peer: Peer, blocks: &[Vec<u8>], choices: &[u32]) {
    for (index, block) in blocks.iter().enumerate() {
        peer.now += Duration::from_millis(1);
        let choice = choices[index % choices.len()];
        peer.send(block);
        serve(&mut peer, choice);
        peer.connection.handle_timeout(peer.now);
        // Takes every frame apart and so checks that it is sound.
        split(&peer.output());
    }
    peer.connection.lost();
    serve(&mut peer, 0);
    assert!(peer.connection.is_closed());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_frames_in_any_order_do_not_panic(
        frames in collection::vec(any_frame(), 1..60),
        choices in collection::vec(any::<u32>(), 1..10),
        window in 0u32..6,
    ) {
        drive(Peer::with(Config::default(), &[uint(512)], window), &frames, &choices);
    }

    #[test]
    fn mutated_frames_do_not_panic(
        mut frames in collection::vec(any_frame(), 1..30),
        mutations in collection::vec((any::<sample::Index>(), any::<sample::Index>(), any::<u8>()), 1..12),
        choices in collection::vec(any::<u32>(), 1..10),
    ) {
        for (frame, byte, value) in mutations {
            let frame = frame.get(&frames.clone()).clone();
            let position = frames.iter().position(|f| *f == frame).unwrap();
            let byte = byte.index(frame.len());
            // The size stays right, or nothing behind it would be reached.
            if byte >= 4 {
                frames[position][byte] = value;
            }
        }
        drive(Peer::new(), &frames, &choices);
    }

    #[test]
    fn random_performative_bodies_do_not_panic(bodies in collection::vec((0x10u8..0x19, collection::vec(any::<u8>(), 0..80)), 1..10)) {
        let frames: Vec<_> = bodies
            .into_iter()
            .map(|(code, body)| framed(0, 0, &[&[0x00, 0x53, code][..], &body].concat()))
            .collect();
        for frame in frames {
            drive(Peer::new(), &[frame], &[2]);
        }
    }

    #[test]
    fn random_values_in_rare_performatives_do_not_panic(code in 0x10u8..0x13, values in collection::vec(any_value(), 0..15)) {
        let frame = performative(0, code, &values, &[]);
        let mut peer = Peer::silent(Config::default());
        peer.send(AMQP_HEADER);
        drive(peer, std::slice::from_ref(&frame), &[2]);
        drive(Peer::new(), &[frame], &[2]);
    }

    #[test]
    fn random_bytes_do_not_panic(bytes in collection::vec(any::<u8>(), 0..600), header in 0usize..3) {
        let start = [&b""[..], AMQP_HEADER, SASL_HEADER][header];
        let mut connection = Connection::new(Config::default(), Duration::ZERO);
        let mut input = BytesMut::from(start);
        input.extend_from_slice(&bytes);
        connection.receive(Duration::ZERO, &mut input);
        while connection.poll_event().is_some() {}
        connection.flush();
        prop_assert!(connection.output().len() < 4096);
    }
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<u8>().prop_map(Value::Ubyte),
        any::<u16>().prop_map(Value::Ushort),
        any::<u32>().prop_map(Value::Uint),
        any::<u64>().prop_map(Value::Ulong),
        any::<i32>().prop_map(Value::Int),
        any::<i64>().prop_map(Value::Long),
        any::<f64>().prop_map(Value::from),
        "[a-z]{0,9}".prop_map(|t| text(&t)),
        "[a-z]{0,9}".prop_map(|t| symbol(&t)),
        collection::vec(any::<u8>(), 0..9).prop_map(|b| binary(&b)),
    ];
    leaf.prop_recursive(3, 20, 5, |inner| {
        prop_oneof![
            collection::vec(inner.clone(), 0..5).prop_map(Value::List),
            (
                sample::select(vec![0x1du64, 0x28, 0x29, 0x30, 0x77]),
                collection::vec(inner.clone(), 0..12)
            )
                .prop_map(|(code, fields)| composite(code, fields)),
            collection::vec((inner.clone(), inner.clone()), 0..4).prop_map(map),
            collection::vec(inner, 1..4)
                .prop_map(|v| Value::Array(vec![v[0].clone(); v.len()].into())),
        ]
    })
}
