//! Deliveries to a peer: credit, receipt and settlement; and its own deliveries with their outcomes.

use serde_amqp::Value;
use servicebus_test_support::frame::{
    DISPOSITION, FLOW, Frame, ServiceError, TRANSFER, performative, refusal_of,
};
use servicebus_test_support::message::{Message, Received};
use servicebus_test_support::value::{binary, composite, described_list, map, symbol, text, uint};
use uuid::Uuid;

use super::link::Link;
use super::peer::Peer;

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
    /// Grants credit for this many messages.
    pub(crate) fn credit(&mut self, link: &Link, credit: u32) {
        self.flow(link, credit, false);
    }

    /// A link with this handle was attached again: its count starts again, too.
    pub(crate) fn arrived_anew(&mut self, link: &Link) {
        self.arrived.remove(&(link.channel, link.handle));
    }

    pub(crate) fn flow(&mut self, link: &Link, credit: u32, drain: bool) {
        self.flow_within(link, (0, i32::MAX as u32), credit, drain);
    }

    /// The same with a session window: so many transfers after the first ones.
    pub(crate) fn flow_within(
        &mut self,
        link: &Link,
        (first, window): (u32, u32),
        credit: u32,
        drain: bool,
    ) {
        let count = self
            .arrived
            .get(&(link.channel, link.handle))
            .copied()
            .unwrap_or(0);
        let mut fields = vec![uint(first), uint(window), uint(0), uint(i32::MAX as u32)];
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

    /// Takes available messages, up to so many, without waiting for more. For messages that fit a frame.
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

    /// The ids of what is drained.
    pub(crate) fn drain_ids(&mut self, link: &Link, most: u32) -> Vec<String> {
        self.drain(link, most).iter().map(Delivery::id).collect()
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

    /// Settles a delivery, which must be refused.
    #[track_caller]
    pub(crate) fn settle_in_vain(&mut self, delivery: &Delivery, outcome: Value) -> ServiceError {
        refused(&self.settle(delivery, outcome))
    }

    /// Settles a delivery, which must be refused for this reason.
    #[track_caller]
    pub(crate) fn assert_settle_refused(&mut self, of: &Delivery, outcome: Value, condition: &str) {
        let refusal = self.settle_in_vain(of, outcome);
        assert_eq!(refusal.condition, condition, "{refusal:?}");
    }

    /// Asserts that a delivery cannot be completed any more.
    #[track_caller]
    pub(crate) fn assert_lock_lost(&mut self, delivery: &Delivery) {
        self.assert_settle_refused(delivery, accepted(), "com.microsoft:message-lock-lost");
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

    /// Receives the next message and completes it.
    #[track_caller]
    pub(crate) fn complete_one(&mut self, link: &Link) {
        let delivery = self.receive_one(link);
        self.complete(&delivery);
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

/// The message format of a batch.
pub(crate) const BATCH: u32 = 0x8001_3700;

/// The data sections of a batch.
pub(crate) fn batch<M: AsRef<[u8]>>(messages: &[M]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut writer = servicebus_codec::Writer::new(&mut out);
    for message in messages {
        writer.descriptor(0x75);
        writer.binary(message.as_ref());
    }
    out
}

impl Peer {
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
        self.transfer_with(link, format, settled, Value::Null, payload)
    }

    /// The same with a delivery state.
    pub(crate) fn transfer_with(
        &mut self,
        link: &Link,
        format: u32,
        settled: bool,
        state: Value,
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
                Value::Null,
                state.clone(),
            ];
            self.write(&performative(link.channel, TRANSFER, &fields, piece));
            rest = after;
            if rest.is_empty() {
                return id;
            }
        }
    }

    /// The answer to a transfer of this peer: settled, and accepted or rejected.
    pub(crate) fn outcome(&mut self, link: &Link, id: u32) -> Result<(), ServiceError> {
        let covers = |frame: &Frame| {
            let is_answer = frame.is_about(id) && frame.channel == link.channel && frame.flag(0);
            is_answer && frame.flag(3)
        };
        // A disposition may answer for others too, which are asked for later.
        let found = self.disposition("the settled outcome of a send", covers);
        match described_list(found.field(4)) {
            (0x24, []) => Ok(()),
            (0x25, [error]) => Err(refusal_of(error)),
            other => panic!("a sender is told {other:?}"),
        }
    }

    /// Transfers a payload and waits for its outcome.
    pub(crate) fn post(
        &mut self,
        link: &Link,
        format: u32,
        payload: &[u8],
    ) -> Result<(), ServiceError> {
        let id = self.transfer(link, format, false, payload);
        self.outcome(link, id)
    }

    /// Sends messages without waiting between them; all must be accepted.
    pub(crate) fn send_without_waiting(
        &mut self,
        link: &Link,
        messages: impl Iterator<Item = Message>,
    ) {
        let sent = messages.map(|message| self.transfer(link, 0, false, &message.encode()));
        for id in Vec::from_iter(sent) {
            assert_eq!(self.outcome(link, id), Ok(()));
        }
    }

    /// Sends a message that must be accepted.
    pub(crate) fn send(&mut self, link: &Link, message: &Message) {
        self.post(link, 0, &message.encode())
            .unwrap_or_else(|refusal| panic!("{refusal:?}: {message:?}"));
    }

    /// Sends a message that must be accepted, on a link of its own.
    pub(crate) fn send_to(&mut self, address: &str, message: &Message) {
        let link = self.sender(address);
        self.send(&link, message);
    }

    /// Sends a payload that must be rejected.
    pub(crate) fn send_in_vain(&mut self, link: &Link, payload: &[u8]) -> ServiceError {
        self.post(link, 0, payload)
            .expect_err("the message is refused")
    }
}
