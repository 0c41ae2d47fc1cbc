//! A client made of frames: builds performatives from values, takes the engine's output apart, and
//! keeps the events. It has no opinion on what is right.

use std::io::IoSlice;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use serde_amqp::Value;
use servicebus_amqp::{
    AttachReply, AttachRequest, Config, Connection, Delivery, DeliveryNumber, Error, Event, LinkId,
    Outcome, PeerOpen, Transfer,
};
pub(crate) use servicebus_test_support::frame::*;
pub(crate) use servicebus_test_support::value::*;

pub(crate) const SENDER: bool = false;
pub(crate) const RECEIVER: bool = true;

/// A connection and what has come out of it.
pub(crate) struct Peer {
    pub(crate) connection: Connection,
    pub(crate) now: Duration,
    pub(crate) input: BytesMut,
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
        assert!(output.starts_with(AMQP_HEADER));
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
        self.attached()
    }

    /// The next event, which is an attach.
    pub(crate) fn attached(&mut self) -> (LinkId, AttachRequest) {
        let event = self.event();
        let Event::Attach { link, attach } = event else {
            panic!("expected an attach, got {event:?}");
        };
        (link, *attach)
    }

    /// The next event, which is an open.
    pub(crate) fn opened(&mut self) -> PeerOpen {
        let event = self.event();
        let Event::Opened(open) = event else {
            panic!("expected an open, got {event:?}");
        };
        *open
    }

    /// The next event, which is a message.
    pub(crate) fn received(&mut self) -> Transfer {
        let event = self.event();
        let Event::Transfer(transfer) = event else {
            panic!("expected a transfer, got {event:?}");
        };
        transfer
    }

    /// The next event, which is credit: how much, and whether the link drains.
    pub(crate) fn credited(&mut self) -> (u32, bool) {
        let event = self.event();
        let Event::Credit { credit, drain, .. } = event else {
            panic!("expected credit, got {event:?}");
        };
        (credit, drain)
    }

    /// Sends a transfer on channel 0.
    pub(crate) fn transfer(&mut self, fields: &[Value], payload: &[u8]) {
        self.send(&performative(0, TRANSFER, fields, payload));
    }

    /// Sends a disposition on channel 0.
    pub(crate) fn dispose(&mut self, first: u32, last: u32, settled: bool, state: Value) {
        self.frame(0, DISPOSITION, &disposition(first, last, settled, state));
    }

    /// Accepts a message of the peer.
    pub(crate) fn accept_send(&mut self, link: LinkId, id: u32) {
        self.connection
            .outcome(link, DeliveryNumber(id), Outcome::Accepted);
    }

    /// Confirms that the peer has accepted a message.
    pub(crate) fn accept_settlement(&mut self, link: LinkId, id: u32) {
        self.connection
            .settle(link, DeliveryNumber(id), Outcome::Accepted);
    }

    /// Attaches on channel 0, is accepted, and takes the frames of it.
    pub(crate) fn link(&mut self, name: &str, handle: u32, role: bool) -> LinkId {
        let (link, _) = self.ask(name, handle, role);
        self.accept(link);
        self.frames();
        link
    }

    pub(crate) fn accept(&mut self, link: LinkId) {
        self.accept_up_to(link, 1000);
    }

    /// Accepts a link for messages of up to this size.
    pub(crate) fn accept_up_to(&mut self, link: LinkId, max_message_size: u64) {
        let reply = AttachReply {
            max_message_size,
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
        assert_eq!(last.refusal(0).condition, condition, "{frames:?}");
        let events = self.events();
        let Some(Event::Closed { error: Some(error) }) = events.last() else {
            panic!("not closed: {events:?}");
        };
        assert_eq!(error.condition, condition);
    }
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

/// The same, by one who asks for the link to be drained.
pub(crate) fn drain_flow(handle: u32, delivery_count: u32, credit: u32) -> Vec<Value> {
    let mut fields = credit_flow(handle, delivery_count, credit);
    fields.extend([Value::Null, Value::Bool(true)]);
    fields
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

pub(crate) fn an_error() -> Error {
    Error::new("amqp:not-found", "no such thing")
}
