//! What Service Bus asks of the parts of a message: how long names and values may be, and of which types
//! (quotas in service-bus-quotas, semantics §1).
//!
//! The size of a whole message is limited per link and entity, and is not looked at here.
//!
//! What can be wrong with a message that is sent. Always the sender's fault.

use servicebus_codec::{Compound, DecodeError, Reader, Value};
use thiserror::Error;

use super::{annotations, sections};

/// Bytes of the sections before the body, together.
pub(crate) const HEADERS: usize = 64 * 1024;

/// Bytes of one annotation or application property: 32 KiB, and the constructor and length before them.
const VALUE: usize = 32 * 1024 + 5;

/// Characters of a message id, session id or partition key.
const ID: usize = 128;

/// Checks the entries of the annotations; `known` are those whose types the broker relies on. Returns whether a key is a
/// string that should be a symbol.
pub(crate) fn check_annotations(map: Compound<'_>, known: bool) -> Result<bool, MessageError> {
    let mut has_text_keys = false;
    for entry in map.raw_entries() {
        let (key, value) = entry?;
        check_size(key, value)?;
        has_text_keys |= annotations::symbol_for(key)?.is_some();
        if known {
            annotations::check_known(key, value)?;
        }
    }
    Ok(has_text_keys)
}

/// Checks the entries of the application properties: text and primitives, as the SDKs can show them. Returns whether one is
/// a decimal that has to be written anew.
pub(crate) fn check_application(map: Compound<'_>) -> Result<bool, MessageError> {
    let mut has_ieee_decimals = false;
    for entry in map.raw_entries() {
        let (key, value) = entry?;
        if !Reader::new(key).next_is_text() {
            return Err(MessageError::PropertyName);
        }
        if !Reader::new(value).next_is_primitive() {
            return Err(MessageError::IllegalProperty { name: name(key) });
        }
        check_size(key, value)?;
        has_ieee_decimals |= sections::is_ieee(value);
    }
    Ok(has_ieee_decimals)
}

fn check_size(key: &[u8], value: &[u8]) -> Result<(), MessageError> {
    if value.len() > VALUE {
        return Err(MessageError::PropertyTooLarge {
            name: name(key),
            size: value.len(),
        });
    }
    Ok(())
}

/// Checks an encoded message id, session id or partition key.
pub(crate) fn check_id(what: &'static str, encoded: &[u8]) -> Result<(), MessageError> {
    // No id of a type of fixed width is as long as that.
    if encoded.len() <= ID {
        return Ok(());
    }
    let value = Reader::new(encoded).value()?;
    let length = if let Value::Binary(bytes) = value {
        bytes.len()
    } else {
        value.as_text().map_or(0, |text| text.chars().count())
    };
    if length > ID {
        return Err(MessageError::TooLong { what, length });
    }
    Ok(())
}

/// The name of an entry, for an error.
fn name(key: &[u8]) -> String {
    match Reader::new(key).value() {
        Ok(Value::String(text) | Value::Symbol(text)) => text.to_owned(),
        Ok(Value::Unsigned(number)) => number.to_string(),
        _ => "(no text)".to_owned(),
    }
}

/// Why bytes are not a message that can be accepted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    /// Not the encoding of a message.
    #[error("the message cannot be decoded: {0}")]
    Malformed(#[from] DecodeError),
    /// A section out of order, twice, or unknown.
    #[error("the message has an unexpected section 0x{0:x}")]
    Section(u64),
    /// A time to live of zero (semantics §4: answered with an internal error).
    #[error("the time to live of a message must be greater than zero")]
    ZeroTimeToLive,
    /// Larger than the sections of one message can be addressed.
    #[error("the message has {0} bytes; at most {max} can be held", max = u32::MAX)]
    TooLarge(usize),
    /// Everything before the body, beyond what Service Bus allows (semantics §1).
    #[error("the headers and properties of the message have {size} bytes; at most {max} are allowed", max = HEADERS)]
    HeadersTooLarge {
        /// Bytes of those sections.
        size: usize,
    },
    /// An annotation or application property beyond what Service Bus allows (semantics §1).
    #[error("the property '{name}' has {size} bytes; at most 32 KiB are allowed")]
    PropertyTooLarge {
        /// Its key.
        name: String,
        /// Bytes of its encoded value.
        size: usize,
    },
    /// A message id, session id or partition key beyond what Service Bus allows (semantics §1).
    #[error("the {what} has {length} characters; at most 128 are allowed")]
    TooLong {
        /// Which of them.
        what: &'static str,
        /// Its characters.
        length: usize,
    },
    /// An application property that is a list, map or array.
    #[error("the application property '{name}' is not of a primitive type")]
    IllegalProperty {
        /// Its key.
        name: String,
    },
    /// An application property whose key is no text.
    #[error("the name of an application property must be a string")]
    PropertyName,
    /// A scheduled enqueue time that is no instant.
    #[error("the annotation x-opt-scheduled-enqueue-time must be a timestamp")]
    ScheduledTime,
}
