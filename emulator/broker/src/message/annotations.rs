//! Annotation maps: the sender's entries stay, the broker's are written for each delivery, and the scheduled time is kept in
//! the namespace's time (decision D20).

use std::borrow::Cow;

use servicebus_codec::{Compound, DecodeError, Reader, Value, Writer, symbol_constructor};

use super::{MessageError, limits, sections};

/// Annotations that only the broker sets; a sender's values are dropped (wire.md §7.1).
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

/// The scheduled time of JMS clients, a long (spec/jms.md).
const DELIVERY_TIME: &str = "x-opt-delivery-time";
/// The constructor of an eight-byte long (AMQP 1.0 §1.6.13).
const LONG: u8 = 0x81;
/// The first instant of the year 1, by which .NET encodes an unset time (wire.md §7.1).
const NOT_SET: i64 = -62_135_596_800_000;

/// Bytes of an encoded timestamp after its constructor.
pub(crate) const TIMESTAMP_WIDTH: usize = 8;

/// Writes an annotation section: the sender's entries, then those that `add` appends and counts. Leaves out a sender's null
/// under a name of Service Bus, which means the same: some SDKs cast the values they know (wire.md §7.1, observed 69). The
/// scheduled time is written `ahead` milliseconds earlier.
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
            // The first of several counts.
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

/// Returns the section with this annotation as `set` writes it, or without it if `set` removes it.
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

/// Returns the scheduled instant in milliseconds, and how many bytes before the end of the section its eight bytes begin.
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

/// Returns the annotation of this name if it is a text.
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
        Some(PARTITION_KEY) => check_partition_key("partition key", PARTITION_KEY, value),
        Some(VIA_PARTITION_KEY) => {
            check_partition_key("via partition key", VIA_PARTITION_KEY, value)
        }
        _ => Ok(()),
    }
}

/// Checks a partition key: the SDKs for .NET, Java, Go and Rust cast those that they receive (wire.md §7.1).
fn check_partition_key(
    what: &'static str,
    name: &'static str,
    value: &[u8],
) -> Result<(), MessageError> {
    let is_string = matches!(Reader::new(value).value()?, Value::Null | Value::String(_));
    match is_string {
        true => limits::check_id(what, value),
        false => Err(MessageError::PartitionKey(name)),
    }
}

/// Returns whether a key is a string that should be a symbol.
pub(crate) fn has_text_keys(map: Compound<'_>) -> Result<bool, MessageError> {
    let mut found = false;
    for entry in map.raw_entries() {
        found |= symbol_for(entry?.0)?.is_some();
    }
    Ok(found)
}

/// Turns string keys of a section into symbols, which differ only in their constructors.
pub(crate) fn name_by_symbols(section: &mut [u8]) -> Result<(), MessageError> {
    sections::edit_entries(section, |key, _| {
        if let Some(constructor) = symbol_for(key)? {
            key[0] = constructor;
        }
        Ok(())
    })
}

/// Returns the constructor of the symbol for an encoded string, if it is a string whose characters a symbol can have.
pub(crate) fn symbol_for(key: &[u8]) -> Result<Option<u8>, MessageError> {
    let Some(constructor) = key.first().copied().and_then(symbol_constructor) else {
        return Ok(None);
    };
    let text = Reader::new(key).value()?;
    let is_ascii = text.as_text().is_some_and(str::is_ascii);
    Ok(is_ascii.then_some(constructor))
}

/// Returns the value of an entry if it is a scheduled time that is set.
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

/// Returns whether a value is an eight-byte long, whose bytes are where those of a timestamp would be.
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
