//! Requests about sessions, and requests that are limited to one (wire.md §6.2).

use serde_amqp::Value;

use crate::support::*;

const HOUR: i64 = 3_600_000;
/// "Sessions with messages": a marker and no time.
const WITH_MESSAGES: i64 = 253_402_300_800_000;

fn listed(peer: &mut Peer, node: &Node, since: i64, skip: Value, top: Value) -> Reply {
    let body = map([
        (text("last-updated-time"), timestamp(since)),
        (text("skip"), skip),
        (text("top"), top),
    ]);
    peer.call(node, "get-message-sessions", body)
}

fn page(peer: &mut Peer, node: &Node, since: i64, skip: i32, top: i32) -> Reply {
    listed(peer, node, since, Value::Int(skip), Value::Int(top))
}

#[test]
fn sessions_with_messages_are_listed_page_by_page() {
    let bus = Bus::with_sessions();
    // The marker is not an instant of the namespace.
    bus.http.advance(86_400.0);
    let (mut peer, node) = bus.node("q/$management");
    let none = page(&mut peer, &node, WITH_MESSAGES, 0, 100);
    let condition = "com.microsoft:session-not-found";
    assert_eq!((none.status(), none.condition().as_str()), (204, condition));
    send_all(
        &mut peer,
        "q",
        &[("1", "c"), ("2", "a"), ("3", "b"), ("4", "a")],
    );
    let first = page(&mut peer, &node, WITH_MESSAGES, 0, 2);
    assert_eq!(sessions(&first), ["a", "b"]);
    assert_eq!(first.field("skip"), &Value::Int(2), "where the next begins");
    let rest = page(&mut peer, &node, WITH_MESSAGES, 2, 2);
    assert_eq!(sessions(&rest), ["c"]);
    assert_eq!(rest.field("skip"), &Value::Int(3));
    assert_eq!(page(&mut peer, &node, WITH_MESSAGES, 3, 2).status(), 204);
    let all = listed(
        &mut peer,
        &node,
        WITH_MESSAGES,
        Value::Long(0),
        uint(1 << 30),
    );
    assert_eq!(sessions(&all), ["a", "b", "c"]);
}

#[test]
fn sessions_are_listed_by_the_time_of_their_last_state() {
    let bus = Bus::with_sessions();
    bus.http.advance(86_400.0);
    let (mut peer, node) = bus.node("q/$management");
    send_all(&mut peer, "q", &[("1", "without-state")]);
    for session in ["old", "new"] {
        peer.accept("q", session);
        let body = in_session(session, [(text("session-state"), binary(b"x"))]);
        assert_eq!(peer.call(&node, "set-session-state", body).status(), 200);
        bus.http
            .advance(if session == "old" { 7200.0 } else { 0.0 });
    }
    // In the client's time, in which the old one was set two hours ago.
    let recent = page(&mut peer, &node, client_now() - HOUR, 0, 100);
    assert_eq!(sessions(&recent), ["new"]);
    let all = page(&mut peer, &node, 0, 0, 100);
    assert_eq!(sessions(&all), ["new", "old"]);
    // As .NET asks for any, and by omitting it.
    let any = page(&mut peer, &node, WITH_MESSAGES - 1, 0, 100);
    assert_eq!(sessions(&any), ["new", "old", "without-state"]);
    let untimed = map([(text("skip"), Value::Int(0)), (text("top"), Value::Int(9))]);
    let any = peer.call(&node, "get-message-sessions", untimed);
    assert_eq!(sessions(&any), ["new", "old", "without-state"]);
    assert_eq!(
        page(&mut peer, &node, client_now() + HOUR, 0, 100).status(),
        204
    );
}

#[test]
fn listing_sessions_needs_a_time_and_a_page() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    let node = peer.node("q/$management");
    let since = |value: Value| (text("last-updated-time"), value);
    let skip = |value: Value| (text("skip"), value);
    let top = |value: Value| (text("top"), value);
    for body in [
        map([since(timestamp(0)), top(Value::Int(1))]),
        map([since(timestamp(0)), skip(Value::Int(0))]),
        map([since(long(0)), skip(Value::Int(0)), top(Value::Int(1))]),
        map([since(timestamp(0)), skip(text("0")), top(Value::Int(1))]),
    ] {
        let reply = peer.call(&node, "get-message-sessions", body);
        refused_with(&reply, 400, "com.microsoft:argument-error");
    }
    for (from, count, words) in [
        (-1, 1, "skip is -1; it must be an int from 0 to 2147483647."),
        (0, 0, "top is 0; it must be an int from 1 to 2147483647."),
    ] {
        let reply = page(&mut peer, &node, 0, from, count);
        let found = refused_with(&reply, 400, "com.microsoft:argument-out-of-range");
        assert_eq!(found, words);
    }
}

