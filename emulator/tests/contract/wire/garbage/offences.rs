//! What an open connection may be sent and should not be, and what that costs.

use serde_amqp::Value;

use crate::support::*;

pub(super) const FRAMING: &str = "amqp:connection:framing-error";
pub(super) const DECODE: &str = "amqp:decode-error";
const NOT_ALLOWED: &str = "amqp:not-allowed";
const UNATTACHED: &str = "amqp:session:unattached-handle";

/// Something to send, and what it is.
pub(super) type Offence = (&'static str, Vec<u8>, Scope, &'static str);

/// How far the damage goes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Scope {
    /// The connection is closed with the condition.
    Connection,
    /// The session is ended with it; the connection goes on.
    Session,
    /// The link is detached with it; the session goes on.
    Link,
}

/// For a connection with a sender on handle 0 and a receiver on handle 1 of channel 0.
pub(super) fn offences() -> Vec<Offence> {
    let mut all = broken_frames();
    all.extend(broken_performatives());
    all.extend(misplaced_performatives());
    all
}

/// A frame with this header and body, whatever they are.
pub(super) fn raw(size: u32, offset: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    [&size.to_be_bytes()[..], &[offset, kind, 0, 0], body].concat()
}

/// A frame with this body.
pub(super) fn body(bytes: &[u8]) -> Vec<u8> {
    raw(8 + bytes.len() as u32, 2, 0, bytes)
}

fn broken_frames() -> Vec<Offence> {
    let frames = [
        ("a frame of two gigabytes", raw(i32::MAX as u32, 2, 0, b"")),
        ("a frame above the limit", raw(65_537, 2, 0, b"")),
        ("a frame shorter than its header", raw(7, 2, 0, b"")),
        ("a body that begins behind the end", raw(8, 200, 0, b"")),
        ("a body that begins in the header", raw(8, 1, 0, b"")),
        ("a frame of the SASL layer", raw(8, 2, 1, b"")),
        ("a frame of no layer", raw(8, 2, 9, b"")),
    ];
    let close = |(what, bytes)| (what, bytes, Scope::Connection, FRAMING);
    frames.into_iter().map(close).collect()
}

fn broken_performatives() -> Vec<Offence> {
    let mut deep = Attach::sender("theirs").fields(5);
    deep.resize(13, Value::Null);
    deep.push(map([(symbol("deep"), nested(40))]));
    let deep = performative(0, ATTACH, &deep, &[]);
    let nameless = performative(0, ATTACH, &[], &[]);
    let frames = [
        ("a body that is not described", body(b"\xa1\x04text")),
        ("cut off", body(b"\x00\x53\x12\xc0\x20\x05\xa1\x04na")),
        (
            "a count past the size",
            body(b"\x00\x53\x12\xc0\x03\xff\x40\x40"),
        ),
        (
            "a flow of texts",
            body(b"\x00\x53\x13\xc0\x05\x01\xa1\x02no"),
        ),
        ("a value nested too deep", deep),
        ("an attach without a name", nameless),
    ];
    let close = |(what, bytes)| (what, bytes, Scope::Connection, DECODE);
    frames.into_iter().map(close).collect()
}

fn misplaced_performatives() -> Vec<Offence> {
    use Scope::{Connection, Link, Session};
    let transfer = |channel, handle, id: Value| {
        let fields = [uint(handle), id, binary(b"t"), uint(0)];
        performative(channel, TRANSFER, &fields, b"payload")
    };
    let flow = [0, 1, 0, 1, 77, 0, 1].map(uint);
    let flow = performative(0, FLOW, &flow, &[]);
    let begin = [Value::Null, uint(0), uint(1), uint(1)];
    let begin = |channel| performative(channel, BEGIN, &begin, &[]);
    let in_use = performative(0, ATTACH, &Attach::sender("q").fields(0), &[]);
    let above = performative(0, ATTACH, &Attach::sender("q").fields(70_000), &[]);
    let unknown = body(b"\x00\x53\x60\x45");
    let again = Open::default().frame();
    vec![
        (
            "no performative",
            unknown,
            Connection,
            "amqp:not-implemented",
        ),
        ("open again", again, Connection, "amqp:illegal-state"),
        ("a session again", begin(0), Connection, NOT_ALLOWED),
        ("a channel too high", begin(60_000), Connection, FRAMING),
        ("a handle too high", above, Connection, FRAMING),
        (
            "an unknown channel",
            transfer(9, 0, uint(0)),
            Connection,
            "amqp:not-found",
        ),
        (
            "a transfer before an attach",
            transfer(0, 7, uint(0)),
            Session,
            UNATTACHED,
        ),
        ("a flow for no link", flow, Session, UNATTACHED),
        (
            "a handle in use",
            in_use,
            Session,
            "amqp:session:handle-in-use",
        ),
        (
            "a transfer to a sender",
            transfer(0, 1, uint(0)),
            Link,
            NOT_ALLOWED,
        ),
        (
            "a transfer without an id",
            transfer(0, 0, Value::Null),
            Link,
            "amqp:invalid-field",
        ),
    ]
}
