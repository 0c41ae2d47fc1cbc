//! Annotation maps: what the sender put there stays, what the broker owns is written afresh, and the time a
//! message is scheduled for is kept in the namespace's time (decision D20).

use std::borrow::Cow;

use servicebus_codec::{Compound, DecodeError, Reader, Value, Writer, symbol_constructor};

use super::{MessageError, limits, sections};

/// Annotations that only the broker sets; values that a sender put there are dropped (wire.md §7.1).
const OWNED: [&str; 8] = [
    "x-opt-sequence-number",
    "x-opt-enqueued-time",
    "x-opt-locked-until",
    "x-opt-enqueue-sequence-number",
    "x-opt-message-state",
    DEAD_LETTER_SOURCE,
    "x-opt-partition-id",
    "x-opt-lock-token",
];

pub(crate) const DEAD_LETTER_SOURCE: &str = "x-opt-deadletter-source";
const SCHEDULED: &str = "x-opt-scheduled-enqueue-time";
pub(crate) const PARTITION_KEY: &str = "x-opt-partition-key";
pub(crate) const VIA_PARTITION_KEY: &str = "x-opt-via-partition-key";

/// Annotations of Service Bus that senders set.
const KNOWN: [&str; 4] = [SCHEDULED, DELIVERY_TIME, PARTITION_KEY, VIA_PARTITION_KEY];

/// What clients of JMS write for the scheduled time, a long (spec/jms.md).
const DELIVERY_TIME: &str = "x-opt-delivery-time";
/// The constructor of a long that is not written in one byte (AMQP 1.0 §1.6.13).
const LONG: u8 = 0x81;
/// The first instant of the year 1, which .NET writes for a time that is not set (wire.md §7.1).
const NOT_SET: i64 = -62_135_596_800_000;

/// Bytes of an encoded timestamp behind its constructor.
pub(crate) const TIMESTAMP_WIDTH: usize = 8;

/// Writes an annotation section: the sender's entries, then those that `add` appends (it says how many).
/// A null that senders set under a name of Service Bus is left out, which means the same: some SDKs cast the values they know
/// (wire.md §7.1, observed 69).
/// The scheduled time is written `ahead` milliseconds earlier.
pub(crate) fn write(
    code: u64,
    sent: &[u8],
    ahead: i64,
    out: &mut Writer<'_>,
    add: impl FnOnce(&mut Writer<'_>) -> u32,
) -> Result<(), DecodeError> {
    out.descriptor(code as u8);
    let mark = out.begin_map();
    let mut entries = 0;
    let mut ahead = Some(ahead).filter(|&ahead| ahead != 0);
    for entry in map(sent)?.raw_entries() {
        let (key, value) = entry?;
        let is_null = Reader::new(value).take_null();
        if is_owned(key)? || is_null && is_known(key)? {
            continue;
        }
        out.raw(key);
        match ahead.and_then(|_| scheduled(key, value)) {
            // Of several, the first counts.
            Some(instant) => {
                let instant = instant.saturating_sub(ahead.take().unwrap_or(0));
                match is_long(value) {
                    true => out.long(instant),
                    false => out.timestamp(instant),
                }
            }
            None => out.raw(value),
        }
        entries += 1;
    }
    entries += add(out);
    out.end(mark, entries * 2);
    Ok(())
}

/// The section with this annotation as `set` writes it, or without it if that says so.
pub(crate) fn edit(
    section: &[u8],
    name: &str,
    set: impl FnOnce(&mut Writer<'_>) -> bool,
) -> Result<Vec<u8>, DecodeError> {
    let mut edited = Vec::with_capacity(section.len() + 64);
    let mut out = Writer::new(&mut edited);
    out.descriptor(sections::MESSAGE_ANNOTATIONS as u8);
    let mark = out.begin_map();
    let mut entries = 0;
    for entry in map(section)?.raw_entries() {
        let (key, value) = entry?;
        if Reader::new(key).value()?.as_text() != Some(name) {
            out.raw(key);
            out.raw(value);
            entries += 1;
        }
    }
    let mut value = Vec::new();
    if set(&mut Writer::new(&mut value)) {
        out.symbol(name);
        out.raw(&value);
        entries += 1;
    }
    out.end(mark, entries * 2);
    Ok(edited)
}

/// The instant that the message is scheduled for, in milliseconds, and how many bytes before the end of
/// the section its eight bytes stand.
pub(crate) fn schedule(section: &[u8]) -> Option<(i64, usize)> {
    let map = map(section).ok()?;
    let mut items = map.items;
    for _ in 0..map.count / 2 {
        let (key, value) = (items.skip().ok()?, items.skip().ok()?);
        if let Some(instant) = scheduled(key, value) {
            return Some((instant, items.rest().len() + TIMESTAMP_WIDTH));
        }
    }
    None
}

/// The annotation of this name if it is a text.
pub(crate) fn text<'a>(section: &'a [u8], name: &str) -> Option<Cow<'a, str>> {
    let mut entries = map(section).ok()?.entries().flatten();
    let (_, key) = entries.find(|(key, _)| key.as_text() == Some(name))?;
    key.as_text().map(Cow::Borrowed)
}

