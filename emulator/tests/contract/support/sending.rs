//! Deliveries of a peer, and what it hears about them.

use serde_amqp::Value;

use super::link::Link;
use super::peer::Peer;
use servicebus_test_support::frame::{Frame, ServiceError, TRANSFER, performative, refusal_of};
use servicebus_test_support::message::Message;
use servicebus_test_support::value::{binary, described_list, uint};

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
    pub(crate) fn outcome(&mut self, link: &Link, id: u32) -> Result<(), ServiceError> {
        let covers = |frame: &Frame| {
            let is_answer = frame.is_about(id) && frame.channel == link.channel && frame.flag(0);
            is_answer && frame.flag(3)
        };
        // A disposition may answer for others too, who will ask for it.
        let found = self.disposition("the settled outcome of a send", covers);
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

    /// Sends a message that must be accepted, on a link of its own.
    pub(crate) fn send_to(&mut self, address: &str, message: &Message) {
        let link = self.sender(address);
        self.send(&link, message);
    }

    /// Sends a payload that must be rejected.
    pub(crate) fn send_in_vain(&mut self, link: &Link, payload: &[u8]) -> ServiceError {
        let id = self.transfer(link, 0, false, payload);
        self.outcome(link, id).expect_err("the message is refused")
    }
}
