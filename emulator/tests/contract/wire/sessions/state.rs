//! What a client keeps with a session: its state (wire.md §6.2).

use serde_amqp::Value;

use crate::support::*;

const LOST: &str = "com.microsoft:session-lock-lost";

fn get(peer: &mut Peer, node: &Node, session: &str) -> Reply {
    peer.call(node, "get-session-state", in_session(session, []))
}

fn set(peer: &mut Peer, node: &Node, session: &str, state: Value) -> Reply {
    let body = in_session(session, [(text("session-state"), state)]);
    peer.call(node, "set-session-state", body)
}

#[test]
fn it_is_null_until_it_is_set_and_after_it_is_cleared() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    peer.accept("q", "s");
    let node = peer.node("q/$management");
    let state = |peer: &mut Peer| {
        let reply = get(peer, &node, "s");
        assert_eq!(reply.status(), 200, "{}", reply.text());
        reply.field("session-state").clone()
    };
    assert_eq!(state(&mut peer), Value::Null);
    for value in [binary(b"step 1"), binary(&[0xff; 300])] {
        let reply = set(&mut peer, &node, "s", value.clone());
        assert_eq!((reply.status(), &reply.body), (200, &Value::Null));
        assert_eq!(state(&mut peer), value);
    }
    for cleared in [Value::Null, binary(b"")] {
        set(&mut peer, &node, "s", binary(b"step 2"));
        assert_eq!(set(&mut peer, &node, "s", cleared).status(), 200);
        assert_eq!(state(&mut peer), Value::Null);
    }
}

#[test]
fn it_outlives_messages_and_readers() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("m", "s")]);
    let link = peer.accept("q", "s");
    let node = peer.node("q/$management");
    set(&mut peer, &node, "s", binary(b"kept"));
    let held = peer.receive_one(&link);
    peer.complete(&held);
    peer.detach(&link);
    let mut other = bus.client();
    other.accept("q", "s");
    let node = other.node("q/$management");
    let reply = get(&mut other, &node, "s");
    assert_eq!(reply.field("session-state"), &binary(b"kept"));
}

#[test]
fn it_belongs_to_who_holds_the_session() {
    let (bus, mut holder) = Bus::with_sessions().with_client();
    holder.accept("q", "s");
    let mut peer = bus.client();
    let node = peer.node("q/$management");
    for session in ["s", "nobody's"] {
        refused_with(&get(&mut peer, &node, session), 410, LOST);
        refused_with(&set(&mut peer, &node, session, binary(b"x")), 410, LOST);
        let reply = peer.call(&node, "renew-session-lock", in_session(session, []));
        refused_with(&reply, 410, LOST);
    }
}

#[test]
fn the_tier_limits_its_size() {
    for (tier, limit) in [("standard", 256 * 1024), ("premium", 1024 * 1024)] {
        let emulator = format!(r#""Tier":"{tier}""#);
        let (_bus, mut peer) =
            Bus::configured(&queues(&emulator, &[("q", r#""RequiresSession":true"#)]))
                .with_client();
        peer.accept("q", "s");
        let node = peer.node("q/$management");
        let longest = binary(&vec![7; limit]);
        assert_eq!(set(&mut peer, &node, "s", longest.clone()).status(), 200);
        let reply = set(&mut peer, &node, "s", binary(&vec![8; limit + 1]));
        let words = refused_with(&reply, 403, "amqp:link:message-size-exceeded");
        let size = limit + 1;
        let expected = format!(
            "The session state was refused: the state of a session has {size} bytes, at most {limit} are allowed."
        );
        assert_eq!(words, expected);
        assert_eq!(get(&mut peer, &node, "s").field("session-state"), &longest);
    }
}

#[test]
fn half_a_request_is_refused() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    peer.accept("q", "s");
    let node = peer.node("q/$management");
    let argument = "com.microsoft:argument-error";
    let id = |id: Value| (text("session-id"), id);
    for operation in [
        "get-session-state",
        "set-session-state",
        "renew-session-lock",
    ] {
        for body in [
            map([]),
            map([id(Value::Null)]),
            map([id(uint(1))]),
            map([id(text(&"s".repeat(129)))]),
        ] {
            refused_with(&peer.call(&node, operation, body), 400, argument);
        }
    }
    for body in [
        in_session("s", []),
        in_session("s", [(text("session-state"), text("text"))]),
    ] {
        let reply = peer.call(&node, "set-session-state", body);
        refused_with(&reply, 400, argument);
    }
}

#[test]
fn a_plain_queue_and_dead_letters_have_none() {
    let (_bus, mut peer) = Bus::configured(&queues(
        "",
        &[("p", ""), ("q", r#""RequiresSession":true"#)],
    ))
    .with_client();
    for address in ["p/$management", "q/$DeadLetterQueue/$management"] {
        let node = peer.node(address);
        let since = (text("last-updated-time"), timestamp(0));
        let page = [(text("skip"), Value::Int(0)), (text("top"), Value::Int(1))];
        let listing = map([since].into_iter().chain(page));
        for (operation, body) in [
            ("get-session-state", in_session("s", [])),
            (
                "set-session-state",
                in_session("s", [(text("session-state"), Value::Null)]),
            ),
            ("renew-session-lock", in_session("s", [])),
            ("get-message-sessions", listing),
        ] {
            let words = refused_with(&peer.call(&node, operation, body), 400, "amqp:not-allowed");
            assert!(words.contains("has no sessions"), "{words}");
        }
    }
}
