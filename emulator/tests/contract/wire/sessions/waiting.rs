//! No session is available yet: the answer to the attach waits.
//!
//! Thousands who wait for a session, and are served in the order in which they came.

use std::time::{Duration, Instant};

use serde_amqp::Value;
use serde_json::json;

use crate::support::*;

fn next(name: &str) -> Attach {
    Attach::session("q", Value::Null).named(name)
}

/// Asserts that an attach is not answered, once everything that was sent before it is dealt with.
fn assert_unanswered(peer: &mut Peer) {
    peer.assert_no_frame(|frame| frame.code == ATTACH);
}

#[test]
fn a_waiting_session_attach_is_answered_at_the_first_message() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    let attach = Attach::session("q", described(Value::Null));
    let handle = peer.ask_to_attach(&attach);
    assert_unanswered(&mut peer);
    send_all(&mut bus.client(), "q", &[("m", "s")]);
    let link = peer.answer_to(&attach, handle).expect("there is a session");
    assert_eq!(granted(&link), described(text("s")));
    assert_eq!(peer.receive_one(&link).id(), "m");
}

#[test]
fn a_waiting_session_attach_is_answered_when_a_session_is_released() {
    let (bus, mut holder) = Bus::with_sessions().with_client();
    send_all(&mut holder, "q", &[("m", "s")]);
    let held = holder.accept("q", "s");
    let mut peer = bus.client();
    let attach = next("next");
    let handle = peer.ask_to_attach(&attach);
    assert_unanswered(&mut peer);
    holder.detach(&held);
    let link = peer.answer_to(&attach, handle).expect("it is free");
    assert_eq!(granted(&link), text("s"));
}

#[test]
fn a_session_that_an_update_gives_to_a_waiting_receiver_is_not_lost_by_it() {
    let (bus, mut holder) = Bus::with_sessions().with_client();
    send_all(&mut holder, "q", &[("m", "s")]);
    let held = holder.accept("q", "s");
    let mut peer = bus.client();
    let attach = next("next");
    let handle = peer.ask_to_attach(&attach);
    assert_unanswered(&mut peer);
    bus.http.put_queue("q", &json!({"LockDuration": "PT50S"}));
    holder.detached(&held);
    let link = peer.answer_to(&attach, handle).expect("it is free");
    let delivery = peer.receive_one(&link);
    peer.complete(&delivery);
}

#[test]
fn credit_may_precede_the_answer_of_a_session_attach() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    let attach = next("next");
    let handle = peer.ask_to_attach(&attach);
    let window = i32::MAX as u32;
    let mut flow = vec![uint(0), uint(window), uint(0), uint(window)];
    flow.extend([uint(handle), uint(0), uint(5)]);
    peer.frame(0, FLOW, &flow);
    assert_unanswered(&mut peer);
    send_all(&mut peer, "q", &[("m", "s")]);
    let link = peer.answer_to(&attach, handle).expect("there is a session");
    assert_eq!(peer.receive(&link).id(), "m");
}

#[test]
fn a_wait_for_a_session_times_out() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    for (time, shown) in [
        (uint(0), "00:00:00"),
        (Value::Ubyte(1), "00:00:00.0010000"),
        (Value::Long(150), "00:00:00.1500000"),
        (ulong(20), "00:00:00.0200000"),
        (Value::Int(1), "00:00:00.0010000"),
    ] {
        let started = Instant::now();
        let refusal = peer.refused(&next("next").waiting_for(time.clone()));
        assert_eq!(refusal.condition, "com.microsoft:timeout");
        let words = format!(
            "The operation did not complete within the allotted timeout of {shown}. The time allotted to this \
             operation may have been a portion of a longer timeout. For more information on exception types and \
             proper exception handling, please refer to https://aka.ms/ServiceBusExceptions ."
        );
        assert_eq!(refusal.words(), words);
        if time == Value::Long(150) {
            assert!(started.elapsed() >= Duration::from_millis(150));
        }
    }
    // It was in no other's way.
    send_all(&mut peer, "q", &[("m", "s")]);
    assert_eq!(peer.accept_next("q").0, "s");
}

