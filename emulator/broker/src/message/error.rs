//! What can be wrong with a message that is sent. Always the sender's fault.

use servicebus_codec::DecodeError;
use thiserror::Error;

use super::limits;

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
    #[error("the headers and properties of the message have {size} bytes; at most {max} are allowed", max = limits::HEADERS)]
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
