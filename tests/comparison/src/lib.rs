//! One suite of tests against two targets, side by side.
//!
//! A suite is a test binary whose tests run on this harness; a target is where its namespaces run: an emulator, or a
//! namespace by its connection string. Every case runs in a process of its own and writes down what it observes: the
//! harness's sends, receives and assertions by themselves, what else the suite gives to [`observe`], and what its clients
//! and the namespace say to each other, which a recorder between them writes down. The [`Comparison`] of two runs goes case by
//! case and observation by observation, in order, with ids, times and hosts normalised; a [`Ledger`] holds the
//! differences that are known.
//!
//! ```no_run
//! use servicebus_comparison::{Comparison, Ledger, Suite, Target};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let suite = Suite::of_cargo("conformance")?.only(["settle::"]);
//! let left = suite.run(&Target::emulator())?;
//! let right = suite.run(&Target::namespace(&std::env::var("SERVICEBUS_CONNECTION_STRING")?))?;
//! let ledger = Ledger::read("tests/conformance/ledger.json".as_ref())?;
//! let comparison = Comparison::new(left, right, &ledger);
//! print!("{comparison}");
//! assert!(comparison.is_as_known());
//! # Ok(())
//! # }
//! ```

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "AMQP values of other types are shown as they are"
)]

mod changes;
mod difference;
mod ledger;
mod normal;
mod outcome;
mod recorder;
mod report;
mod suite;
mod target;

use std::hash::{BuildHasher as _, RandomState};

pub use servicebus_harness::observe;

pub use difference::{Compared, Comparison, Difference};
pub use ledger::{Known, Ledger, LedgerError};
pub use normal::normalised;
pub use outcome::Observation;
pub use outcome::{CaseRun, Outcome};
pub use suite::{Run, Suite, SuiteError};
pub use target::Target;

/// Draws a number that differs between processes and calls; nothing more is asked of it.
fn random_number() -> u64 {
    // The standard library keys every map differently: random enough, and no dependency.
    RandomState::new().hash_one(std::process::id())
}
