//! The application state of a session (wire.md §6.2).
//!
//! Sessions that another receiver takes over by a token, as .NET 7.21 asks for them (spec/observed.md 55, newest.md 1): no
//! published SDK of another language supports them, so these are its frames.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use uuid::Uuid;

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
fn a_session_state_is_null_before_it_is_set_and_after_clearing() {
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
fn only_the_session_holder_may_use_state_and_renewal() {
    let (bus, mut holder) = Bus::with_sessions().with_client();
    holder.accept("q", "s");
    let (mut peer, node) = bus.node("q/$management");
    for session in ["s", "nobody's"] {
        refused_with(&get(&mut peer, &node, session), 410, LOST);
        refused_with(&set(&mut peer, &node, session, binary(b"x")), 410, LOST);
        let reply = peer.call(&node, "renew-session-lock", in_session(session, []));
        refused_with(&reply, 410, LOST);
    }
}

#[test]
fn the_tier_limits_the_size_of_a_session_state() {
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
        let reply = set(&mut peer, &node, "s", binary(&vec![9; 5_000_000]));
        refused_with(&reply, 403, "amqp:link:message-size-exceeded");
        assert_eq!(get(&mut peer, &node, "s").field("session-state"), &longest);
    }
}

#[test]
fn an_incomplete_session_state_request_is_refused() {
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
fn plain_queues_and_dead_letters_have_no_session_state() {
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
            assert_contains(&words, "does not require sessions");
        }
    }
}

const KEY: &str = "com.microsoft:non-exclusive-session-filter";
const NAME: &str = "com.microsoft:non-exclusive-session-filter:list";
const CODE: u64 = 0x0000_0013_7000_000e;
const LOCKED: &str = "com.microsoft:session-cannot-be-locked";

