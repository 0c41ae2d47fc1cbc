//! Scripted faults, where the operations are on which they take effect (harness.md §8).
//!
//! An event on which a fault takes effect is carried out as any other, before or after what the fault does, or not at all. What
//! has gathered for its entity is committed before it and it is committed alone, so that a fault touches nothing else.

mod deliveries;
mod inject;
mod later;
mod refuse;
mod sight;

pub(crate) use later::{ConnectionFaults, link_of};
