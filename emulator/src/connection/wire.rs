//! The stream of a peer, whatever it goes through: how it is read and written by turns.
//!
//! Each kind is a type of its own, so that the turn over plain TCP costs what it would cost alone.

pub(crate) mod stream;

mod plain;
mod secured;

pub(crate) mod websocket;

pub(crate) mod line;
mod messages;