/// Checks an entry whose type the broker relies on.
pub(crate) fn check_known(key: &[u8], value: &[u8]) -> Result<(), MessageError> {
    match Reader::new(key).value()?.as_text() {
        Some(SCHEDULED) => {
            let value = Reader::new(value).value()?;
            let known = matches!(value, Value::Null | Value::Timestamp(_));
            known.then_some(()).ok_or(MessageError::ScheduledTime)
        }
        Some(PARTITION_KEY) => limits::check_id("partition key", value),
        Some(VIA_PARTITION_KEY) => limits::check_id("via partition key", value),
        _ => Ok(()),
    }
}

/// Whether a key is a string that should be a symbol.
pub(crate) fn has_text_keys(map: Compound<'_>) -> Result<bool, MessageError> {
    let mut found = false;
    for entry in map.raw_entries() {
        found |= symbol_for(entry?.0)?.is_some();
    }
    Ok(found)
}

/// Makes symbols of the keys of a section that are strings: the two differ in their constructors alone.
pub(crate) fn name_by_symbols(section: &mut [u8]) -> Result<(), MessageError> {
    sections::edit_entries(section, |key, _| {
        if let Some(constructor) = symbol_for(key)? {
            key[0] = constructor;
        }
        Ok(())
    })
}

/// The constructor of the symbol with the characters of an encoded string, if that is one and a symbol can have them.
pub(crate) fn symbol_for(key: &[u8]) -> Result<Option<u8>, MessageError> {
    let Some(constructor) = key.first().copied().and_then(symbol_constructor) else {
        return Ok(None);
    };
    let text = Reader::new(key).value()?;
    let is_ascii = text.as_text().is_some_and(str::is_ascii);
    Ok(is_ascii.then_some(constructor))
}

/// The value of an entry if it is a scheduled time that is set.
fn scheduled(key: &[u8], value: &[u8]) -> Option<i64> {
    let name = Reader::new(key).value().ok()?.as_text()?;
    match Reader::new(value).value() {
        Ok(Value::Timestamp(instant)) if name == SCHEDULED => {
            (instant != NOT_SET).then_some(instant)
        }
        Ok(Value::Signed(instant)) if name == DELIVERY_TIME && is_long(value) => Some(instant),
        _ => None,
    }
}

/// Whether a value is a long of eight bytes, which stand where those of a timestamp would.
fn is_long(value: &[u8]) -> bool {
    value.first() == Some(&LONG)
}

fn map(section: &[u8]) -> Result<Compound<'_>, DecodeError> {
    if section.is_empty() {
        return Ok(Compound {
            count: 0,
            items: Reader::new(&[]),
        });
    }
    sections::content(section)?.map()
}

fn is_known(key: &[u8]) -> Result<bool, DecodeError> {
    let name = Reader::new(key).value()?.as_text();
    Ok(name.is_some_and(|name| KNOWN.contains(&name)))
}

fn is_owned(key: &[u8]) -> Result<bool, DecodeError> {
    let name = Reader::new(key).value()?.as_text();
    Ok(name.is_some_and(|name| OWNED.contains(&name)))
}
