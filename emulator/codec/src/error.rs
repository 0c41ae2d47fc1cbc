//! What can be wrong with an encoded value.

use thiserror::Error;

/// Why bytes are not the AMQP value that was due. Always the peer's fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum DecodeError {
    /// The input ends inside a value.
    #[error("value is truncated")]
    Truncated,
    /// A constructor of another type, or one that AMQP does not define.
    #[error("expected {expected}, found constructor 0x{code:02x}")]
    Unexpected {
        /// The type that was due.
        expected: &'static str,
        /// The constructor found.
        code: u8,
    },
    /// Lists, maps, arrays or descriptors inside each other past [`crate::MAX_DEPTH`].
    #[error("value is nested deeper than {} levels", crate::MAX_DEPTH)]
    TooDeep,
    /// A compound whose element count cannot fit into its size.
    #[error("compound claims more elements than it has bytes")]
    CountMismatch,
    /// Elements of lists, maps and arrays, beyond [`crate::MAX_ELEMENTS`].
    #[error(
        "value has {count} more elements; at most {} are allowed in all values of a message together",
        crate::MAX_ELEMENTS
    )]
    TooManyElements {
        /// Elements of the list, map or array that exceeds it.
        count: u32,
    },
    /// Elements without width in arrays, beyond [`crate::MAX_WIDTHLESS`].
    #[error(
        "array has {count} elements without width; at most {} are allowed in all arrays together",
        crate::MAX_WIDTHLESS
    )]
    TooManyWidthless {
        /// Elements of the array that exceeds it.
        count: u32,
    },
    /// A string or symbol that is not text.
    #[error("string is not valid UTF-8")]
    InvalidText,
}
