//! Invalid input: answered in its own scope, without effect on other clients, and what it costs on an open connection.

use rand::rngs::SmallRng;
use rand::{Rng as _, RngExt as _, SeedableRng as _};
use serde_amqp::Value;

use crate::support::*;

/// A well-behaved client beside the others.
struct WellBehavedClient {
    bus: Bus,
    peer: Peer,
    sender: Link,
    receiver: Link,
}

impl WellBehavedClient {
    fn new() -> Self {
        let (bus, peer, sender, receiver) = Bus::with_queues(&["q", "theirs"]).with_links("q");
        Self {
            bus,
            peer,
            sender,
            receiver,
        }
    }

    /// Sends, receives and completes a message.
    fn go_on(&mut self) {
        self.peer.send(&self.sender, &Message::new("m"));
        let delivery = self.peer.receive_one(&self.receiver);
        self.peer.complete(&delivery);
    }
}

/// An array of maps whose elements a decoder with the wrong constructor takes for further maps, without end.
fn array_of_maps() -> Vec<u8> {
    let content = [1, 2].repeat(100);
    let size = content.len() as u8;
    let element = [&[size + 5, 2, 0xa0, size], &content[..], &[0x50, 2]].concat();
    let elements = [&[0xc1], &element.repeat(400)[..]].concat();
    let size = (elements.len() + 4) as u32;
    [
        &[0xf0],
        &size.to_be_bytes()[..],
        &400_u32.to_be_bytes(),
        &elements,
    ]
    .concat()
}

#[test]
fn a_request_with_an_array_of_maps_is_answered() {
    let mut other_client = WellBehavedClient::new();
    let mut peer = other_client.bus.client();
    let node = peer.node("q/$management");
    let request = Message::request(text("request-1"), text(&node.reply_to), Value::Null)
        .application("operation", text("com.microsoft:peek-message"));
    let mut encoded = request.encode();
    assert_eq!(encoded.pop(), Some(0x40), "the null of its body");
    encoded.extend(array_of_maps());
    peer.transfer(&node.requests, 0, true, &encoded);
    let reply = Reply::new(peer.receive(&node.replies));
    assert_eq!(reply.status(), 400, "{reply:?}");
    other_client.go_on();
}

#[test]
fn a_protocol_error_ends_only_its_connection_session_or_link() {
    let mut other_client = WellBehavedClient::new();
    for (what, bytes, scope, condition) in offences() {
        let mut peer = other_client.bus.client();
        peer.next_handle = 0;
        peer.begin(1);
        let sender = peer.attached(&Attach::sender("theirs").on(1));
        peer.end(0);
        peer.begin(0);
        peer.next_handle = 0;
        peer.sender("theirs");
        peer.receiver("theirs");
        other_client.go_on();
        peer.write(&bytes);
        other_client.go_on();
        let refusal = match scope {
            Scope::Connection => peer.closed(),
            Scope::Session => peer.expect(END).refusal(0),
            Scope::Link => peer.expect(DETACH).refusal(2),
        };
        assert_eq!(refusal.condition, condition, "{what}");
        assert!(
            refusal.text.contains("TrackingId:"),
            "{what}: {}",
            refusal.text
        );
        if matches!(scope, Scope::Connection) {
            continue;
        }
        // What is not affected continues.
        peer.send(&sender, &Message::new("still here"));
    }
    other_client.go_on();
}

#[test]
fn an_unknown_protocol_is_answered_with_the_supported_one() {
    let mut other_client = WellBehavedClient::new();
    for (header, answer) in [
        (b"AMQP\x00\x00\x09\x01", AMQP_HEADER),
        (b"AMQP\x00\x02\x00\x00", AMQP_HEADER),
        (b"AMQP\x02\x01\x00\x00", AMQP_HEADER),
        (b"AMQP\x03\x02\x00\x00", SASL_HEADER),
        (b"ABCDEFGH", AMQP_HEADER),
    ] {
        let mut peer = Peer::connect(other_client.bus.amqp);
        peer.write(header);
        assert_eq!(peer.read_header(), *answer, "{header:?}");
        peer.read_to_end();
        other_client.go_on();
    }
}

