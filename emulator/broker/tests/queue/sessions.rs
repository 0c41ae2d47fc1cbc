//! Message sessions (semantics §6; decisions D2, D10, D17, D27).

mod accepting;
mod deferred;
mod elsewhere;
mod listing;
mod losing;
mod non_exclusive;
mod order;
mod sending;
mod state;
mod waiting;
