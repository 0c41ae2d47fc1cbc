//! The part of an exploration that only thinks: which operations there are, what can go wrong at each, in which order that is
//! tried, and how what was found is told.
//!
//! It starts nothing, has no clock and asks no emulator. It is given the operation log of a run without faults, and the outcomes
//! of the runs that it plans.

mod effect;
mod plan;
mod report;
mod site;
mod token;

pub use effect::Effect;
pub use plan::{Options, Plan, pairs, plan, shuffled};
pub use report::{Coverage, Failure, Finding, Report, cluster_key, simpler, weaker};
pub use site::{Features, Site, sites, unstable_features};
pub use token::{Token, TokenError};
