//! The client's frames: encoded once, with only their numbers updated, so that the client's cost is not mistaken for the
//! emulator's.

use servicebus_codec::Writer;
use servicebus_test_support::frame::{AMQP_HEADER, SASL_HEADER};
pub(crate) use servicebus_test_support::frame::{append, sized};
use servicebus_test_support::message::{DATA, HEADER, PROPERTIES};

/// The codes that the client reads or writes.
pub(crate) mod code {
    pub(crate) use servicebus_test_support::frame::{
        ATTACH, BEGIN, CLOSE, DETACH, DISPOSITION, END, FLOW, OPEN, SASL_INIT, TRANSFER,
    };

    pub(crate) const SOURCE: u8 = 0x28;
    pub(crate) const TARGET: u8 = 0x29;
    pub(crate) const ACCEPTED: u8 = 0x24;
}

pub(crate) const AMQP: u8 = 0;
const SASL: u8 = 1;
/// Frames and transfers that the client accepts without another flow.
const WINDOW: u32 = 1 << 30;

/// Which end of a link the client is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// The client sends, and gets the outcome of each message.
    Sender,
    /// The client receives, and settles each message.
    Receiver,
    /// The client receives settled messages.
    Listener,
}

/// Returns everything up to a session: headers, credentials, open, begin.
pub(crate) fn login() -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(SASL_HEADER);
    append(&mut out, SASL, 0, code::SASL_INIT, |fields| {
        fields.symbol("PLAIN");
        fields.binary(b"\0RootManageSharedAccessKey\0SAS_KEY_VALUE");
        2
    });
    out.extend_from_slice(AMQP_HEADER);
    append(&mut out, AMQP, 0, code::OPEN, |fields| {
        fields.string("bench");
        fields.string("localhost");
        fields.uint(65_536);
        fields.ushort(8);
        4
    });
    append(&mut out, AMQP, 0, code::BEGIN, |fields| {
        fields.null();
        fields.uint(0);
        fields.uint(WINDOW);
        fields.uint(WINDOW);
        4
    });
    out
}

/// A link to or from `address`.
pub(crate) fn attach(role: Role, handle: u32, address: &str) -> Vec<u8> {
    attach_from(role, handle, address, |fields| {
        fields.string(address);
        1
    })
}

/// A link from the next available session of `address`.
pub(crate) fn attach_to_next_session(handle: u32, address: &str) -> Vec<u8> {
    attach_from(Role::Receiver, handle, address, |fields| {
        fields.string(address);
        (0..6).for_each(|_| fields.null());
        let filter = fields.begin_map();
        fields.symbol("com.microsoft:session-filter");
        fields.null();
        fields.end(filter, 2);
        8
    })
}

