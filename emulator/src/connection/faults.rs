//! Scripted faults, where the operations are that they strike (harness.md §8).
//!
//! An event that a fault strikes is carried out as any other, before or after what the fault does, or not at all. What
//! has gathered for its entity is committed before it and it is committed alone, so that a fault touches nothing else.

mod deliveries;
mod later;
mod refuse;
mod sight;
mod state;
mod strike;

pub(crate) use state::{ConnectionFaults, link_of};
