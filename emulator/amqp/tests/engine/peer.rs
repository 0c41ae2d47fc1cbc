//! A client made of frames: builds performatives from values, takes the engine's output apart, and
//! keeps the events. It has no opinion on what is right.

use std::io::IoSlice;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use serde_amqp::primitives::{Binary, OrderedMap, Symbol};
use servicebus_amqp::{
    AttachReply, AttachRequest, Config, Connection, Delivery, DeliveryNumber, Error, Event, LinkId,
};
use servicebus_codec::{Reader, Writer};

pub(crate) const AMQP_HEADER: &[u8] = b"AMQP\x00\x01\x00\x00";
pub(crate) const SASL_HEADER: &[u8] = b"AMQP\x03\x01\x00\x00";

pub(crate) const OPEN: u8 = 0x10;
pub(crate) const BEGIN: u8 = 0x11;
pub(crate) const ATTACH: u8 = 0x12;
pub(crate) const FLOW: u8 = 0x13;
pub(crate) const TRANSFER: u8 = 0x14;
pub(crate) const DISPOSITION: u8 = 0x15;
pub(crate) const DETACH: u8 = 0x16;
pub(crate) const END: u8 = 0x17;
pub(crate) const CLOSE: u8 = 0x18;

pub(crate) const SENDER: bool = false;
pub(crate) const RECEIVER: bool = true;

/// A connection and what has come out of it.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    pub(crate) now: Duration,
    pub(crate) input: BytesMut,
}

/// One frame of the engine.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Frame {
    pub(crate) channel: u16,
    pub(crate) code: u8,
    pub(crate) fields: Vec<Value>,
    pub(crate) payload: Vec<u8>,
    pub(crate) body: Vec<u8>,
}

impl Peer {
    /// A connection that has read nothing.
    pub(crate) fn silent(config: Config) -> Self {
        Self {
            connection: Connection::new(config, Duration::ZERO),
            now: Duration::ZERO,
            input: BytesMut::new(),
        }
    }

    /// A connection that is open and has a session on channel 0.
    pub(crate) fn new() -> Self {
        Self::with(Config::default(), &[], 5000)
    }

    /// The same with this configuration, these fields of open after the host name, and this window.
    pub(crate) fn with(config: Config, open: &[Value], window: u32) -> Self {
        let mut peer = Self::silent(config);
        let mut fields = vec![text("client"), text("host")];
        fields.extend_from_slice(open);
        peer.send(AMQP_HEADER);
        peer.frame(0, OPEN, &fields);
        peer.frame(0, BEGIN, &[Value::Null, uint(0), uint(window), uint(5000)]);
        assert!(matches!(peer.event(), Event::Opened(_)));
        let output = peer.output();
        assert_eq!(&output[..8], AMQP_HEADER);
        let frames = split(&output);
        assert_eq!(codes(&frames), [OPEN, BEGIN]);
        peer
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
        self.connection.receive(self.now, &mut self.input);
    }

    pub(crate) fn frame(&mut self, channel: u16, code: u8, fields: &[Value]) {
        self.send(&performative(channel, code, fields, &[]));
    }

    /// The next event, which there must be.
    pub(crate) fn event(&mut self) -> Event {
        let event = self.events_but_refusals().next();
        event.expect("there is an event")
    }

    pub(crate) fn events(&mut self) -> Vec<Event> {
        self.events_but_refusals().collect()
    }

    /// What the owner has to act on; refusals are only told to be recorded.
    fn events_but_refusals(&mut self) -> impl Iterator<Item = Event> {
        let events = std::iter::from_fn(|| self.connection.poll_event());
        events.filter(|event| !matches!(event, Event::Refused(_)))
    }

    /// Everything that has been written, which is also taken.
    pub(crate) fn output(&mut self) -> Vec<u8> {
        self.connection.flush();
        let output = self.connection.output();
        let mut all = Vec::with_capacity(output.len());
        while !output.is_empty() {
            let mut slices = [IoSlice::new(&[]); 4];
            let filled = output.chunks(&mut slices);
            let before = all.len();
            for slice in &slices[..filled] {
                all.extend_from_slice(slice);
            }
            let written = all.len() - before;
            output.advance(written);
        }
        all
    }

    pub(crate) fn frames(&mut self) -> Vec<Frame> {
        split(&self.output())
    }

    /// The only frame that has been written.
    pub(crate) fn only(&mut self) -> Frame {
        let mut frames = self.frames();
        assert_eq!(frames.len(), 1, "{frames:?}");
        frames.remove(0)
    }

