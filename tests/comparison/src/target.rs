//! Where the namespaces of a suite run.

use std::{
    ffi::{OsStr, OsString},
    path::Path,
    process::Command,
};

use serde_json::Value;
use servicebus_harness::{CONNECTION_STRING_VARIABLE, MODE_VARIABLE, Mode};

use crate::trust::AUTHORITIES_VARIABLE;

/// One side of a comparison: what the environment of every case says.
#[derive(Debug, Clone)]
pub struct Target {
    name: String,
    mode: Mode,
    variables: Vec<(OsString, OsString)>,
    changes: Value,
}

impl Target {
    /// The emulator of this harness, in the process of each case.
    pub fn emulator() -> Self {
        Self::new("emulator", Mode::InProcess)
    }

    /// The emulator's binary, as a child of each case.
    pub fn process() -> Self {
        Self::new("emulator process", Mode::Process)
    }

    /// A namespace that is there: of the service, or of another emulator.
    pub fn namespace(connection_string: &str) -> Self {
        Self::new("namespace", Mode::Namespace)
            .variable(CONNECTION_STRING_VARIABLE, connection_string)
    }

    /// Calls it so in what is printed.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Says more in the environment of every case.
    pub fn variable(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.push((name.into(), value.into()));
        self
    }

    /// Trusts this authority, in PEM, instead of those of the system.
    pub fn trusting(self, authority: &Path) -> Self {
        self.variable(AUTHORITIES_VARIABLE, authority)
    }

    /// Makes the emulator another one than the cases ask for, to see whether a comparison notices: these values, by
    /// kind of entity (`Queue`, `Topic`, `Subscription`, `Rule`) or for the namespace (`Emulator`), take the place of
    /// what topologies say.
    pub fn changed(mut self, changes: &Value) -> Self {
        self.changes = changes.clone();
        self
    }

    /// Returns what it is called.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether several cases can run at the same time.
    pub(super) fn is_shared(&self) -> bool {
        self.mode == Mode::Namespace
    }

    /// The file of the authorities to trust, if clients come over TLS and must be let trust the recorder too: what the
    /// target says of it, where it says something.
    pub(super) fn authorities(&self) -> Option<Option<&OsStr>> {
        let said = self.variables.iter().rev();
        let mut said = said.filter(|(name, _)| name == AUTHORITIES_VARIABLE);
        self.is_shared()
            .then(|| said.next().map(|(_, file)| file.as_os_str()))
    }

    /// What is changed of the topologies of its cases.
    pub(crate) fn changes(&self) -> &Value {
        &self.changes
    }

    pub(super) fn set(&self, command: &mut Command) {
        command.env(MODE_VARIABLE, self.mode.to_string());
        command.env_remove(CONNECTION_STRING_VARIABLE);
        for (name, value) in &self.variables {
            command.env(name, value);
        }
    }

    fn new(name: &str, mode: Mode) -> Self {
        Self {
            name: name.to_owned(),
            mode,
            variables: Vec::new(),
            changes: Value::Null,
        }
    }
}
