//! What holds for the whole namespace of a topology; what is not set is not written, so that the emulator's default holds.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use servicebus_emulator::{broker::NamespaceSettings, config::setting_names};

/// The settings that were made.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    values: NamespaceSettings,
    /// Names of those that were set.
    set: BTreeSet<&'static str>,
}

impl Settings {
    /// Sets the setting of this name.
    pub(super) fn set(&mut self, name: &'static str, change: impl FnOnce(&mut NamespaceSettings)) {
        change(&mut self.values);
        self.set.insert(name);
    }

    /// The `Emulator` block of the namespace; empty when nothing was set.
    pub(super) fn document(&self) -> Map<String, Value> {
        let set = setting_names(&self.values).filter(|(name, _)| self.set.contains(name));
        set.map(|(name, value)| (name.to_owned(), value.into()))
            .collect()
    }
}
