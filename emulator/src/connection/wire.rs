//! The stream of a peer, over TCP, TLS or WebSocket: how it is read and written by turns.
//!
//! Each kind is a type of its own, so that the turn over plain TCP costs what it would cost alone.

pub(crate) mod stream;

pub(crate) mod websocket;

pub(crate) mod line;
mod messages;
