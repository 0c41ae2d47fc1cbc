//! The pure part of an exploration: finds operations and possible faults, plans the order of runs, and reports the results.
//!
//! It starts nothing, has no clock and does not use an emulator. Its input is the operation log of a run without faults, and
//! the outcomes of the runs that it plans.

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
