//! The AMQP `error` in refusals, detaches, ends, closes and rejections, and the scope of a peer's error. Not a Rust error:
//! the owner never gets one as an `Err`.

use std::borrow::Cow;

use servicebus_codec::DecodeError;

/// An AMQP error (AMQP 1.0 §2.8.14). All three fields are always written (spec/wire.md §0.7).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// Symbol of the condition, such as `amqp:not-found`.
    pub condition: Cow<'static, str>,
    /// Human-readable text; some SDKs search it (spec/wire.md §10.32).
    pub description: String,
    /// An encoded map with further information, if any.
    pub info: Option<Box<[u8]>>,
}

impl Error {
    /// Creates an error without further information.
    pub fn new(condition: impl Into<Cow<'static, str>>, description: impl Into<String>) -> Self {
        Self {
            condition: condition.into(),
            description: description.into(),
            info: None,
        }
    }

    /// Returns the error with a text that is `excess` bytes shorter, if it is that long: what precedes the tracking id is cut.
    pub(crate) fn shortened(&self, excess: usize) -> Self {
        const CUT: &str = "…";
        let text = &self.description;
        let words = text.rfind(" TrackingId:").unwrap_or(text.len());
        let excess = excess + CUT.len();
        // If the words before it are too few, the tracking id is cut.
        let end = match words >= excess {
            true => words,
            false => text.len(),
        };
        let kept = text.floor_char_boundary(end.saturating_sub(excess));
        Self {
            condition: self.condition.clone(),
            description: format!("{}{CUT}{}", &text[..kept], &text[end..]),
            info: None,
        }
    }
}

/// The conditions that the engine raises.
pub(crate) mod condition {
    pub(crate) const CONNECTION_FORCED: &str = "amqp:connection:forced";
    pub(crate) const DECODE_ERROR: &str = "amqp:decode-error";
    pub(crate) const FRAME_SIZE_TOO_SMALL: &str = "amqp:frame-size-too-small";
    pub(crate) const FRAMING_ERROR: &str = "amqp:connection:framing-error";
    pub(crate) const HANDLE_IN_USE: &str = "amqp:session:handle-in-use";
    pub(crate) const ILLEGAL_STATE: &str = "amqp:illegal-state";
    pub(crate) const INVALID_FIELD: &str = "amqp:invalid-field";
    pub(crate) const LINK_STOLEN: &str = "amqp:link:stolen";
    pub(crate) const MESSAGE_LOCK_LOST: &str = "com.microsoft:message-lock-lost";
    pub(crate) const NOT_ALLOWED: &str = "amqp:not-allowed";
    pub(crate) const NOT_FOUND: &str = "amqp:not-found";
    pub(crate) const NOT_IMPLEMENTED: &str = "amqp:not-implemented";
    pub(crate) const RESOURCE_LIMIT_EXCEEDED: &str = "amqp:resource-limit-exceeded";
    pub(crate) const UNATTACHED_HANDLE: &str = "amqp:session:unattached-handle";
    pub(crate) const UNAUTHORIZED_ACCESS: &str = "amqp:unauthorized-access";
}

/// A peer's error, by its scope.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The byte stream has lost its frame boundaries: close, and read no more.
    Framing(Error),
    /// Close the connection.
    Connection(Error),
    /// End the session of the frame.
    Session(Error),
    /// Detach the link with this handle on the session of the frame.
    Link(u32, Error),
}

impl Fault {
    pub(crate) fn framing(description: impl Into<String>) -> Self {
        Self::Framing(Error::new(condition::FRAMING_ERROR, description))
    }

    pub(crate) fn connection(condition: &'static str, description: impl Into<String>) -> Self {
        Self::Connection(Error::new(condition, description))
    }

    pub(crate) fn session(condition: &'static str, description: impl Into<String>) -> Self {
        Self::Session(Error::new(condition, description))
    }

    pub(crate) fn link(
        handle: u32,
        condition: &'static str,
        description: impl Into<String>,
    ) -> Self {
        Self::Link(handle, Error::new(condition, description))
    }

    /// Returns the fault of a performative that cannot be decoded.
    #[cold]
    pub(crate) fn decoding(performative: &str, error: DecodeError) -> Self {
        let text = format!("the {performative} cannot be decoded: {error}");
        Self::connection(condition::DECODE_ERROR, text)
    }
}

impl From<DecodeError> for Fault {
    fn from(error: DecodeError) -> Self {
        Self::connection(condition::DECODE_ERROR, error.to_string())
    }
}
