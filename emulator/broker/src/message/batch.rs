//! Message format 0x80013700: several messages in one transfer, each encoded in a data section of its own.

use std::ops::Range;

use bytes::Bytes;
use servicebus_codec::Reader;

use super::{MessageError, sections};

/// Where the messages of a batch stand. The envelope's own sections repeat the first message's and are
/// not needed (wire.md §3.3).
pub(super) fn split(payload: &Bytes) -> Result<Vec<Range<usize>>, MessageError> {
    sections::Sections::scan(payload)?;
    let mut reader = Reader::new(payload);
    let mut messages = Vec::new();
    while !reader.is_empty() {
        match sections::section_code(reader.descriptor()?) {
            sections::DATA => {
                let length = reader.binary()?.len();
                let end = reader.position();
                messages.push(end - length..end);
            }
            // Accepting a body that holds no messages would lose whatever its sender meant by it.
            code @ (sections::SEQUENCE | sections::VALUE) => {
                return Err(MessageError::Section(code));
            }
            _ => reader.validate()?,
        }
    }
    Ok(messages)
}
