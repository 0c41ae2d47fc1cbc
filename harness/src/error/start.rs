//! Why a namespace did not start.

use std::{io, net::Ipv4Addr, path::PathBuf, time::Duration};

use super::{Error, control::ControlError, remote::RemoteError, topology::TopologyError};
use crate::{
    file_lock::FileLockError,
    liveness::described,
    text,
    variables::{ADDRESS_VARIABLE, MODE_VARIABLE, WITHIN_VARIABLE},
};

/// The version an emulator must have: the harness speaks to no other.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Why a [`ServiceBus`](crate::ServiceBus) did not start.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StartError {
    /// The mode that was asked for cannot run.
    #[error(transparent)]
    Mode(#[from] ModeError),
    /// The topology is missing or wrong.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The environment names no number of seconds.
    #[error("{WITHIN_VARIABLE} is \"{value}\"; allowed: seconds, such as 20 or 0.5")]
    Within {
        /// What the variable holds.
        value: String,
    },
    /// A message that the topology declares could not be put where it belongs.
    #[error("cannot put the messages of the topology into the namespace: {0}")]
    Messages(#[source] Box<Error>),
    /// The background runtime did not start.
    #[error("cannot start the harness's runtime: {0}")]
    Runtime(io::Error),
    /// Every address that was tried is taken.
    #[error(
        "no free loopback address after {attempts} attempts; the last one said: {last}; a program that listens at 0.0.0.0, such as another broker, has its port at every address: end it, or have other ports for HTTP by `ports`"
    )]
    NoAddress {
        /// How many addresses were tried.
        attempts: usize,
        /// What the last attempt said.
        last: String,
    },
    /// The ports of the only address are taken.
    #[error(
        "the ports of {address} are taken for {} by now: {last}; namespaces have no other address here, so end what listens there (another emulator, a message broker), or name another loopback address in {ADDRESS_VARIABLE}",
        text::seconds(*within)
    )]
    Taken {
        /// The address.
        address: Ipv4Addr,
        /// How long was waited.
        within: Duration,
        /// What the last attempt said.
        last: String,
    },
    /// Another emulator has the only address.
    #[error(
        "{0}; there is no other address here: the namespaces of a process share one emulator, processes take turns, and a test waits in vain that holds two which cannot share one (of another mode, binary, seed or ports, or with keys or several namespaces of their own)"
    )]
    FileLock(FileLockError),
    /// The environment names something else than an address for all namespaces.
    #[error(
        "{ADDRESS_VARIABLE} is \"{value}\"; allowed: a loopback address of IPv4, such as 127.0.0.1"
    )]
    NamedAddress {
        /// What the variable holds.
        value: String,
    },
    /// The environment names an address for all namespaces that the system does not have.
    #[error(
        "this system has no loopback address {address}, which {ADDRESS_VARIABLE} names; 127.0.0.1 is always there"
    )]
    NamedAddressMissing {
        /// The address.
        address: Ipv4Addr,
    },
    /// The system has no loopback addresses beside 127.0.0.1, from which a container is reached.
    #[cfg(feature = "container")]
    #[error(
        "this system has no loopback address {address}, and a container is reached by one for each namespace; the modes in-process and process do with 127.0.0.1 alone"
    )]
    NoLoopback {
        /// The address that was tried.
        address: String,
    },
    /// The emulator library refused to start.
    #[error("the emulator did not start: {0}")]
    Emulator(servicebus_emulator::StartError),
    /// No emulator binary was found.
    #[error(
        "{name} is neither beside the tests ({}) nor on the PATH; run `cargo build -p servicebus-emulator`, or name it in SERVICEBUS_EMULATOR_BIN",
        beside.display()
    )]
    NoBinary {
        /// What was searched for.
        name: &'static str,
        /// The build directory that was searched first.
        beside: PathBuf,
    },
    /// The binary that was named is not there.
    #[error(
        "no emulator binary at {}, named by {named_by}; run `cargo build -p servicebus-emulator`, and name none to have it found",
        path.display()
    )]
    NamedBinaryMissing {
        /// Where it was said to be.
        path: PathBuf,
        /// The variable or option that named it.
        named_by: &'static str,
    },
    /// The configuration for the child could not be written.
    #[error("cannot write the topology for the emulator process: {0}")]
    TemporaryFile(io::Error),
    /// The child could not be started at all.
    #[error("cannot run {}: {source}", binary.display())]
    Spawn {
        /// The binary.
        binary: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The child did not become ready.
    #[error(transparent)]
    Ready(#[from] ReadyError),
    /// There is no container.
    #[cfg(feature = "container")]
    #[error(transparent)]
    Container(#[from] super::container::ContainerError),
    /// An address cannot be listened on from which a container is to be reached.
    #[cfg(feature = "container")]
    #[error("cannot listen on {address}: {source}")]
    Forward {
        /// The address.
        address: Ipv4Addr,
        /// What the system said.
        source: io::Error,
    },
    /// A comparison observes the namespace, and nothing can be put between it and its clients.
    #[error(
        "cannot record for the comparison what clients and the namespace say to each other: {0}"
    )]
    Recorder(io::Error),
    /// A namespace of its own could not be made in an emulator that is shared.
    #[error("cannot make a namespace in the shared emulator: {0}")]
    Namespace(ControlError),
    /// The namespace that was named cannot be worked in, or not with this topology.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The emulator serves no namespace.
    #[error("the emulator serves no namespace")]
    NoNamespace,
}

/// Why a mode was not chosen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ModeError {
    /// The environment names a mode that does not exist.
    #[error(
        "{MODE_VARIABLE} is \"{value}\", which is no mode; allowed are in-process, process, container and namespace"
    )]
    Unknown {
        /// What the variable holds.
        value: String,
    },
    /// The mode was left out when the harness was built.
    #[cfg(not(feature = "container"))]
    #[error(
        "mode \"container\" needs the feature `container` of servicebus-harness, which is off; turn it on in Cargo.toml: servicebus-harness = {{ …, features = [\"container\"] }}"
    )]
    FeatureOff,
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
