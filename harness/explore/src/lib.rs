//! The pure part of an exploration: finds operations and possible faults, plans the order of runs, and reports the results.
//!
//! It starts nothing, has no clock and does not use an emulator. Its input is the operation log of a run without faults, and
//! the outcomes of the runs that it plans.

mod effect;
mod fault_point;
mod plan;
mod progress;
mod report;
mod token;

pub use effect::Effect;
pub use fault_point::FaultPoint;
pub use plan::{Options, Plan};
pub use progress::{Next, Outcome, PlannedRun, Progress, ProgressReport, Settings};
pub use report::Failure;
pub use token::{Token, TokenError};
