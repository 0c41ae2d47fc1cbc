//! Why a topology is missing or wrong.

use std::path::PathBuf;

use servicebus_emulator::{config::ConfigError, import::ImportError};

/// Why a topology cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TopologyError {
    /// No file is there.
    #[error(
        "no topology file at {}; {advice}",
        tried.join(" nor at ")
    )]
    Missing {
        /// The paths that were tried, in order.
        tried: Vec<String>,
        /// What is there instead, or where files are looked for.
        advice: String,
    },
    /// The file is there and cannot be read.
    #[error("cannot read the topology file {}: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A comparison runs, and its recorder does not say what the topology is to be.
    #[error("cannot ask the comparison for the topology: {0}")]
    Observer(std::io::Error),
    /// The text was read and is wrong; every problem is listed.
    #[error("the topology is invalid:\n{0}")]
    Invalid(ConfigError),
    /// A template cannot be understood; every problem is listed.
    #[error("the template {} cannot be imported:\n{source}", path.display())]
    Template {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ImportError,
    },
    /// The topology of a running namespace was taken, and the builder was to add to it.
    #[error(
        "the topology of a running namespace cannot be extended by the builder: change the namespace before it is exported"
    )]
    ExtendedExport,
    /// A file was named, and the builder was to add to it.
    #[error("the topology file {} cannot be extended by the builder: write it all in one of the two", path.display())]
    Extended {
        /// The file.
        path: PathBuf,
    },
}