#[test]
fn a_protocol_error_before_the_first_session_closes_the_connection() {
    let mut other_client = WellBehavedClient::new();
    let begin = performative(0, BEGIN, &[Value::Null, uint(0), uint(1), uint(1)], &[]);
    let mut deep = vec![text("c"), text("h")];
    deep.resize(9, Value::Null);
    deep.push(map([(symbol("deep"), nested(40))]));
    let deep = performative(0, OPEN, &deep, &[]);
    let nameless = performative(0, OPEN, &[], &[]);
    for (what, bytes, condition) in [
        ("a session before open", begin, "amqp:illegal-state"),
        ("open nested too deep", deep, DECODE),
        ("open without a name", nameless, DECODE),
        ("a frame too large", raw(1 << 30, 2, 0, b""), FRAMING),
    ] {
        let mut peer = Peer::connect(other_client.bus.amqp);
        peer.write(AMQP_HEADER);
        peer.write(&bytes);
        assert_eq!(peer.read_header(), *AMQP_HEADER);
        assert_eq!(peer.closed().condition, condition, "{what}");
        other_client.go_on();
    }
    for bytes in [
        raw(8, 2, 0, b""),
        raw(1 << 30, 2, 1, b""),
        raw(16, 2, 1, b"\x00\x53\x41\xc0\x03\xff\x40\x40"),
    ] {
        let mut peer = Peer::connect(other_client.bus.amqp);
        peer.write(SASL_HEADER);
        peer.write(&bytes);
        peer.read_to_end();
        other_client.go_on();
    }
}

#[test]
fn random_bytes_do_not_affect_other_clients() {
    let mut random = SmallRng::seed_from_u64(20_261_120);
    let mut other_client = WellBehavedClient::new();
    for round in 0..60 {
        let mut bytes = vec![0; random.random_range(1..2000)];
        random.fill_bytes(&mut bytes);
        let address = other_client.bus.amqp;
        match round % 3 {
            0 => {
                let mut peer = Peer::connect(address);
                peer.try_write(&bytes);
            }
            1 => {
                let mut peer = Peer::connect(address);
                peer.write(AMQP_HEADER);
                peer.try_write(&bytes);
            }
            _ => {
                let mut peer = other_client.bus.unauthenticated_client();
                let code = random.random_range(0x10..0x19);
                peer.try_write(&body(&[b"\x00\x53", &[code][..], &bytes].concat()));
                peer.try_write(&bytes);
            }
        }
        other_client.go_on();
    }
}

#[test]
fn hundreds_of_bad_connections_cost_little_memory() {
    let process = Process::start(&[]);
    let wave = |random: &mut SmallRng| {
        let mut held = Vec::new();
        for number in 0..150 {
            let mut peer = Peer::connect(process.amqp());
            let mut bytes = vec![0; 3000];
            random.fill_bytes(&mut bytes);
            match number % 3 {
                0 => drop(peer.try_write(&bytes)),
                // A frame that is never completed, and a request that is not either.
                1 => drop(peer.try_write(&[AMQP_HEADER, &raw(60_000, 2, 0, &bytes)[..]].concat())),
                _ => drop(peer.try_write(
                    &[b"POST / HTTP/1.1\r\nHost: x\r\nX: ", &vec![b'a'; 3000][..]].concat(),
                )),
            }
            held.push(peer);
        }
        process.http().get("/health").ok();
        process.resident_bytes()
    };
    let mut random = SmallRng::seed_from_u64(7);
    let first = wave(&mut random);
    let later = [1, 2, 3].map(|_| wave(&mut random));
    let last = later[2];
    assert!(first < 64 << 20, "{first} bytes are resident");
    assert!(
        last < first + (24 << 20),
        "memory grows from {first} to {later:?}"
    );
}

const FRAMING: &str = "amqp:connection:framing-error";
const DECODE: &str = "amqp:decode-error";
const NOT_ALLOWED: &str = "amqp:not-allowed";
const UNATTACHED: &str = "amqp:session:unattached-handle";

/// Something to send, and what it is.
type Offence = (&'static str, Vec<u8>, Scope, &'static str);

/// The scope of the error.
#[derive(Debug, Clone, Copy)]
enum Scope {
    /// The connection is closed with the condition.
    Connection,
    /// The session is ended with it; the connection goes on.
    Session,
    /// The link is detached with it; the session goes on.
    Link,
}

/// For a connection with a sender on handle 0 and a receiver on handle 1 of channel 0.
fn offences() -> Vec<Offence> {
    let mut all = broken_frames();
    all.extend(broken_performatives());
    all.extend(misplaced_performatives());
    all
}

/// A frame with this header and body, whatever they are.
fn raw(size: u32, offset: u8, kind: u8, body: &[u8]) -> Vec<u8> {
    [&size.to_be_bytes()[..], &[offset, kind, 0, 0], body].concat()
}

/// A frame with this body.
fn body(bytes: &[u8]) -> Vec<u8> {
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
    let above = performative(0, ATTACH, &Attach::sender("q").fields(256), &[]);
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
        (
            "a handle too high",
            above,
            Session,
            "amqp:resource-limit-exceeded",
        ),
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
