//! The part of an exploration that only thinks: which operations there are, what can go wrong at each, in which order that is
//! tried, and how what was found is told.
//!
//! It starts nothing, has no clock and asks no emulator. It is given the operation log of a run without faults, and the outcomes
//! of the runs that it plans.

mod effect;
mod plan;
mod progress;
mod report;
mod site;
mod token;

pub use effect::Effect;
pub use plan::{Options, Plan};
pub use progress::{Coming, Next, Outcome, Progress, Settings, Told};
pub use report::Failure;
pub use site::Site;
pub use token::{Token, TokenError};
