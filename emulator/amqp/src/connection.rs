//! The engine: one peer's connection from its first byte to its last.
//!
//! `state.rs` holds the state and the calls that only look at it; each verb of the protocol has a file
//! of its own beside it. Invariant: after `ConnectionState::Closing` or `ConnectionState::Closed` is entered there are no
//! sessions, so that every later intent finds nothing to act on.

mod state;

mod attach;
mod begin;
mod close;
mod deliver;
mod detach;
mod disposition;
mod flow;
mod handshake;
mod outbox;
mod receive;
mod sessions;
mod timeout;
mod transfer;

pub use deliver::Delivery;
pub use state::Connection;

#[cfg(test)]
mod tests;