/// A link to or from `address` whose source has the fields that `source` writes and counts.
fn attach_from(
    role: Role,
    handle: u32,
    address: &str,
    source: impl FnOnce(&mut Writer<'_>) -> u32,
) -> Vec<u8> {
    let mut out = Vec::new();
    append(&mut out, AMQP, 0, code::ATTACH, |fields| {
        fields.string(&format!("bench-{handle}"));
        fields.uint(handle);
        fields.bool(role != Role::Sender);
        fields.ubyte(if role == Role::Listener { 1 } else { 0 });
        fields.ubyte(0);
        fields.descriptor(code::SOURCE);
        let list = fields.begin_list();
        let count = source(fields);
        fields.end(list, count);
        fields.descriptor(code::TARGET);
        let list = fields.begin_list();
        fields.string(address);
        fields.end(list, 1);
        fields.null();
        fields.null();
        fields.uint(0);
        10
    });
    out
}

/// Credit for a link that has received `received` messages.
pub(crate) fn flow(out: &mut Vec<u8>, handle: u32, received: u32, credit: u32) {
    flow_of(out, handle, received, (received, credit));
}

/// Appends the flow of one of several links, which has received `own` of its session's messages.
pub(crate) fn flow_of(out: &mut Vec<u8>, handle: u32, received: u32, (own, credit): (u32, u32)) {
    append(out, AMQP, 0, code::FLOW, |fields| {
        fields.uint(received);
        fields.uint(WINDOW);
        fields.uint(0);
        fields.uint(WINDOW);
        fields.uint(handle);
        fields.uint(own);
        fields.uint(credit);
        7
    });
}

/// Accepts a range of deliveries; the emulator must answer.
pub(crate) fn accept(out: &mut Vec<u8>, first: u32, last: u32) {
    append(out, AMQP, 0, code::DISPOSITION, |fields| {
        fields.bool(true);
        fields.uint(first);
        fields.uint(last);
        fields.bool(false);
        fields.descriptor(code::ACCEPTED);
        let list = fields.begin_list();
        fields.end(list, 0);
        5
    });
}

/// Returns an encoded message as SDKs write it, with `body` bytes at its end.
pub(crate) fn message(body: usize, time_to_live_ms: Option<u32>) -> Vec<u8> {
    let mut encoded = Vec::new();
    let mut out = Writer::new(&mut encoded);
    out.descriptor(HEADER);
    let header = out.begin_list();
    out.bool(false);
    out.null();
    match time_to_live_ms {
        Some(milliseconds) => out.uint(milliseconds),
        None => out.null(),
    }
    out.end(header, 3);
    out.descriptor(PROPERTIES);
    let properties = out.begin_list();
    out.string("message-0123456789");
    for _ in 0..5 {
        out.null();
    }
    out.symbol("application/octet-stream");
    out.end(properties, 7);
    out.descriptor(DATA);
    out.binary(&vec![b'x'; body]);
    encoded
}

/// Consecutive transfers of messages of one size, to be written as often as needed.
#[derive(Debug, Clone)]
pub(crate) struct Transfers {
    bytes: Vec<u8>,
    frame: usize,
    id: usize,
    /// How many are written at once.
    block: usize,
}

impl Transfers {
    /// Creates `count` transfers of the same message on link 0.
    pub(crate) fn of(message: &[u8], count: usize) -> Self {
        let (one, id) = Self::one(message);
        Self {
            frame: one.len(),
            bytes: one.repeat(count),
            id,
            block: count,
        }
    }

    /// Creates one transfer of each message on link 0, written in turn, `block` at once, which must divide their number.
    pub(crate) fn each(messages: impl Iterator<Item = Vec<u8>>, block: usize) -> Self {
        let mut each = Self {
            bytes: Vec::new(),
            frame: 0,
            id: 0,
            block,
        };
        for message in messages {
            let (one, id) = Self::one(&message);
            (each.frame, each.id) = (one.len(), id);
            each.bytes.extend(one);
        }
        each.block = block.min(each.bytes.len() / each.frame);
        each
    }

    /// Returns one transfer, and the offset of its number.
    fn one(message: &[u8]) -> (Vec<u8>, usize) {
        let mut one = Vec::new();
        let mut id = 0;
        append(&mut one, AMQP, 0, code::TRANSFER, |fields| {
            fields.uint(0);
            id = fields.position() + 1;
            fields.raw(&[0x70, 0, 0, 0, 0]);
            fields.binary(b"bnch");
            fields.uint(0);
            fields.bool(false);
            5
        });
        one.extend_from_slice(message);
        (sized(one, 0), id)
    }

    /// How many are written at once.
    pub(crate) fn count(&self) -> usize {
        self.block
    }

    /// Bytes of one.
    pub(crate) fn frame(&self) -> usize {
        self.frame
    }

    /// Returns the next `count`, at most a block, numbered from `first`.
    pub(crate) fn numbered(&mut self, first: u32, count: usize) -> &[u8] {
        let blocks = self.bytes.len() / self.frame / self.block;
        let start = first as usize / self.block % blocks * self.block * self.frame;
        let bytes = &mut self.bytes[start..start + count * self.frame];
        for (number, frame) in (first..).zip(bytes.chunks_mut(self.frame)) {
            frame[self.id..self.id + 4].copy_from_slice(&number.to_be_bytes());
        }
        bytes
    }

    /// Writes eight bytes at the end of the first body.
    pub(crate) fn stamp(&mut self, stamp: u64) {
        self.bytes[self.frame - 8..self.frame].copy_from_slice(&stamp.to_be_bytes());
    }
}

/// Reads the bytes that [`Transfers::stamp`] wrote into a message.
pub(crate) fn read_stamp(message: &[u8]) -> u64 {
    message
        .last_chunk::<8>()
        .map_or(0, |bytes| u64::from_be_bytes(*bytes))
}
