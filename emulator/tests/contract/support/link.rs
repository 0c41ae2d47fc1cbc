//! Links of a peer: attached, used, detached.

use serde_amqp::Value;
use uuid::Uuid;

use super::frame::{
    ATTACH, DETACH, DISPOSITION, FLOW, Frame, Refusal, TRANSFER, performative, refusal_of,
};
use super::message::{Message, Received};
use super::peer::Peer;
use super::value::{binary, composite, described_list, map, symbol, text, uint};

/// What a peer asks for.
#[derive(Debug, Clone)]
pub(crate) struct Attach {
    pub(crate) name: String,
    pub(crate) channel: u16,
    pub(crate) receives: bool,
    pub(crate) snd_settle_mode: u8,
    pub(crate) rcv_settle_mode: u8,
    pub(crate) source: Value,
    pub(crate) target: Value,
}

/// A link that was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) channel: u16,
    pub(crate) handle: u32,
    /// The emulator's half.
    pub(crate) answer: Frame,
}

/// A message that has arrived.
#[derive(Debug, Clone)]
pub(crate) struct Delivery {
    pub(crate) id: u32,
    pub(crate) channel: u16,
    pub(crate) tag: Vec<u8>,
    pub(crate) settled: bool,
    pub(crate) message: Received,
    /// Of the largest frame that it came in.
    pub(crate) frame_size: usize,
}

impl Attach {
    /// A link to send on, as Python asks for it.
    pub(crate) fn sender(address: &str) -> Self {
        Self {
            name: format!("sender-{address}"),
            channel: 0,
            receives: false,
            snd_settle_mode: 0,
            rcv_settle_mode: 1,
            source: composite(0x28, [text("from")]),
            target: composite(0x29, [text(address)]),
        }
    }

    /// A link to receive on under locks.
    pub(crate) fn receiver(address: &str) -> Self {
        Self {
            name: format!("receiver-{address}"),
            receives: true,
            source: composite(0x28, [text(address)]),
            target: composite(0x29, [text("to")]),
            ..Self::sender(address)
        }
    }

    /// A link to receive and delete on.
    pub(crate) fn deleting(address: &str) -> Self {
        Self {
            snd_settle_mode: 1,
            rcv_settle_mode: 0,
            ..Self::receiver(address)
        }
    }

    pub(crate) fn on(self, channel: u16) -> Self {
        Self { channel, ..self }
    }

    pub(crate) fn named(self, name: &str) -> Self {
        Self {
            name: name.into(),
            ..self
        }
    }

    pub(crate) fn fields(&self, handle: u32) -> Vec<Value> {
        let count = if self.receives { Value::Null } else { uint(0) };
        vec![
            text(&self.name),
            uint(handle),
            Value::Bool(self.receives),
            Value::Ubyte(self.snd_settle_mode),
            Value::Ubyte(self.rcv_settle_mode),
            self.source.clone(),
            self.target.clone(),
            Value::Null,
            Value::Null,
            count,
        ]
    }
}

impl Delivery {
    /// The lock token, as the tag has it: in the byte order of .NET.
    pub(crate) fn token(&self) -> Uuid {
        Uuid::from_slice_le(&self.tag).expect("tags have sixteen bytes")
    }

    pub(crate) fn id(&self) -> String {
        self.message.id()
    }
}

impl Peer {
    /// Attaches a link and returns it, or what was said against it.
    pub(crate) fn attach(&mut self, attach: &Attach) -> Result<Link, Refusal> {
        let handle = self.next_handle;
        self.next_handle += 1;
        let channel = attach.channel;
        self.frame(channel, ATTACH, &attach.fields(handle));
        let ours = |code| {
            move |frame: &Frame| {
                let index = if code == ATTACH { 1 } else { 0 };
                frame.code == code
                    && frame.channel == channel
                    && frame.field(index) == &uint(handle)
            }
        };
        let answer = self.take("the answer to an attach", ours(ATTACH));
        assert_eq!(answer.field(0), &text(&attach.name));
        let terminus = if attach.receives { 5 } else { 6 };
        if answer.field(terminus) != &Value::Null {
            return Ok(Link {
                channel,
                handle,
                answer,
            });
        }
        let detach = self.take("the detach of a refused link", ours(DETACH));
        assert!(detach.flag(1), "a refused link is closed: {detach:?}");
        Err(detach.refusal(2))
    }

