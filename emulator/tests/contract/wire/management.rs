//! `$management`: the operations, and the exact types of their replies (wire.md §6).

use serde_amqp::Value;
use serde_amqp::primitives::Array;
use uuid::Uuid;

use crate::support::*;

/// A queue with messages of these ids, and a client with a node.
fn bus_with(ids: &[&str]) -> (Bus, Peer, Node) {
    let (bus, mut peer, sender) = Bus::with_queues(&["q", "other"]).with_sender("q");
    for id in ids {
        peer.send(&sender, &Message::new(id));
    }
    let node = peer.node("q/$management");
    (bus, peer, node)
}

/// The instants of a renew-lock reply: an array even when there is one.
fn expirations(reply: &Reply) -> Vec<i64> {
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let Value::Array(Array(instants)) = reply.field("expirations") else {
        panic!("expirations are an array: {reply:?}");
    };
    let milliseconds = |instant: &Value| match instant {
        Value::Timestamp(instant) => instant.milliseconds(),
        other => panic!("an expiration is {other:?}"),
    };
    instants.iter().map(milliseconds).collect()
}

#[test]
fn a_peek_shows_messages_without_locking_them() {
    let (bus, mut peer, node) = bus_with(&["a", "b", "c"]);
    let locked = peer.receive_from("q");
    let seen = peeked(&peer.peek(&node, 1, 10));
    assert_eq!(ids(&seen), ["a", "b", "c"]);
    for (message, number) in seen.iter().zip(1..) {
        assert_eq!(message.annotation("x-opt-sequence-number"), long(number));
        assert_eq!(message.annotation("x-opt-message-state"), Value::Int(0));
        assert_eq!(message.annotation("x-opt-locked-until"), Value::Null);
        assert_eq!(message.lock_token(), None);
        assert_eq!(message.header(4), uint(0), "delivery-count is written");
        assert_eq!(message.data(), b"body");
    }
    // Python writes the count in any integer type that fits.
    for count in [Value::Int(1), long(1), uint(1), Value::Ubyte(1), ulong(1)] {
        assert_eq!(
            ids(&peeked(&peer.call(
                &node,
                "peek-message",
                peek_from(2, count)
            ))),
            ["b"]
        );
    }
    let reply = peer.peek(&node, 4, 1);
    assert_eq!((reply.status(), &reply.body), (204, &Value::Null));
    peer.complete(&locked);
    assert_eq!(bus.http.held("q"), (2, 0));
}

#[test]
fn o7_a_peek_may_omit_the_message_body() {
    let (_bus, mut peer, node) = bus_with(&["a"]);
    for omit in [true, false] {
        let Value::Map(mut request) = peek_from(1, Value::Int(10)) else {
            panic!("it is a map");
        };
        request.insert(text("omit-message-body"), Value::Bool(omit));
        let seen = peeked(&peer.call(&node, "peek-message", Value::Map(request)));
        assert_eq!(ids(&seen), ["a"]);
        assert_eq!(seen[0].annotation("x-opt-sequence-number"), long(1));
        assert_eq!(seen[0].has_data(), !omit);
    }
}

#[test]
fn a_peek_reply_has_at_most_one_megabyte_in_several_frames() {
    let (_bus, mut peer, node) = bus_with(&[]);
    let sender = peer.sender("q");
    for number in 0..7 {
        let message = Message::new(&number.to_string()).body(vec![b'x'; 200_000]);
        peer.send(&sender, &message);
    }
    let reply = peer.peek(&node, 1, 100);
    assert_eq!(ids(&peeked(&reply)), ["0", "1", "2", "3", "4"]);
    assert!(reply.delivery.frame_size <= 65_536);
    let reply = peer.peek(&node, 6, 100);
    assert_eq!(ids(&peeked(&reply)), ["5", "6"]);
}

#[test]
fn the_correlation_id_has_the_type_of_the_message_id() {
    let (_bus, mut peer, node) = bus_with(&[]);
    let uuid = uuid(Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff));
    for id in [
        uuid,
        text("id"),
        ulong(0),
        ulong(u64::MAX),
        binary(b"id"),
        Value::Null,
    ] {
        for operation in ["com.microsoft:peek-message", "com.microsoft:nonsense"] {
            let request = Message::request(id.clone(), text(&node.reply_to), peek_from(1, uint(1)));
            let reply = peer.ask(&node, &request.application("operation", text(operation)));
            assert_eq!(reply.correlation_id, id);
        }
    }
}

#[test]
fn a_renew_lock_request_renews_all_locks_or_none() {
    let (bus, mut peer, node) = bus_with(&["a", "b"]);
    let receiver = peer.receiver("q");
    let held = [peer.receive_one(&receiver), peer.receive_one(&receiver)];
    let both = [held[0].token(), held[1].token()];
    assert_eq!(
        expirations(&peer.call(&node, "renew-lock", map([tokens(&both)]))).len(),
        2
    );
    let list = (text("lock-tokens"), list(both.map(uuid)));
    assert_eq!(
        expirations(&peer.call(&node, "renew-lock", map([list]))).len(),
        2
    );
    let renewals = || bus.http.timeline("?entity=q")["counters"]["lock-renewed"].clone();
    assert_eq!(renewals(), 4);
    let reply = peer.call(&node, "renew-lock", map([tokens(&[both[0], Uuid::nil()])]));
    assert_lock_lost(&reply);
    assert_eq!(renewals(), 4);
}

