//! Listens, and bounds how many peers there are. What a peer speaks is told by its first bytes, on every port.

mod listeners;
mod peers;
mod protocol;
mod secure;
#[cfg(feature = "simulation")]
pub(crate) mod simulated;
mod web;

pub(crate) use listeners::open;
