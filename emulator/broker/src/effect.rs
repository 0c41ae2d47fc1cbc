//! The only way out of the core: what the shell has to do because of an operation.

use crate::ConsumerId;

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Something is assigned to this consumer: its owner should take it. Said once until the owner takes, and
    /// again for what comes after it has set its credit with nothing assigned.
    Wake(ConsumerId),
}

/// Effects in the order in which they came about.
pub type Effects = Vec<Effect>;
