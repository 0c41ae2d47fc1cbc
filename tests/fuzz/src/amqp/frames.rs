//! Frames of a peer: most of them make sense after each other, because channels, handles and numbers are few.

use servicebus_codec::Writer;
use servicebus_test_support::frame::{AMQP_HEADER, SASL_HEADER, append, sized};

use crate::{Input, value};

/// What a client says first: anonymous, and an open with small frames.
pub(crate) fn handshake() -> Vec<u8> {
    let mut out = SASL_HEADER.to_vec();
    out.extend(frame(1, 0, 0x41, |out| {
        out.symbol("ANONYMOUS");
        1
    }));
    out.extend(AMQP_HEADER);
    out.extend(frame(0, 0, 0x10, |out| {
        out.string("peer");
        out.null();
        out.uint(super::FRAME);
        out.ushort(3);
        4
    }));
    out
}

/// The next frame, or bytes that are not a frame.
pub(crate) fn next(input: &mut Input<'_>) -> Vec<u8> {
    let channel = input.below(3) as u16;
    let mut frame = match input.below(32) {
        0..=3 => begin(input, channel),
        4..=9 => attach(input, channel),
        10..=15 => flow(input, channel),
        16..=21 => transfer(input, channel),
        22..=25 => disposition(input, channel),
        26..=27 => detach(input, channel),
        28 => simple(channel, 0x17),
        29 => match input.below(4) {
            0 => simple(channel, 0x18),
            1 => handshake(),
            _ => vec![0, 0, 0, 8, 2, 0, 0, channel as u8],
        },
        30 => any(input, channel),
        _ => input.bytes(64).to_vec(),
    };
    if input.one_in(32) && !frame.is_empty() {
        let at = input.below(frame.len());
        frame[at] = input.byte();
    }
    frame
}

/// A frame of one performative with the fields that are written, which are counted.
fn frame(kind: u8, channel: u16, code: u8, fields: impl FnOnce(&mut Writer<'_>) -> u32) -> Vec<u8> {
    let mut out = Vec::new();
    append(&mut out, kind, channel, code, fields);
    out
}

/// Small numbers, which mean something, and others, which are the edges.
fn number(input: &mut Input<'_>, out: &mut Writer<'_>) {
    match input.below(32) {
        0 => out.null(),
        1 => out.uint(u32::MAX - u32::from(input.byte() & 3)),
        2 => out.uint(input.u32()),
        3 => out.uint(0x8000_0000),
        small => out.uint(small as u32 % 8),
    }
}

fn begin(input: &mut Input<'_>, channel: u16) -> Vec<u8> {
    frame(0, channel, 0x11, |out| {
        out.null();
        number(input, out);
        out.uint(16);
        out.uint(if input.one_in(4) { 2 } else { 1_000 });
        4
    })
}

fn attach(input: &mut Input<'_>, channel: u16) -> Vec<u8> {
    let receives = input.one_in(2);
    frame(0, channel, 0x12, |out| {
        out.string(&input.word(4));
        number(input, out);
        out.bool(receives);
        out.ubyte(input.byte() % 4);
        out.ubyte(input.byte() % 3);
        for code in [0x28, 0x29] {
            out.descriptor(code);
            let mark = out.begin_list();
            out.string("q");
            out.end(mark, 1);
        }
        out.null();
        out.null();
        if !receives {
            number(input, out);
        }
        if receives { 9 } else { 10 }
    })
}

fn flow(input: &mut Input<'_>, channel: u16) -> Vec<u8> {
    let of_link = !input.one_in(4);
    frame(0, channel, 0x13, |out| {
        number(input, out);
        out.uint(if input.one_in(8) { 0 } else { 1_000 });
        number(input, out);
        number(input, out);
        if !of_link {
            return 4;
        }
        number(input, out);
        number(input, out);
        number(input, out);
        out.null();
        out.bool(input.one_in(4));
        out.bool(input.one_in(4));
        10
    })
}

fn transfer(input: &mut Input<'_>, channel: u16) -> Vec<u8> {
    let mut out = frame(0, channel, 0x14, |out| {
        number(input, out);
        number(input, out);
        out.binary(input.bytes(40));
        out.uint(0);
        out.bool(input.one_in(4));
        out.bool(input.one_in(3));
        out.null();
        state(input, out);
        out.bool(false);
        out.bool(input.one_in(16));
        10
    });
    out.extend(input.bytes(100));
    sized(out, 0)
}

fn state(input: &mut Input<'_>, out: &mut Writer<'_>) {
    let code = input.pick(&[0, 0x23, 0x24, 0x25, 0x26, 0x27, 0x34]);
    if code == 0 {
        return out.null();
    }
    out.descriptor(code);
    let mark = out.begin_list();
    let fields = match code {
        0x27 => {
            out.bool(input.one_in(2));
            out.bool(input.one_in(2));
            2
        }
        0x34 => {
            out.binary(input.bytes(8));
            out.descriptor(0x24);
            let outcome = out.begin_list();
            out.end(outcome, 0);
            2
        }
        _ => 0,
    };
    out.end(mark, fields);
}

fn disposition(input: &mut Input<'_>, channel: u16) -> Vec<u8> {
    frame(0, channel, 0x15, |out| {
        out.bool(!input.one_in(4));
        number(input, out);
        number(input, out);
        out.bool(input.one_in(2));
        state(input, out);
        5
    })
}

fn detach(input: &mut Input<'_>, channel: u16) -> Vec<u8> {
    frame(0, channel, 0x16, |out| {
        number(input, out);
        out.bool(input.one_in(2));
        2
    })
}

fn simple(channel: u16, code: u8) -> Vec<u8> {
    frame(0, channel, code, |_| 0)
}

/// A performative with any fields.
fn any(input: &mut Input<'_>, channel: u16) -> Vec<u8> {
    let mut out = vec![0, 0, 0, 0, 2, input.byte() & 1];
    out.extend(channel.to_be_bytes());
    Writer::new(&mut out).descriptor(0x10 + input.byte() % 10);
    value::list(input, 3, &mut out);
    sized(out, 0)
}
