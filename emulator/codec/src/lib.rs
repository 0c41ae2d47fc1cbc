//! The AMQP 1.0 type system, read and written by hand.
//!
//! This is the alphabet that both pure crates share: [`Reader`] walks encoded values without copying
//! or allocating, [`Writer`] appends them to a buffer. It knows constructors and lengths, and nothing
//! about frames, links, messages or queues. Every read is bounded by its input: a length that
//! points past the end, a type where another is due and nesting past [`MAX_DEPTH`] are errors, never
//! panics and never allocations.
//!
//! Source: OASIS AMQP 1.0, part 1 (types).

mod code;
mod reader;
mod value;
mod writer;

pub use code::symbol_constructor;
pub use reader::{
    Array, Compound, Descriptor, ElementBudget, Fields, MAX_DEPTH, MAX_ELEMENTS, MAX_WIDTHLESS,
    Reader,
};
pub use value::DecodeError;
pub use value::Value;
pub use writer::{Mark, Writer};