    pub(crate) fn sender(&mut self, address: &str) -> Link {
        self.attached(&Attach::sender(address))
    }

    pub(crate) fn receiver(&mut self, address: &str) -> Link {
        self.attached(&Attach::receiver(address))
    }

    /// A link that must be accepted.
    pub(crate) fn attached(&mut self, attach: &Attach) -> Link {
        self.attach(attach)
            .unwrap_or_else(|refusal| panic!("{refusal:?}: {attach:?}"))
    }

    /// Why a link is refused, as it must be.
    pub(crate) fn refused(&mut self, attach: &Attach) -> Refusal {
        match self.attach(attach) {
            Ok(link) => panic!("accepted: {link:?}"),
            Err(refusal) => refusal,
        }
    }

    pub(crate) fn detach(&mut self, link: &Link) {
        self.frame(
            link.channel,
            DETACH,
            &[uint(link.handle), Value::Bool(true)],
        );
        self.detached(link);
    }

    /// The emulator's detach of a link.
    pub(crate) fn detached(&mut self, link: &Link) -> Frame {
        self.take("a detach", |frame| {
            frame.code == DETACH && frame.channel == link.channel && frame.number(0) == link.handle
        })
    }

    /// An id that no other delivery of this peer has.
    pub(crate) fn next_delivery_id(&mut self) -> u32 {
        self.next_delivery += 1;
        self.next_delivery - 1
    }

    /// The frame that transfers a small payload.
    pub(crate) fn transfer_frame(&mut self, link: &Link, settled: bool, payload: &[u8]) -> Vec<u8> {
        let id = self.next_delivery_id();
        let tag = binary(&id.to_be_bytes());
        let fields = [
            uint(link.handle),
            uint(id),
            tag,
            uint(0),
            Value::Bool(settled),
        ];
        performative(link.channel, TRANSFER, &fields, payload)
    }

