//! Sessions: accepted, waited for, held, lost, and asked about (semantics §6, wire.md §5).

mod accept;
mod lost;
mod management;
mod non_exclusive;
mod order;
mod refusals;
mod state;
mod waiting;