fn premium() -> Bus {
    Bus::configured(&queues(
        r#""Tier":"premium""#,
        &[("q", r#""RequiresSession":true"#)],
    ))
}

fn described(descriptor: Descriptor, value: Value) -> Value {
    Value::Described(Box::new(Described { descriptor, value }))
}

fn wish(session: Value, token: Value) -> Attach {
    let value = list([session, token]);
    Attach::filtered("q", KEY, described(Descriptor::Code(CODE), value))
}

fn take_over(session: &str, token: Uuid) -> Attach {
    wish(text(session), uuid(token))
}

/// What the answer says: the session and its token.
fn held(link: &Link) -> (String, Uuid) {
    let Value::Described(described) = filter(link, KEY) else {
        panic!("{link:?}");
    };
    match &described.value {
        Value::List(fields) => match fields.as_slice() {
            [Value::String(id), Value::Uuid(token)] => {
                (id.clone(), Uuid::from_bytes(token.clone().into_inner()))
            }
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

/// A request that names the receiver that it is made for.
fn call(peer: &mut Peer, node: &Node, link: &str, operation: &str, body: Value) -> Reply {
    let operation = format!("com.microsoft:{operation}");
    let request = Message::request(text("r"), text(&node.reply_to), body)
        .application("operation", text(&operation))
        .application("associated-link-name", text(link));
    peer.ask(node, &request)
}

#[test]
fn o55_a_session_token_takes_over_on_the_same_connection() {
    let (_bus, mut peer) = premium().with_client();
    send_all(&mut peer, "q", &[("1", "s"), ("2", "s")]);
    let first = peer.attached(&wish(text("s"), Value::Null).named("first"));
    let (session, token) = held(&first);
    assert_eq!(session, "s");
    assert!(locked_until(&first) > client_now());
    let locked = peer.receive_one(&first);
    let second = peer.attached(&take_over("s", token).named("second"));
    assert_eq!(held(&second), ("s".to_owned(), token));
    let detach = peer.detached(&first);
    assert!(detach.flag(1), "closed");
    assert_eq!(detach.refusal(2).condition, LOST);

    let node = peer.node("q/$management");
    for (operation, entries) in [
        ("renew-session-lock", vec![]),
        ("get-session-state", vec![]),
        (
            "set-session-state",
            vec![(text("session-state"), Value::Null)],
        ),
        (
            "receive-by-sequence-number",
            vec![numbers(&[9]), (text("receiver-settle-mode"), uint(1))],
        ),
    ] {
        let body = in_session("s", entries);
        let reply = call(&mut peer, &node, "first", operation, body.clone());
        assert_eq!(
            (reply.status(), reply.condition().as_str()),
            (410, LOST),
            "{operation}"
        );
        let reply = call(&mut peer, &node, "second", operation, body);
        assert_ne!(reply.condition(), LOST, "{operation}");
    }
    let complete = in_session(
        "s",
        [
            (text("disposition-status"), text("completed")),
            tokens(&[locked.token()]),
        ],
    );
    let reply = call(
        &mut peer,
        &node,
        "first",
        "update-disposition",
        complete.clone(),
    );
    refused_with(&reply, 410, LOST);
    let reply = call(&mut peer, &node, "second", "update-disposition", complete);
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let rest = peer.receive_one(&second);
    assert_eq!((rest.id().as_str(), rest.message.header(4)), ("2", uint(0)));
}

#[test]
fn o55_a_session_token_takes_over_on_another_connection() {
    let bus = premium();
    let (mut one, mut other) = (bus.client(), bus.client());
    send_all(&mut one, "q", &[("1", "s")]);
    let first = one.attached(&wish(Value::Null, Value::Null));
    let (session, token) = held(&first);
    let second = other.attached(&take_over(&session, token));
    assert_eq!(one.detached(&first).refusal(2).condition, LOST);
    assert_eq!(other.receive_one(&second).id(), "1");
}

#[test]
fn o55_a_takeover_without_the_token_of_the_holder_is_refused() {
    let (_bus, mut peer) = premium().with_client();
    // A link of the same name would end it.
    let first = peer.attached(&wish(text("s"), Value::Null).named("first"));
    let (_, token) = held(&first);
    let refused = |peer: &mut Peer, attach: &Attach| peer.refused(attach).condition;
    assert_eq!(refused(&mut peer, &wish(text("s"), Value::Null)), LOCKED);
    assert_eq!(refused(&mut peer, &Attach::session("q", text("s"))), LOCKED);
    assert_eq!(refused(&mut peer, &take_over("s", Uuid::nil())), LOCKED);
    assert_eq!(refused(&mut peer, &take_over("free", token)), LOCKED);
    peer.attached(&Attach::session("q", text("exclusive")).named("exclusive"));
    assert_eq!(refused(&mut peer, &take_over("exclusive", token)), LOCKED);
    for malformed in [
        text("s"),
        list([]),
        list([Value::Null, uuid(token)]),
        list([uint(1), Value::Null]),
    ] {
        let filter = described(Descriptor::Code(CODE), malformed);
        let attach = Attach::filtered("q", KEY, filter);
        assert_eq!(refused(&mut peer, &attach), "com.microsoft:argument-error");
    }
    assert_eq!(held(&first).1, token);
}

#[test]
fn o55_the_filter_is_recognized_by_symbol_and_echoed_unchanged() {
    let (_bus, mut peer) = premium().with_client();
    let value = list([text("s"), Value::Null]);
    let filter_value = described(Descriptor::Name(NAME.into()), value);
    let link = peer.attached(&Attach::filtered("q", "any key", filter_value));
    let Value::Described(answer) = filter(&link, "any key") else {
        panic!("{link:?}");
    };
    assert_eq!(answer.descriptor, Descriptor::Name(NAME.into()));
}

#[test]
fn o55_other_tiers_refuse_the_non_exclusive_session_filter() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    let refusal = peer.refused(&wish(text("s"), Value::Null).named("l"));
    assert_eq!(refusal.condition, "amqp:not-allowed");
    let expected = "The link 'l' contains invalid filter type. System only support Jms or Apache selector filter type.";
    let (_, behind) = refusal
        .text
        .rsplit_once('\'')
        .expect("the name of the link");
    assert_contains(behind, "invalid filter type");
    assert_starts_with(&refusal.text, expected);
}