#[test]
fn a_wait_for_a_session_takes_real_time_despite_an_advance() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    let attach = next("next");
    let handle = peer.ask_to_attach(&attach);
    assert_unanswered(&mut peer);
    bus.http.advance(3600.0);
    assert_unanswered(&mut peer);
    send_all(&mut peer, "q", &[("m", "s")]);
    peer.answer_to(&attach, handle)
        .expect("it has waited all the time");
}

#[test]
fn a_detach_cancels_a_waiting_session_attach() {
    let (bus, mut gone) = Bus::with_sessions().with_client();
    let attach = next("gone");
    let handle = gone.ask_to_attach(&attach);
    assert_unanswered(&mut gone);
    gone.frame(0, DETACH, &[uint(handle), Value::Bool(true)]);
    let answer = gone.expect(ATTACH);
    assert_eq!(answer.field(5), &Value::Null, "a link without a source");
    assert!(gone.expect(DETACH).flag(1));
    send_all(&mut gone, "q", &[("m", "s")]);
    assert_eq!(bus.client().accept_next("q").0, "s");
}

#[test]
fn a_waiting_attach_ends_with_its_amqp_session_or_connection() {
    let (bus, mut gone) = Bus::with_sessions().with_client();
    gone.begin(3);
    gone.ask_to_attach(&next("gone").on(3));
    gone.end(3);
    let mut closed = bus.client();
    closed.ask_to_attach(&next("closed"));
    assert_unanswered(&mut closed);
    closed.close();
    drop(bus.client());
    let mut peer = bus.client();
    send_all(&mut peer, "q", &[("m", "s")]);
    assert_eq!(peer.accept_next("q").0, "s");
}

#[test]
fn a_repeated_attach_replaces_the_waiting_link() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    peer.ask_to_attach(&next("same"));
    let handle = peer.ask_to_attach(&next("same"));
    let stolen = peer.expect(DETACH);
    assert_eq!(stolen.refusal(2).condition, "amqp:link:stolen");
    send_all(&mut peer, "q", &[("m", "s")]);
    let link = peer.answer_to(&next("same"), handle);
    assert_eq!(granted(&link.expect("there is a session")), text("s"));
}

#[test]
fn a_waiting_attach_is_refused_when_the_queue_is_disabled_or_deleted() {
    for (change, condition) in [
        ("disable", "com.microsoft:entity-disabled"),
        ("delete", "amqp:not-found"),
    ] {
        let (bus, mut peer) = Bus::with_sessions().with_client();
        let attach = next("next");
        let handle = peer.ask_to_attach(&attach);
        assert_unanswered(&mut peer);
        match change {
            "disable" => bus.http.set_status("q", "Disabled"),
            _ => assert_eq!(bus.http.queue("DELETE", "q", None).status, 204),
        }
        let refusal = peer.answer_to(&attach, handle).expect_err("nothing comes");
        assert_eq!(refusal.condition, condition);
    }
}

/// On each of a few connections.
const EACH: usize = 1000;
const CONNECTIONS: usize = 4;

#[test]
fn waiting_session_receivers_are_served_in_order_of_arrival() {
    let bus = Bus::with_sessions();
    let mut peers: Vec<Peer> = (0..CONNECTIONS).map(|_| bus.client()).collect();
    // In turns: first a hundred of one connection, then of the next.
    let mut waiting = Vec::new();
    for round in 0..EACH / 100 {
        for (index, peer) in peers.iter_mut().enumerate() {
            let channel = round as u16 + 1;
            peer.begin(channel);
            peer.next_handle = 0;
            for number in 0..100 {
                let attach = next(&format!("next-{round}-{number}")).on(channel);
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
fn a_released_session_goes_to_the_next_waiting_receiver_in_order() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("m", "only")]);
    let first = peer.accept("q", "only");
    let mut waiting: Vec<(Attach, u32)> = (0..200)
        .map(|number| {
            let attach = next(&format!("next-{number}"));
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
