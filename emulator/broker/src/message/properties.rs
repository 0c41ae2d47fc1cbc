//! The properties section: read without decoding all of it, changed by replacing single fields.

use std::borrow::Cow;

use servicebus_codec::{DecodeError, Value, Writer};

use super::{MessageError, limits, sections};

/// The end of the year 9999, the SDKs' latest instant: later ones do not fit their types (wire.md §7.2).
const LATEST_EXPIRY: i64 = 253_402_300_799_999;

const MESSAGE_ID: u32 = 0;
const ABSOLUTE_EXPIRY_TIME: u32 = 8;
const CREATION_TIME: u32 = 9;
const GROUP_ID: u32 = 10;

/// The properties that every send reads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PropertiesSummary {
    pub(crate) has_message_id: bool,
    /// Expiry time minus creation time in milliseconds, if both are set and in that order.
    pub(crate) lifetime: Option<u64>,
}

pub(crate) fn summary(section: &[u8]) -> Result<PropertiesSummary, MessageError> {
    if section.is_empty() {
        return Ok(PropertiesSummary::default());
    }
    let mut fields = sections::content(section)?.fields()?;
    let message_id = fields.raw()?;
    limits::check_id("message id", message_id.unwrap_or_default())?;
    for _ in MESSAGE_ID + 1..ABSOLUTE_EXPIRY_TIME {
        fields.raw()?;
    }
    let lifetime = match (fields.value()?, fields.value()?) {
        (Value::Timestamp(expiry), Value::Timestamp(creation)) => expiry
            .checked_sub(creation)
            .and_then(|lifetime| u64::try_from(lifetime).ok()),
        _ => None,
    };
    limits::check_id("session id", fields.raw()?.unwrap_or_default())?;
    Ok(PropertiesSummary {
        has_message_id: message_id.is_some(),
        lifetime,
    })
}

/// Returns the message id as text; empty if there is none.
pub(crate) fn message_id(section: &[u8]) -> Cow<'_, str> {
    let first = || sections::content(section)?.fields()?.value();
    match first().unwrap_or(Value::Null) {
        Value::String(text) | Value::Symbol(text) => text.into(),
        Value::Unsigned(number) => number.to_string().into(),
        Value::Signed(number) => number.to_string().into(),
        Value::Uuid(uuid) => uuid.to_string().into(),
        Value::Binary(bytes) => bytes
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect::<String>()
            .into(),
        Value::Null | Value::Bool(_) | Value::Float(_) | Value::Timestamp(_) | Value::Other(_) => {
            "".into()
        }
    }
}

/// Returns the id of the message's session.
pub(crate) fn group_id(section: &[u8]) -> Option<Cow<'_, str>> {
    field(section, GROUP_ID)?.as_text().map(Cow::Borrowed)
}

/// Returns the instant `time_to_live` milliseconds after the creation time; `None` if that is not set.
pub(crate) fn expiry_after(section: &[u8], time_to_live: u64) -> Option<i64> {
    let Value::Timestamp(creation) = field(section, CREATION_TIME)? else {
        return None;
    };
    Some(
        creation
            .saturating_add_unsigned(time_to_live)
            .min(LATEST_EXPIRY),
    )
}

fn field(section: &[u8], index: u32) -> Option<Value<'_>> {
    if section.is_empty() {
        return None;
    }
    let mut fields = sections::content(section).ok()?.fields().ok()?;
    for _ in 0..index {
        fields.raw().ok()?;
    }
    fields.value().ok()
}

/// Returns the section with this message id; other fields stay byte for byte.
pub(crate) fn with_message_id(section: &[u8], id: &str) -> Result<Vec<u8>, DecodeError> {
    splice(section, MESSAGE_ID, |out| out.string(id))
}

/// Returns the section with this absolute expiry time in milliseconds, or without one.
pub(crate) fn with_expiry(
    section: &[u8],
    milliseconds: Option<i64>,
) -> Result<Vec<u8>, DecodeError> {
    splice(section, ABSOLUTE_EXPIRY_TIME, |out| match milliseconds {
        Some(milliseconds) => out.timestamp(milliseconds),
        None => out.null(),
    })
}

/// Returns the section with another value in this field.
pub(crate) fn with_field(
    section: &[u8],
    index: u32,
    write: impl FnOnce(&mut Writer<'_>),
) -> Result<Vec<u8>, DecodeError> {
    splice(section, index, write)
}

/// Rewrites the field at `index`, padding with nulls up to it.
fn splice(
    section: &[u8],
    index: u32,
    write: impl FnOnce(&mut Writer<'_>),
) -> Result<Vec<u8>, DecodeError> {
    let mut spliced = Vec::with_capacity(section.len() + 64);
    let mut out = Writer::new(&mut spliced);
    out.descriptor(sections::PROPERTIES as u8);
    let mark = out.begin_list();
    let mut count = 0;
    let mut rest: &[u8] = &[];
    if !section.is_empty() {
        let list = sections::content(section)?.list()?;
        let mut items = list.items;
        count = list.count;
        for _ in 0..index.min(count) {
            out.raw(items.skip()?);
        }
        if count > index {
            items.skip()?;
            rest = items.rest();
        }
    }
    for _ in count..index {
        out.null();
    }
    write(&mut out);
    out.raw(rest);
    out.end(mark, count.max(index + 1));
    Ok(spliced)
}