    /// Attaches on channel 0 and returns the request.
    pub(crate) fn ask(&mut self, name: &str, handle: u32, role: bool) -> (LinkId, AttachRequest) {
        self.frame(0, ATTACH, &attach(name, handle, role));
        let event = self.event();
        let Event::Attach { link, attach } = event else {
            panic!("expected an attach, got {event:?}");
        };
        (link, *attach)
    }

    /// Attaches on channel 0, is accepted, and takes the frames of it.
    pub(crate) fn link(&mut self, name: &str, handle: u32, role: bool) -> LinkId {
        let (link, _) = self.ask(name, handle, role);
        self.accept(link);
        self.frames();
        link
    }

    pub(crate) fn accept(&mut self, link: LinkId) {
        let reply = AttachReply {
            max_message_size: 1000,
            ..AttachReply::default()
        };
        self.connection.accept_attach(link, reply);
    }

    /// A receiver on handle 0 with this much credit.
    pub(crate) fn receiver(&mut self, credit: u32) -> LinkId {
        let link = self.link("receiver", 0, RECEIVER);
        self.frame(0, FLOW, &credit_flow(0, 0, credit));
        assert!(matches!(self.event(), Event::Credit { .. }));
        link
    }

    /// Delivers a small message whose tag is `tag` sixteen times.
    pub(crate) fn deliver(
        &mut self,
        link: LinkId,
        tag: u8,
        settled: bool,
    ) -> Option<DeliveryNumber> {
        self.deliver_bytes(link, tag, settled, b"head", Bytes::from_static(b"tail"))
    }

    pub(crate) fn deliver_bytes(
        &mut self,
        link: LinkId,
        tag: u8,
        settled: bool,
        head: &[u8],
        tail: Bytes,
    ) -> Option<DeliveryNumber> {
        let delivery = Delivery {
            tag: [tag; 16],
            settled,
            message_format: 0,
            head,
            tail,
        };
        self.connection.deliver(link, delivery)
    }

    /// Asserts that the connection has been closed with this condition.
    pub(crate) fn assert_closed_with(&mut self, condition: &str) {
        let frames = self.frames();
        let last = frames.last().expect("there is a close");
        assert_eq!(last.code, CLOSE, "{frames:?}");
        assert_eq!(last.error(0).0, condition, "{frames:?}");
        let events = self.events();
        let Some(Event::Closed { error: Some(error) }) = events.last() else {
            panic!("not closed: {events:?}");
        };
        assert_eq!(error.condition, condition);
    }
}

impl Frame {
    /// Condition and description of the error in a field, all three of whose fields are there.
    pub(crate) fn error(&self, field: usize) -> (String, String) {
        error_of(&self.fields[field])
    }
}

pub(crate) fn error_of(value: &Value) -> (String, String) {
    let (code, fields) = described(value);
    assert_eq!(code, 0x1d);
    let [Value::Symbol(condition), Value::String(description), _info] = &fields[..] else {
        panic!("an error has three fields: {fields:?}");
    };
    (condition.as_str().to_owned(), description.clone())
}

/// Code and fields of a described list.
pub(crate) fn described(value: &Value) -> (u64, Vec<Value>) {
    let Value::Described(described) = value else {
        panic!("not described: {value:?}");
    };
    let Descriptor::Code(code) = described.descriptor else {
        panic!("not numeric: {value:?}");
    };
    let Value::List(fields) = &described.value else {
        panic!("not a list: {described:?}");
    };
    (code, fields.clone())
}

pub(crate) fn codes(frames: &[Frame]) -> Vec<u8> {
    frames.iter().map(|frame| frame.code).collect()
}

/// Takes output apart, without headers. Every frame must be whole and sound; heartbeats have the
/// code zero.
pub(crate) fn split(mut bytes: &[u8]) -> Vec<Frame> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        if bytes.starts_with(b"AMQP") {
            bytes = &bytes[8..];
            continue;
        }
        let size = u32::from_be_bytes(bytes[..4].try_into().unwrap()) as usize;
        frames.push(parse(&bytes[..size]));
        bytes = &bytes[size..];
    }
    frames
}

fn parse(frame: &[u8]) -> Frame {
    let body = frame[8..].to_vec();
    let mut parsed = Frame {
        channel: u16::from_be_bytes([frame[6], frame[7]]),
        code: 0,
        fields: Vec::new(),
        payload: Vec::new(),
        body,
    };
    if parsed.body.is_empty() {
        return parsed;
    }
    assert_eq!(
        parsed.body[..2],
        [0x00, 0x53],
        "descriptors are small ulongs"
    );
    parsed.code = parsed.body[2];
    let mut reader = Reader::new(&parsed.body);
    reader.validate().unwrap();
    parsed.payload = reader.rest().to_vec();
    let mut reader = Reader::new(&parsed.body);
    reader.descriptor().unwrap();
    let list = reader.list().unwrap();
    let mut items = list.items;
    for _ in 0..list.count {
        let value = items.skip().unwrap();
        // An echo may hold constructors that nobody has defined; they are the peer's own.
        let value = serde_amqp::from_slice(value).unwrap_or(Value::Null);
        parsed.fields.push(value);
    }
    parsed
}

