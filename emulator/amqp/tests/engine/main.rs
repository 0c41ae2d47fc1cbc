//! The engine against a scripted peer: raw frames in, raw frames out, no sockets and no sleeping.

mod peer;

mod attach;
mod contract;
mod deliveries;
mod dispositions;
mod flow;
mod fragments;
mod frame_size;
mod handshake;
mod held;
mod hostile;
mod large;
mod offences;
mod sessions;
mod termini;
mod timeouts;
mod transfers;
