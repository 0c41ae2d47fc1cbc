//! Sessions that another receiver takes over by a token, as .NET 7.21 asks for them (spec/observed.md 55, newest.md 1): no
//! published SDK of another language knows them, so these are its frames.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use uuid::Uuid;

use crate::support::*;

const KEY: &str = "com.microsoft:non-exclusive-session-filter";
const NAME: &str = "com.microsoft:non-exclusive-session-filter:list";
const CODE: u64 = 0x0000_0137_0000_000e;
const LOST: &str = "com.microsoft:session-lock-lost";
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
fn o55_the_token_of_a_session_takes_it_over_on_the_same_connection() {
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
fn o55_another_connection_takes_a_session_over_too() {
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
fn o55_whatever_is_not_the_token_of_the_holder_is_refused() {
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
fn o55_the_filter_is_also_known_by_its_name_and_echoed_as_it_came() {
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
fn o55_other_tiers_refuse_such_a_filter_so_that_the_client_says_what_is_missing() {
    let (_bus, mut peer) = Bus::with_sessions().with_client();
    let refusal = peer.refused(&wish(text("s"), Value::Null).named("l"));
    assert_eq!(refusal.condition, "amqp:not-allowed");
    let expected = "The link 'l' contains invalid filter type. System only support Jms or Apache selector filter type.";
    let (_, behind) = refusal
        .text
        .rsplit_once('\'')
        .expect("the name of the link");
    assert!(behind.contains("invalid filter type"), "{}", refusal.text);
    assert!(refusal.text.starts_with(expected), "{}", refusal.text);
}