    /// Transfers a payload and returns its delivery id.
    pub(crate) fn transfer(
        &mut self,
        link: &Link,
        format: u32,
        settled: bool,
        payload: &[u8],
    ) -> u32 {
        let id = self.next_delivery_id();
        let frame = 60_000;
        let mut rest = payload;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(frame));
            let more = Value::Bool(!after.is_empty());
            let tag = binary(&id.to_be_bytes());
            let fields = [
                uint(link.handle),
                uint(id),
                tag,
                uint(format),
                Value::Bool(settled),
                more,
            ];
            self.write(&performative(link.channel, TRANSFER, &fields, piece));
            rest = after;
            if rest.is_empty() {
                return id;
            }
        }
    }

    /// The answer to a transfer of this peer: settled, and accepted or rejected.
    pub(crate) fn outcome(&mut self, link: &Link, id: u32) -> Result<(), Refusal> {
        let covers = |frame: &Frame| {
            frame.code == DISPOSITION
                && frame.channel == link.channel
                && frame.flag(0)
                && (frame.number(1)..=last_of(frame)).contains(&id)
        };
        // A disposition may answer for others too, who will ask for it.
        let found = self.disposition("the outcome of a send", covers);
        assert!(found.flag(3), "outcomes are settled: {found:?}");
        match described_list(found.field(4)) {
            (0x24, []) => Ok(()),
            (0x25, [error]) => Err(refusal_of(error)),
            other => panic!("a sender is told {other:?}"),
        }
    }

    /// Sends a message that must be accepted.
    pub(crate) fn send(&mut self, link: &Link, message: &Message) {
        let id = self.transfer(link, 0, false, &message.encode());
        self.outcome(link, id)
            .unwrap_or_else(|refusal| panic!("{refusal:?}: {message:?}"));
    }

    /// Sends a payload that must be rejected.
    pub(crate) fn send_in_vain(&mut self, link: &Link, payload: &[u8]) -> Refusal {
        let id = self.transfer(link, 0, false, payload);
        self.outcome(link, id).expect_err("the message is refused")
    }

    /// Wants this many messages from now on.
    pub(crate) fn credit(&mut self, link: &Link, credit: u32) {
        self.flow(link, credit, false);
    }

    pub(crate) fn flow(&mut self, link: &Link, credit: u32, drain: bool) {
        let window = i32::MAX as u32;
        let count = self
            .arrived
            .get(&(link.channel, link.handle))
            .copied()
            .unwrap_or(0);
        let mut fields = vec![uint(0), uint(window), uint(0), uint(window)];
        fields.extend([uint(link.handle), uint(count), uint(credit)]);
        fields.extend([Value::Null, Value::Bool(drain)]);
        self.frame(link.channel, FLOW, &fields);
    }

    /// The next message on a link.
    pub(crate) fn receive(&mut self, link: &Link) -> Delivery {
        let mut payload = Vec::new();
        let mut first: Option<Frame> = None;
        let mut frame_size = 0;
        loop {
            let frame = self.take("a message", |frame| {
                frame.code == TRANSFER
                    && frame.channel == link.channel
                    && frame.number(0) == link.handle
            });
            payload.extend_from_slice(&frame.payload);
            frame_size = frame_size.max(frame.size);
            let more = frame.flag(5);
            let first = first.get_or_insert(frame);
            if more {
                continue;
            }
            let Value::Binary(tag) = first.field(2) else {
                panic!("no tag: {first:?}");
            };
            return Delivery {
                id: first.number(1),
                channel: link.channel,
                tag: tag.to_vec(),
                settled: first.flag(4),
                message: Received::parse(&payload),
                frame_size,
            };
        }
    }

    /// Takes what is there, up to so many, and waits for nothing else. For messages that fit a frame.
    pub(crate) fn drain(&mut self, link: &Link, most: u32) -> Vec<Delivery> {
        self.flow(link, most, true);
        let of = |frame: &Frame, index| {
            frame.channel == link.channel && frame.field(index) == &uint(link.handle)
        };
        let end = self.take("the end of a drain", |frame| {
            frame.code == FLOW && frame.flag(8) && of(frame, 4)
        });
        self.arrived
            .insert((link.channel, link.handle), end.number(5));
        let mut all = Vec::new();
        while self.has(|frame| frame.code == TRANSFER && of(frame, 0)) {
            all.push(self.receive(link));
        }
        all
    }

    /// Wants one message and waits for it.
    pub(crate) fn receive_one(&mut self, link: &Link) -> Delivery {
        self.credit(link, 1);
        self.receive(link)
    }

    /// Settles a delivery and returns the state of the answer.
    pub(crate) fn settle(&mut self, delivery: &Delivery, outcome: Value) -> Value {
        self.dispose(delivery.channel, delivery.id, delivery.id, false, outcome);
        self.settled(delivery)
    }

    /// The state of the answer to a settlement.
    pub(crate) fn settled(&mut self, delivery: &Delivery) -> Value {
        let id = delivery.id;
        let covers = |frame: &Frame| {
            frame.code == DISPOSITION
                && frame.channel == delivery.channel
                && !frame.flag(0)
                && (frame.number(1)..=last_of(frame)).contains(&id)
        };
        let answer = self.disposition("the answer to a settlement", covers);
        assert!(answer.flag(3), "the answer is settled: {answer:?}");
        answer.field(4).clone()
    }

    pub(crate) fn complete(&mut self, delivery: &Delivery) {
        assert_eq!(self.settle(delivery, accepted()), accepted());
    }

    pub(crate) fn dispose(
        &mut self,
        channel: u16,
        first: u32,
        last: u32,
        settled: bool,
        outcome: Value,
    ) {
        let fields = [
            Value::Bool(true),
            uint(first),
            uint(last),
            Value::Bool(settled),
            outcome,
        ];
        self.frame(channel, DISPOSITION, &fields);
    }
}

fn last_of(disposition: &Frame) -> u32 {
    match disposition.field(2) {
        Value::Null => disposition.number(1),
        _ => disposition.number(2),
    }
}

pub(crate) fn accepted() -> Value {
    composite(0x24, [])
}

pub(crate) fn released() -> Value {
    composite(0x26, [])
}

/// As JavaScript abandons.
pub(crate) fn abandoned() -> Value {
    composite(0x27, [Value::Null, Value::Bool(false), Value::Null])
}

/// As Python dead-letters.
pub(crate) fn dead_lettered(reason: &str, description: &str) -> Value {
    let info = map([
        (symbol("DeadLetterReason"), text(reason)),
        (symbol("DeadLetterErrorDescription"), text(description)),
    ]);
    let error = composite(
        0x1d,
        [symbol("com.microsoft:dead-letter"), text(description), info],
    );
    composite(0x25, [error])
}