#[test]
fn renewing_a_session_lock_returns_its_end_in_client_time() {
    let bus = Bus::with_sessions();
    bus.http.advance(86_400.0);
    let mut peer = bus.client();
    peer.accept("q", "s");
    let node = peer.node("q/$management");
    let reply = peer.call(&node, "renew-session-lock", in_session("s", []));
    let Value::Timestamp(end) = reply.field("expiration") else {
        panic!("{reply:?}");
    };
    let left = end.milliseconds() - client_now();
    assert!((left - 60_000).abs() < 20_000, "{left}");
}

#[test]
fn a_request_about_a_session_need_not_name_the_receiver_that_holds_it() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    peer.attached(&Attach::sender("q").identified("sender"));
    peer.attached(&Attach::session("q", text("s")).identified("receiver"));
    let node = peer.node("q/$management");
    let state = || (text("session-state"), binary(b"x"));
    for (operation, body) in [
        ("renew-session-lock", in_session("s", [])),
        ("set-session-state", in_session("s", [state()])),
        ("get-session-state", in_session("s", [])),
    ] {
        let reply = peer.call(&node, operation, body.clone());
        assert_eq!(reply.status(), 200, "{operation}: {}", reply.text());
        let nameless = Message::request(text("r"), text(&node.reply_to), body)
            .application("operation", text(&format!("com.microsoft:{operation}")))
            .application("associated-link-name", text(""));
        let reply = peer.ask(&node, &nameless);
        assert_eq!(reply.status(), 200, "{operation}: {}", reply.text());
    }
}

#[test]
fn a_peek_may_be_limited_to_a_session() {
    let (bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("1", "a"), ("2", "b"), ("3", "a")]);
    let node = peer.node("q/$management");
    let peek = |session: Value| {
        map([
            (text("from-sequence-number"), long(1)),
            (text("message-count"), Value::Int(10)),
            (text("session-id"), session),
        ])
    };
    for (session, expected) in [
        (text("a"), vec!["1", "3"]),
        (text("b"), vec!["2"]),
        (Value::Null, vec!["1", "2", "3"]),
    ] {
        let reply = peer.call(&node, "peek-message", peek(session));
        assert_eq!(ids(&peeked(&reply)), expected);
    }
    assert_eq!(
        peer.call(&node, "peek-message", peek(text("c"))).status(),
        204
    );
    let reply = peer.call(&node, "peek-message", peek(uint(1)));
    refused_with(&reply, 400, "com.microsoft:argument-error");
    // No client must hold it, and one that does is not affected.
    let mut holder = bus.client();
    holder.accept("q", "a");
    let reply = peer.call(&node, "peek-message", peek(text("a")));
    assert_eq!(peeked(&reply).len(), 2);
}

#[test]
fn a_batch_delete_may_be_limited_to_a_session() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("1", "a"), ("2", "b"), ("3", "a")]);
    let node = peer.node("q/$management");
    let body = in_session(
        "a",
        [
            (text("message-count"), Value::Int(10)),
            (text("enqueued-time-utc"), timestamp(client_now() + HOUR)),
        ],
    );
    let reply = peer.call(&node, "batch-delete-messages", body);
    assert_eq!(reply.field("message-count"), &Value::Int(2));
    assert_eq!(ids(&peer.peek_all(&node)), ["2"]);
}

#[test]
fn dead_letters_can_be_peeked_by_session() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    send_all(&mut peer, "q", &[("1", "a"), ("2", "b")]);
    for session in ["a", "b"] {
        let link = peer.accept("q", session);
        let held = peer.receive_one(&link);
        peer.settle(&held, dead_lettered("why", ""));
    }
    let node = peer.node("q/$DeadLetterQueue/$management");
    let body = peek_in("b", 1, 10);
    let reply = peer.call(&node, "peek-message", body);
    assert_eq!(ids(&peeked(&reply)), ["2"]);
}
