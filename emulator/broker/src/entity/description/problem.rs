//! One setting that is not legal, in words that every door repeats.

use std::fmt;

/// One setting that is out of bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The setting by its official name, for example `LockDuration`.
    pub property: &'static str,
    /// The value found.
    pub value: String,
    /// What would have been legal.
    pub allowed: String,
}

impl Problem {
    pub(crate) fn new(
        property: &'static str,
        value: impl Into<String>,
        allowed: impl Into<String>,
    ) -> Self {
        Self {
            property,
            value: value.into(),
            allowed: allowed.into(),
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            property,
            value,
            allowed,
        } = self;
        write!(formatter, "{property} is {value}; allowed: {allowed}")
    }
}