/// A frame of type 0 with a performative of these fields.
pub(crate) fn performative(channel: u16, code: u8, fields: &[Value], payload: &[u8]) -> Vec<u8> {
    let mut frame = framed(0, channel, &list(code, fields));
    frame.extend_from_slice(payload);
    let size = (frame.len() as u32).to_be_bytes();
    frame[..4].copy_from_slice(&size);
    frame
}

pub(crate) fn framed(kind: u8, channel: u16, body: &[u8]) -> Vec<u8> {
    let [high, low] = channel.to_be_bytes();
    let mut frame = (8 + body.len() as u32).to_be_bytes().to_vec();
    frame.extend_from_slice(&[2, kind, high, low]);
    frame.extend_from_slice(body);
    frame
}

/// A described list as bytes.
pub(crate) fn list(code: u8, fields: &[Value]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out);
    writer.descriptor(code);
    let mark = writer.begin_list();
    for field in fields {
        writer.raw(&serde_amqp::to_vec(field).unwrap());
    }
    writer.end(mark, fields.len() as u32);
    out
}

/// A described list as a value.
pub(crate) fn composite(code: u64, fields: Vec<Value>) -> Value {
    Value::Described(Box::new(Described {
        descriptor: Descriptor::Code(code),
        value: Value::List(fields),
    }))
}

pub(crate) fn attach(name: &str, handle: u32, role: bool) -> Vec<Value> {
    attach_between(name, handle, role, source("from", None), target("to"))
}

pub(crate) fn attach_between(
    name: &str,
    handle: u32,
    role: bool,
    source: Value,
    target: Value,
) -> Vec<Value> {
    vec![
        text(name),
        uint(handle),
        Value::Bool(role),
        Value::Ubyte(0),
        Value::Ubyte(1),
        source,
        target,
        Value::Null,
        Value::Null,
        if role { Value::Null } else { uint(0) },
    ]
}

pub(crate) fn source(address: &str, filter: Option<Value>) -> Value {
    let mut fields = vec![text(address)];
    if let Some(filter) = filter {
        fields.resize(7, Value::Null);
        fields.push(filter);
    }
    composite(0x28, fields)
}

pub(crate) fn target(address: &str) -> Value {
    composite(0x29, vec![text(address)])
}

/// A receiver's flow on channel 0, by one who has seen no transfers.
pub(crate) fn credit_flow(handle: u32, delivery_count: u32, credit: u32) -> Vec<Value> {
    vec![
        uint(0),
        uint(5000),
        uint(0),
        uint(5000),
        uint(handle),
        uint(delivery_count),
        uint(credit),
    ]
}

pub(crate) fn transfer(
    handle: u32,
    delivery: Option<u32>,
    settled: bool,
    more: bool,
) -> Vec<Value> {
    let id = delivery.map_or(Value::Null, uint);
    let tag = delivery.map_or(Value::Null, |id| binary(&id.to_be_bytes()));
    let format = delivery.map_or(Value::Null, |_| uint(0));
    vec![
        uint(handle),
        id,
        tag,
        format,
        Value::Bool(settled),
        Value::Bool(more),
    ]
}

pub(crate) fn disposition(first: u32, last: u32, settled: bool, state: Value) -> Vec<Value> {
    vec![
        Value::Bool(RECEIVER),
        uint(first),
        uint(last),
        Value::Bool(settled),
        state,
    ]
}

pub(crate) fn accepted() -> Value {
    composite(0x24, vec![])
}

pub(crate) fn uint(number: u32) -> Value {
    Value::Uint(number)
}

pub(crate) fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

pub(crate) fn symbol(name: &str) -> Value {
    Value::Symbol(Symbol::from(name))
}

pub(crate) fn binary(bytes: &[u8]) -> Value {
    Value::Binary(Binary::from(bytes.to_vec()))
}

pub(crate) fn map(entries: &[(Value, Value)]) -> Value {
    Value::Map(entries.iter().cloned().collect::<OrderedMap<_, _>>())
}

pub(crate) fn an_error() -> Error {
    Error::new("amqp:not-found", "no such thing")
}
