//! Thousands who wait for a session, and are served in the order in which they came.

use serde_amqp::Value;

use crate::support::*;

/// On each of a few connections.
const EACH: usize = 1000;
const CONNECTIONS: usize = 4;

fn next(number: usize) -> Attach {
    Attach::session("q", Value::Null).named(&format!("next-{number}"))
}

#[test]
fn whoever_came_first_is_woken_first() {
    let bus = Bus::with_sessions();
    let mut peers: Vec<Peer> = (0..CONNECTIONS).map(|_| bus.client()).collect();
    // In turns: first a hundred of one connection, then of the next.
    let mut waiting = Vec::new();
    for round in 0..EACH / 100 {
        for (index, peer) in peers.iter_mut().enumerate() {
            for number in 0..100 {
                let attach = next(round * 100 + number);
                let handle = peer.ask_to_attach(&attach);
                waiting.push((index, attach, handle));
            }
            peer.settle_down();
        }
    }
    let mut sender = bus.client();
    let ids = (0..waiting.len()).map(|number| format!("s{number}"));
    filling_sessions(&mut sender, "q", ids);
    for (number, (index, attach, handle)) in waiting.iter().enumerate() {
        let link = peers[*index].answer_to(attach, *handle);
        let link = link.expect("there is a session for everybody");
        assert_eq!(granted(&link), text(&format!("s{number}")));
    }
}

#[test]
fn sessions_go_from_hand_to_hand_and_nobody_is_passed_over() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("m", "only")]);
    let first = peer.accept("q", "only");
    let mut waiting: Vec<(Attach, u32)> = (0..200)
        .map(|number| {
            let attach = next(number);
            let handle = peer.ask_to_attach(&attach);
            (attach, handle)
        })
        .collect();
    // Every third gives up.
    let mut number = 0;
    waiting.retain(|(_, handle)| {
        number += 1;
        let stays = number % 3 != 0;
        if !stays {
            peer.frame(0, DETACH, &[uint(*handle), Value::Bool(true)]);
        }
        stays
    });
    peer.settle_down();
    let mut held = first;
    for (attach, handle) in &waiting {
        peer.detach(&held);
        held = peer.answer_to(attach, *handle).expect("it is free");
    }
    assert_eq!(peer.receive_one(&held).id(), "m");
}
