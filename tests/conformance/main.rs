//! `azservicebus`, the Rust SDK, against the bus of the harness's mode: what a client may rely on.
//!
//! One module per topic, whose head names the article of the service's documentation that it is taken
//! from, or the decision; a case is known by its path, as `cargo test` prints it. Everything is asserted through the
//! SDK; the harness gives a bus per test and moves its clock, so that no test waits for a lock or an expiry to run its
//! time. Many sends at once are a target of their own, `tests/many_sends`.

#![expect(
    clippy::large_futures,
    reason = "every future of the SDK is; the tests' own helpers box what would overflow a stack"
)]

mod client;

mod observed;

mod comparison;

mod doors;

mod send;

mod receive;

mod settle;

mod locks;

mod detach;

mod expiry;

mod dead_letter;

mod peek;

mod not_found;

mod scheduling;

mod deferral;

mod duplicates;

mod forwarding;

mod status;

mod limits;

mod idle;
mod idle_timeouts;

mod partitions;

mod topics;

mod sessions;

mod transactions;

mod rest;

mod table;