#[test]
fn update_disposition_settles_like_a_disposition_frame() {
    let (bus, mut peer, node) = bus_with(&["a", "b", "c"]);
    let receiver = peer.receiver("q");
    let held = [1, 2, 3].map(|_| peer.receive_one(&receiver));
    let reply = peer.update_disposition(&node, "completed", &[held[0].token()]);
    assert_eq!((reply.status(), &reply.body), (200, &Value::Null));
    let changes = map([(text("tries"), Value::Int(1))]);
    let abandon = map([
        (text("disposition-status"), text("abandoned")),
        tokens(&[held[1].token()]),
        (text("properties-to-modify"), changes),
    ]);
    assert_eq!(
        peer.call(&node, "update-disposition", abandon).status(),
        200
    );
    let dead_letter = map([
        (text("disposition-status"), text("suspended")),
        tokens(&[held[2].token()]),
        (text("deadletter-reason"), symbol("why")),
        (text("deadletter-description"), text("")),
    ]);
    assert_eq!(
        peer.call(&node, "update-disposition", dead_letter).status(),
        200
    );
    assert_eq!(bus.http.held("q"), (1, 1));
    let again = peer.receive_one(&receiver);
    assert_eq!(
        (again.id().as_str(), again.message.header(4)),
        ("b", uint(1))
    );
    assert_eq!(again.message.application("tries"), Value::Int(1));
    let dead = peer.receive_from("q/$DeadLetterQueue");
    assert_eq!(dead.message.dead_letter_reason(), text("why"));
    assert_eq!(dead.message.dead_letter_description(), Value::Null);
}

#[test]
fn a_second_update_disposition_of_a_token_is_a_lost_lock() {
    let (bus, mut peer, node) = bus_with(&["a", "b"]);
    let receiver = peer.receiver("q");
    let held = peer.receive_one(&receiver);
    peer.complete(&held);
    for status in ["completed", "abandoned", "defered", "suspended"] {
        let reply = peer.update_disposition(&node, status, &[held.token()]);
        assert_lock_lost(&reply);
    }
    // A token is valid at its own entity only.
    let held = peer.receive_one(&receiver);
    let other = peer.node("other/$management");
    let reply = peer.update_disposition(&other, "completed", &[held.token()]);
    assert_lock_lost(&reply);
    assert_eq!(bus.http.held("q"), (1, 0));
}

