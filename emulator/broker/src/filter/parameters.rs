//! The values that a filter or an action names with `@`.

use super::properties::same_name;
use super::value::{Encoded, Value};

/// Parameters of a filter or action in the order given, as their client wrote them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Parameters {
    entries: Vec<(Box<str>, Encoded)>,
}

impl Parameters {
    /// None.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter; its name may begin with `@`.
    pub fn add(&mut self, name: &str, value: Encoded) {
        self.entries.push((name.into(), value));
    }

    /// The parameters with their names as given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Encoded)> {
        self.entries.iter().map(|(name, value)| (&**name, value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The value of a parameter whose name comes without the `@`. The last of a name counts.
    pub(crate) fn get(&self, name: &str) -> Option<Value<'static>> {
        let matches = |given: &str| same_name(given.strip_prefix('@').unwrap_or(given), name);
        let (_, value) = self
            .entries
            .iter()
            .rev()
            .find(|(given, _)| matches(given))?;
        Some(value.value().into_owned())
    }
}
