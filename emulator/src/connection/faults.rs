//! Applies scripted faults to the operations that they match (harness.md §8).
//!
//! A matched event is handled like any other, before or after the fault's effect, or not at all. The collected work of its
//! entity is committed before it, and the event is committed alone, so that a fault affects nothing else.

mod delays;
mod deliveries;
mod inject;
mod match_context;
mod refuse;

pub(crate) use delays::{ConnectionFaults, link_of};
