//! Why a bus did not start.

use std::{io, path::PathBuf};

use crate::{
    control::ControlError, mode::ModeError, process::ReadyError, remote::RemoteError,
    topology::TopologyError,
};

/// Why a [`ServiceBus`](crate::ServiceBus) did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The mode that was asked for cannot run.
    #[error(transparent)]
    Mode(#[from] ModeError),
    /// The topology is missing or wrong.
    #[error(transparent)]
    Topology(#[from] TopologyError),
    /// The background runtime did not start.
    #[error("cannot start the harness's runtime: {0}")]
    Runtime(io::Error),
    /// Every address that was tried is taken.
    #[error("no free loopback address after {attempts} attempts; the last one said: {last}")]
    NoAddress {
        /// How many addresses were tried.
        attempts: usize,
        /// What the last attempt said.
        last: String,
    },
    /// The system has no loopback addresses beyond 127.0.0.1.
    #[error(
        "this system has no loopback address {address}: each bus needs one of its own; on macOS add aliases with `sudo ifconfig lo0 alias`"
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
    #[error("no emulator binary at {}, named by {named_by}", path.display())]
    NamedBinaryMissing {
        /// Where it was said to be.
        path: PathBuf,
        /// Who said so.
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
    Container(#[from] crate::ContainerError),
    /// An address cannot be listened on from which a container is to be reached.
    #[cfg(feature = "container")]
    #[error("cannot listen on {address}: {source}")]
    Forward {
        /// The address.
        address: std::net::Ipv4Addr,
        /// What the system said.
        source: io::Error,
    },
    /// A comparison observes the bus, and nothing can be put between it and its clients.
    #[error("cannot record for the comparison what clients and the bus say to each other: {0}")]
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
