//! The AMQP 1.0 type system, implemented by hand.
//!
//! Both pure crates use it: [`Reader`] reads encoded values without copying or allocating, [`Writer`] appends them to a
//! buffer. The crate knows constructors and lengths, and nothing about frames, links, messages or queues. Every read is
//! bounded by its input: a length beyond the end, an unexpected type and nesting beyond [`MAX_DEPTH`] are errors, never
//! panics or allocations.
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
