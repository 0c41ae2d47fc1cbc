//! Encoded AMQP values, most of them well formed.

use servicebus_codec::Writer;

use crate::Input;

/// Constructors of a fixed width.
const FIXED: [u8; 27] = [
    0x40, 0x41, 0x42, 0x43, 0x44, 0x45, 0x50, 0x51, 0x52, 0x53, 0x54, 0x55, 0x56, 0x60, 0x61, 0x70,
    0x71, 0x72, 0x73, 0x74, 0x80, 0x81, 0x82, 0x83, 0x84, 0x94, 0x98,
];

/// The width of a value of such a constructor: 0, 1, 2, 4, 8 or 16 bytes, by its upper half (AMQP 1.0, 1.2).
const fn width(code: u8) -> usize {
    (1 << (code >> 4)) >> 5
}
/// Names that mean something somewhere.
const NAMES: [&str; 24] = [
    "x-opt-partition-key",
    "x-opt-via-partition-key",
    "x-opt-scheduled-enqueue-time",
    "x-opt-locked-until",
    "x-opt-sequence-number",
    "x-opt-deadletter-source",
    "DeadLetterReason",
    "lock-tokens",
    "sequence-numbers",
    "message-count",
    "from-sequence-number",
    "messages",
    "message",
    "message-id",
    "session-id",
    "session-state",
    "disposition-status",
    "receiver-settle-mode",
    "rule-name",
    "rule-description",
    "sql-filter",
    "correlation-filter",
    "expression",
    "properties",
];

/// Appends one value that nests at most `depth` deep.
pub fn value(input: &mut Input<'_>, depth: usize, out: &mut Vec<u8>) {
    let kind = input.below(if depth == 0 { 8 } else { 14 });
    match kind {
        0..=2 => fixed(input, out),
        3 => Writer::new(out).string(&input.word(24)),
        4 => Writer::new(out).symbol(input.pick(&NAMES)),
        5 => Writer::new(out).string(input.pick(&NAMES)),
        6 => Writer::new(out).binary(input.bytes(24)),
        7 => malformed(input, out),
        8 | 9 => list(input, depth, out),
        10 | 11 => map(input, depth, out),
        12 => array(input, out),
        _ => {
            out.push(0x00);
            value(input, depth.min(2) - 1, out);
            value(input, depth - 1, out);
        }
    }
}

/// Appends a list.
pub fn list(input: &mut Input<'_>, depth: usize, out: &mut Vec<u8>) {
    let mark = Writer::new(out).begin_list();
    let count = input.below(6);
    (0..count).for_each(|_| value(input, depth.saturating_sub(1), out));
    Writer::new(out).end(mark, count as u32);
}

/// Appends a map, most of whose keys are texts.
pub fn map(input: &mut Input<'_>, depth: usize, out: &mut Vec<u8>) {
    let mark = Writer::new(out).begin_map();
    let count = input.below(5);
    for _ in 0..count {
        match input.below(4) {
            0 => Writer::new(out).symbol(&input.word(12)),
            1 => Writer::new(out).string(input.pick(&NAMES)),
            2 => Writer::new(out).symbol(input.pick(&NAMES)),
            _ => value(input, depth.saturating_sub(1), out),
        }
        value(input, depth.saturating_sub(1), out);
    }
    Writer::new(out).end(mark, 2 * count as u32);
}

fn fixed(input: &mut Input<'_>, out: &mut Vec<u8>) {
    let code = input.pick(&FIXED);
    out.push(code);
    (0..width(code)).for_each(|_| out.push(input.byte()));
}

/// Long forms, texts that are not UTF-8, constructors that do not exist.
fn malformed(input: &mut Input<'_>, out: &mut Vec<u8>) {
    match input.below(5) {
        0 => out.extend([0xb1, 0, 0, 0, 1, input.byte()]),
        1 => out.extend([0xb0, 0, 0, 0, 1, input.byte()]),
        2 => out.extend([0xa1, 2, input.byte(), input.byte()]),
        3 => out.push(input.byte()),
        _ => out.extend(input.bytes(8)),
    }
}

/// Appends an array, in its short or its long form, whose elements may be described.
fn array(input: &mut Input<'_>, out: &mut Vec<u8>) {
    if input.one_in(3) {
        return array_of_maps(input, out);
    }
    let code = input.pick(&FIXED);
    let (width, count) = (width(code), input.below(4));
    let descriptor: &[u8] = if input.one_in(3) { &[0, 0x53, 7] } else { &[] };
    let content = descriptor.len() + 1 + count * width;
    match input.one_in(2) {
        true => out.extend([0xe0, (1 + content) as u8, count as u8]),
        false => {
            out.push(0xf0);
            out.extend((4 + content as u32).to_be_bytes());
            out.extend((count as u32).to_be_bytes());
        }
    }
    out.extend(descriptor);
    out.push(code);
    (0..count * width).for_each(|_| out.push(input.byte()));
}

/// Appends an array of up to 400 equal lists or maps of two values, one of them binary.
fn array_of_maps(input: &mut Input<'_>, out: &mut Vec<u8>) {
    let count = input.below(20) * input.below(20);
    let binary = input.bytes(100);
    let binary = [&[0xa0, binary.len() as u8], binary].concat();
    let element = [
        &[binary.len() as u8 + 3, 2],
        &binary[..],
        &[0x50, input.byte()],
    ]
    .concat();
    let elements = element.repeat(count);
    out.push(0xf0);
    out.extend((5 + elements.len() as u32).to_be_bytes());
    out.extend((count as u32).to_be_bytes());
    out.push(input.pick(&[0xc0, 0xc1]));
    out.extend(elements);
}
