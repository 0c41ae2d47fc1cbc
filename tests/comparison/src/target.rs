//! Where the namespaces of a suite run.
//!
//! The authorities that the clients of a case trust: those of the system, and that of the recorder.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use servicebus_harness::{CONNECTION_STRING_VARIABLE, MODE_VARIABLE, Mode};

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
        let authority_files = self.variables.iter().rev();
        let mut authority_files = authority_files.filter(|(name, _)| name == AUTHORITIES_VARIABLE);
        self.is_shared()
            .then(|| authority_files.next().map(|(_, file)| file.as_os_str()))
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

/// The environment variable by which SDKs and the harness find the authorities to trust.
pub(super) const AUTHORITIES_VARIABLE: &str = "SSL_CERT_FILE";

/// Characters in a line of PEM (RFC 7468 §2).
const LINE: usize = 64;

/// Writes a file with those of a file, else those that the environment or the system names, and with the recorder's own.
pub(super) fn write(to: &Path, authority_files: Option<&OsStr>) -> io::Result<()> {
    let mut authorities = match authority_files {
        Some(file) => fs::read_to_string(file)?,
        None => of_system(),
    };
    // What it is for does not count, only its authority.
    let recorder =
        servicebus_emulator::issue_certificate("localhost".to_owned()).map_err(io::Error::other)?;
    authorities += "\n";
    authorities += &recorder.authority;
    fs::write(to, authorities)
}

/// Those that the environment names, else those of the system.
fn of_system() -> String {
    let found = rustls_native_certs::load_native_certs();
    found.certs.iter().map(|found| pem(found)).collect()
}

fn pem(certificate: &[u8]) -> String {
    let text = STANDARD.encode(certificate);
    let lines = text.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    let lines = Vec::from_iter(lines).join("\n");
    format!("-----BEGIN CERTIFICATE-----\n{lines}\n-----END CERTIFICATE-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_written_in_lines() {
        let text = pem(&[0; 60]);
        let lengths = text.lines().map(str::len);
        assert_eq!(Vec::from_iter(lengths), [27, 64, 16, 25]);
    }
}
