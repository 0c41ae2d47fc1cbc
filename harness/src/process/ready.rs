//! The ready line, and every way in which it can fail to come.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use servicebus_control_api::Ready;

use crate::{output::described, running::Endpoints, text};

/// The version an emulator must have: the harness speaks to no other.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Where the emulator listens.
pub(crate) fn endpoints(ready: &Ready) -> Endpoints {
    Endpoints {
        amqp: ready.amqp,
        // It was asked for; a program of another version may not know that.
        amqps: ready.amqps.unwrap_or(ready.amqp),
        http: ready.http,
        https: ready.https,
    }
}

/// Why a child did not become a namespace.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadyError {
    /// It said nothing in time.
    #[error("{} did not become ready within {}; {}", binary.display(), text::seconds(*within), described(output))]
    Late {
        /// The binary.
        binary: PathBuf,
        /// How long it had.
        within: Duration,
        /// The last lines of its standard error.
        output: String,
    },
    /// It ended first.
    #[error("{} ended before it was ready ({status}); {}", binary.display(), described(output))]
    Ended {
        /// The binary.
        binary: PathBuf,
        /// How it ended.
        status: String,
        /// The last lines of its standard error.
        output: String,
    },
    /// It said something else.
    #[error("the emulator's first line is not a ready line ({reason}): {line}")]
    Malformed {
        /// What it printed.
        line: String,
        /// What is wrong with it.
        reason: String,
    },
    /// It is of another version.
    #[error(
        "{} is version {found}, this harness needs {VERSION}; run `cargo build -p servicebus-emulator` in the workspace, or `cargo install servicebus-emulator --version {VERSION}`",
        binary.display()
    )]
    Version {
        /// The binary.
        binary: PathBuf,
        /// The version it says it has.
        found: String,
    },
}

pub(crate) fn parse(line: &str) -> Result<Ready, ReadyError> {
    serde_json::from_str(line).map_err(|error| ReadyError::Malformed {
        line: line.to_owned(),
        reason: error.to_string(),
    })
}

pub(crate) fn check_version(binary: &Path, found: &str) -> Result<(), ReadyError> {
    if found == VERSION {
        return Ok(());
    }
    Err(ReadyError::Version {
        binary: binary.to_owned(),
        found: found.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_of_the_contract_is_understood() {
        let line = r#"{"event":"ready","version":"0.1.0","pid":4711,"amqp":"127.0.0.1:5672",
            "amqps":"127.0.0.1:5671","http":"127.0.0.1:5300","https":null,"ca_certificate":null,"namespaces":[{"name":"sbemulatorns",
            "connection_string":"Endpoint=sb://localhost;","admin_connection_string":"Endpoint=sb://localhost:5300;"}]}"#;
        let ready = parse(line).unwrap();
        assert_eq!(endpoints(&ready).http.port(), 5300);
        assert_eq!(ready.namespaces[0].name, "sbemulatorns");
    }

    #[test]
    fn another_version_says_which_command_to_run() {
        let error = check_version(Path::new("/bin/servicebus-emulator"), "9.9.9").unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("/bin/servicebus-emulator is version 9.9.9"),
            "{text}"
        );
        assert!(
            text.contains("`cargo build -p servicebus-emulator`"),
            "{text}"
        );
    }
}
