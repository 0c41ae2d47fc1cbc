//! `azservicebus`, the Rust SDK, against the bus of the harness's mode: what a client may rely on.
//!
//! One module per topic, whose head names the article of the service's documentation that it is taken
//! from, or the decision; a case is known by its path, as `cargo test` prints it. Everything is asserted through the
//! SDK; the harness gives a bus per test and moves its clock, so that no test waits for a lock or an expiry to run its
//! time.

mod client;
mod comparison;
mod deferral;
mod detach;
mod duplicates;
mod expiry;
mod forwarding;
mod idle_timeouts;
mod limits;
mod locks;
mod many_sends;
mod observed;
mod partitions;
mod peek;
mod receive;
mod rest;
mod scheduling;
mod send;
mod sessions;
mod settle;
mod status;
mod table;
mod topics;
mod transactions;
mod transports;