#[test]
fn update_disposition_settles_all_lock_tokens_or_none() {
    let (bus, mut peer, node) = bus_with(&["a", "b", "c"]);
    let receiver = peer.receiver("q");
    let held = [1, 2, 3].map(|_| peer.receive_one(&receiver).token());
    let unknown = Uuid::from_u128(7);
    for lock_tokens in [
        [held[0], unknown, held[1]],
        [unknown, held[0], held[1]],
        [held[0], held[1], held[0]],
    ] {
        for status in ["completed", "abandoned", "defered", "suspended"] {
            let reply = peer.update_disposition(&node, status, &lock_tokens);
            assert_lock_lost(&reply);
            assert_eq!(bus.http.held("q"), (3, 0), "{status} {lock_tokens:?}");
            assert_eq!(bus.http.counts("q")["locked"], 3);
        }
    }
    let reply = peer.update_disposition(&node, "completed", &held);
    assert_eq!(reply.status(), 200);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_lock_can_be_settled_by_token_after_the_detach() {
    let (bus, mut peer, node) = bus_with(&["a"]);
    let (mut worker, receiver) = bus.receiver("q");
    let held = worker.receive_one(&receiver);
    worker.detach(&receiver);
    drop(worker);
    let reply = peer.update_disposition(&node, "completed", &[held.token()]);
    assert_eq!(reply.status(), 200);
    assert_eq!(bus.http.held("q"), (0, 0));
}

#[test]
fn a_refused_management_request_has_status_and_condition() {
    let (_bus, mut peer, node) = bus_with(&["a"]);
    let argument = "com.microsoft:argument-error";
    let range = "com.microsoft:argument-out-of-range";
    let odd = map([
        tokens(&[Uuid::nil()]),
        (text("disposition-status"), text("eaten")),
    ]);
    let changes = map([
        (text("disposition-status"), text("abandoned")),
        tokens(&[Uuid::nil()]),
        (text("properties-to-modify"), uint(1)),
    ]);
    for (operation, body, status, condition) in [
        ("peek-message", map([]), 400, argument),
        ("peek-message", Value::Null, 400, argument),
        ("peek-message", peek_from(1, Value::Int(0)), 400, range),
        ("peek-message", peek_from(1, long(1 << 31)), 400, range),
        ("peek-message", peek_from(1, text("1")), 400, argument),
        ("renew-lock", map([]), 400, argument),
        (
            "renew-lock",
            map([(text("lock-tokens"), list([text("x")]))]),
            400,
            argument,
        ),
        ("renew-lock", map([tokens(&[])]), 400, argument),
        (
            "update-disposition",
            disposition("completed", &[]),
            400,
            argument,
        ),
        ("update-disposition", odd, 400, argument),
        ("update-disposition", changes, 400, argument),
        ("schedule-message", map([]), 400, argument),
        ("cancel-scheduled-message", map([]), 400, argument),
        ("receive-by-sequence-number", map([]), 400, argument),
        ("batch-delete-messages", map([]), 400, argument),
        ("nonsense", map([]), 501, "amqp:not-implemented"),
    ] {
        let reply = peer.call(&node, operation, body);
        assert_eq!(
            (reply.status(), reply.condition().as_str()),
            (status, condition),
            "{operation}"
        );
        untracked(&reply.text());
    }
    let nameless = Message::request(text("id"), text(&node.reply_to), map([]));
    let reply = peer.ask(&node, &nameless);
    refused_with(&reply, 400, argument);
    // A success has no condition at all.
    let reply = peer.peek(&node, 1, 1);
    assert_eq!(
        (reply.condition(), reply.text()),
        (String::new(), "OK".into())
    );
}

#[test]
fn a_malformed_management_request_is_rejected_and_keeps_the_link() {
    let (_bus, mut peer, node) = bus_with(&["a"]);
    let refusal = peer.send_in_vain(&node.requests, b"\x00\x53\x77\xd1\xff");
    assert_eq!(refusal.condition, "amqp:decode-error");
    refusal.tracking_id();
    assert_eq!(peer.peek(&node, 1, 1).status(), 200);
}

/// Clients wait for a reply, and would not get one if only the transfer was refused.
#[test]
fn an_oversized_management_request_is_refused_with_a_reply() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let node = peer.node("q/$management");
    let large = schedule(&[Message::new("m").body(vec![0; 3_000_000])]);
    let request = |id| {
        Message::request(id, text(&node.reply_to), large.clone())
            .application("operation", text("com.microsoft:schedule-message"))
    };
    for settled in [false, true] {
        let reply = match settled {
            false => peer.ask(&node, &request(text("r"))),
            true => {
                peer.transfer(&node.requests, 0, true, &request(text("r")).encode());
                Reply::new(peer.receive(&node.replies))
            }
        };
        assert_eq!(reply.correlation_id, text("r"));
        let words = refused_with(&reply, 403, "amqp:link:message-size-exceeded");
        assert_contains(&words, "exceeds the limit (327680 bytes)");
    }
    assert!(peer.peek_all(&node).is_empty());
    // The client could not tell what the reply answers.
    peer.transfer(&node.requests, 0, false, &request(Value::Null).encode());
    let refusal = peer.detached(&node.requests).refusal(2);
    assert_eq!(refusal.condition, "amqp:link:message-size-exceeded");
    let again = peer.node("q/$management");
    assert!(peer.peek_all(&again).is_empty());
}

#[test]
fn a_management_reply_repeats_the_tracking_id_of_the_request() {
    let (_bus, mut peer) = Bus::with_queues(&["q"]).with_client();
    let node = peer.node("q/$management");
    let body = peek_from(1, Value::Int(1));
    let request = Message::request(text("r"), text(&node.reply_to), body)
        .application("operation", text("com.microsoft:peek-message"))
        .application("com.microsoft:tracking-id", text("mine"));
    let reply = peer.ask(&node, &request);
    let own = reply
        .delivery
        .message
        .application("com.microsoft:tracking-id");
    assert_eq!(own, text("mine"));
}

#[test]
fn sections_of_a_management_request_may_have_symbolic_descriptors() {
    let (_bus, mut peer, node) = bus_with(&["a"]);
    let request = Message::request(text("id"), text(&node.reply_to), peek_from(1, uint(1)));
    let request = request.application("operation", text("com.microsoft:peek-message"));
    let mut encoded = request.encode();
    for (code, name) in [
        (0x73, "amqp:properties:list"),
        (0x74, "amqp:application-properties:map"),
        (0x77, "amqp:amqp-value:*"),
    ] {
        let place = encoded
            .windows(3)
            .position(|three| three == [0, 0x53, code]);
        let place = place.expect("the section is there");
        let mut named = vec![0, 0xa3, name.len() as u8];
        named.extend_from_slice(name.as_bytes());
        encoded.splice(place..place + 3, named);
    }
    peer.transfer(&node.requests, 0, true, &encoded);
    let reply = Reply::new(peer.receive(&node.replies));
    assert_eq!(reply.correlation_id, text("id"));
    assert_eq!(ids(&peeked(&reply)), ["a"]);
}
