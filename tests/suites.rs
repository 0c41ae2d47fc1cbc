//! Conformance, fidelity and the harness's own promises, linked once: `cargo test --test suites conformance::settle`.
//!
//! The suites of other SDKs, the image, and the simulation are targets of their own.

#![expect(
    clippy::large_futures,
    reason = "every future of the SDK is; the tests' own helpers box what would overflow a stack"
)]

mod conformance;
mod fidelity;
mod harness;
