//! The limits of Service Bus on the parts of a message: lengths and types of names and values (quotas in service-bus-quotas,
//! semantics §1).
//!
//! The size of a whole message is limited per link and entity, and is not checked here. All errors are the sender's fault.

use servicebus_codec::{Compound, DecodeError, Reader, Value};
use thiserror::Error;

use super::{annotations, sections};

/// Maximum bytes of all sections before the body.
pub(crate) const HEADERS: usize = 64 * 1024;

/// Maximum bytes of one annotation or application property: 32 KiB, and the constructor and length before them.
const VALUE: usize = 32 * 1024 + 5;

/// Maximum characters of a message id, session id or partition key.
const ID: usize = 128;

/// Checks the annotations; `known` if the broker relies on the types of some. Returns whether a key is a string that should
/// be a symbol.
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

/// Checks the application properties: text and primitives, as the SDKs can show them. Returns whether one is a decimal that
/// must be encoded anew.
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
    // No id of a type of fixed width is longer than this.
    if encoded.len() <= ID {
        return Ok(());
    }
    let value = Reader::new(encoded).value()?;
    let length = if let Value::Binary(bytes) = value {
        bytes.len()
    } else {
        value
            .as_text()
            .map_or(0, |text| text.encode_utf16().count())
    };
    if length > ID {
        return Err(MessageError::TooLong { what, length });
    }
    Ok(())
}

/// Returns the name of an entry for an error.
fn name(key: &[u8]) -> String {
    match Reader::new(key).value() {
        Ok(Value::String(text) | Value::Symbol(text)) => text.to_owned(),
        Ok(Value::Unsigned(number)) => number.to_string(),
        _ => "(no text)".to_owned(),
    }
}

/// Why bytes are not an acceptable message.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MessageError {
    /// The bytes are not an encoded message.
    #[error("the message cannot be decoded: {0}")]
    Malformed(#[from] DecodeError),
    /// A section is out of order, duplicate or unknown.
    #[error("the message has an unexpected section 0x{0:x}")]
    Section(u64),
    /// The time to live is zero (semantics §4: answered with an internal error).
    #[error("the time to live of a message must be greater than zero")]
    ZeroTimeToLive,
    /// The message is too large for the offsets of its sections.
    #[error("the message has {0} bytes; at most {max} can be held", max = u32::MAX)]
    TooLarge(usize),
    /// The sections before the body exceed the limit (semantics §1).
    #[error("the headers and properties of the message have {size} bytes; at most {max} are allowed", max = HEADERS)]
    HeadersTooLarge {
        /// Their size in bytes.
        size: usize,
    },
    /// An annotation or application property exceeds the limit (semantics §1).
    #[error("the property '{name}' has {size} bytes; at most 32 KiB are allowed")]
    PropertyTooLarge {
        /// Its key.
        name: String,
        /// Size of its encoded value in bytes.
        size: usize,
    },
    /// A message id, session id or partition key exceeds the limit (semantics §1).
    #[error("the {what} has {length} characters; at most 128 are allowed")]
    TooLong {
        /// The name of the property.
        what: &'static str,
        /// Its length in characters.
        length: usize,
    },
    /// An application property is a list, map or array.
    #[error("the application property '{name}' is not of a primitive type")]
    IllegalProperty {
        /// Its key.
        name: String,
    },
    /// The key of an application property is not a text.
    #[error("the name of an application property must be a string")]
    PropertyName,
    /// The scheduled enqueue time is not an instant.
    #[error("the annotation x-opt-scheduled-enqueue-time must be a timestamp")]
    ScheduledTime,
    /// A partition key is not a string.
    #[error("the annotation {0} must be a string")]
    PartitionKey(&'static str),
}
