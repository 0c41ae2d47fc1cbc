//! Deliveries to a peer: asked for, taken, settled.

use serde_amqp::Value;
use uuid::Uuid;

use super::link::Link;
use super::peer::Peer;
use servicebus_test_support::frame::{
    DISPOSITION, FLOW, Frame, ServiceError, TRANSFER, refusal_of,
};
use servicebus_test_support::message::Received;
use servicebus_test_support::value::{composite, described_list, map, symbol, text, uint};

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
    /// Wants this many messages from now on.
    pub(crate) fn credit(&mut self, link: &Link, credit: u32) {
        self.flow(link, credit, false);
    }

    /// A link with this handle was attached again: its count starts again, too.
    pub(crate) fn arrived_anew(&mut self, link: &Link) {
        self.arrived.remove(&(link.channel, link.handle));
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
            frame_size = frame_size.max(frame.size());
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

    /// Wants one message, on a link of its own, and waits for it.
    pub(crate) fn receive_from(&mut self, address: &str) -> Delivery {
        let link = self.receiver(address);
        self.receive_one(&link)
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
            frame.is_about(id) && frame.channel == delivery.channel && !frame.flag(0)
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

/// As .NET, JavaScript and Rust defer.
pub(crate) fn deferred() -> Value {
    composite(0x27, [Value::Null, Value::Bool(true)])
}

/// The refusal in the answer to a settlement.
pub(crate) fn refused(state: &Value) -> ServiceError {
    match described_list(state) {
        (0x25, [error]) => refusal_of(error),
        other => panic!("not rejected: {other:?}"),
    }
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
