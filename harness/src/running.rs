//! What a started emulator is, whichever way it was started.
//!
//! A mode yields one of these: the connections to dial, and the value whose drop ends the emulator. Nothing
//! beyond this file knows which mode it was.

use std::{net::SocketAddr, path::PathBuf};

use servicebus_emulator::{ControlToken, Emulator, HTTP_PORT, NamespaceInfo};

#[cfg(feature = "container")]
use crate::container::ContainerBus;
use crate::{
    file_lock::FileLock, keys::Secret, liveness::Liveness, process::ChildProcess,
    remote::RemoteRun, shared::Share,
};

/// An emulator that accepts connections.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) running: Running,
    pub(crate) endpoints: Endpoints,
    pub(crate) namespaces: Vec<Namespace>,
    /// The certificate that clients over TLS must trust.
    pub(crate) ca_file: Option<PathBuf>,
}

impl Started {
    /// Keeps a file lock until the emulator has ended.
    pub(crate) fn with_file_lock(mut self, file_lock: Option<FileLock>) -> Self {
        if let Some(file_lock) = file_lock {
            let emulator = Box::new(self.running);
            self.running = Running::WithFileLock(WithFileLock {
                emulator,
                _file_lock: file_lock,
            });
        }
        self
    }
}

/// Keeps the emulator; dropping it ends the emulator and never blocks.
#[derive(Debug)]
pub(crate) enum Running {
    InProcess(Emulator),
    Process(ChildProcess),
    /// A part of one that others use too.
    Shared(Share),
    /// One that has the only address.
    WithFileLock(WithFileLock),
    #[cfg(feature = "container")]
    Container(ContainerBus),
    /// Nothing runs here; the drop removes what was made there.
    Remote(RemoteRun),
}

impl Running {
    /// Returns the id of the process that the emulator is, if that can go on when this one has ended.
    pub(crate) fn process(&self) -> Option<u32> {
        match self {
            // One that goes on at the only address would be in the way of all others.
            Self::InProcess(_) | Self::Remote(_) | Self::WithFileLock(_) => None,
            Self::Process(child) => Some(child.id()),
            // It ends with its last user, and the namespace before.
            Self::Shared(_) => None,
            #[cfg(feature = "container")]
            Self::Container(_) => None,
        }
    }

    /// Returns the namespace that runs elsewhere, if it is one.
    pub(crate) fn remote(&self) -> Option<&RemoteRun> {
        match self {
            Self::Remote(remote) => Some(remote),
            Self::InProcess(_) | Self::Process(_) | Self::Shared(_) | Self::WithFileLock(_) => None,
            #[cfg(feature = "container")]
            Self::Container(_) => None,
        }
    }

    /// Lets others see whether the emulator lives.
    pub(crate) fn liveness(&self) -> Liveness {
        match self {
            // Of one that runs elsewhere nothing is seen but that it does not answer.
            Self::InProcess(_) | Self::Remote(_) => Liveness::default(),
            Self::Process(child) => child.liveness(),
            Self::Shared(share) => share.liveness(),
            Self::WithFileLock(file_lock) => file_lock.emulator.liveness(),
            #[cfg(feature = "container")]
            Self::Container(bus) => bus.liveness(),
        }
    }

    /// Returns what its control API wants to see of clients beyond its loopback, if it may see any.
    pub(crate) fn control_token(&self) -> Option<ControlToken> {
        match self {
            Self::InProcess(_)
            | Self::Process(_)
            | Self::Shared(_)
            | Self::WithFileLock(_)
            | Self::Remote(_) => None,
            #[cfg(feature = "container")]
            Self::Container(bus) => bus.control_token(),
        }
    }

    /// Ends the emulator in good order and waits until it has ended.
    pub(crate) async fn stop(self) {
        match self {
            Self::InProcess(emulator) => emulator.stop().await,
            Self::Process(child) => child.stop().await,
            Self::Shared(share) => share.stop().await,
            Self::WithFileLock(file_lock) => Box::pin(file_lock.emulator.stop()).await,
            #[cfg(feature = "container")]
            Self::Container(bus) => bus.stop().await,
            Self::Remote(remote) => remote.stop().await,
        }
    }
}

/// An emulator at the only address.
#[derive(Debug)]
pub(crate) struct WithFileLock {
    emulator: Box<Running>,
    /// Released when the emulator has been told to end.
    _file_lock: FileLock,
}

/// Where a namespace listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// AMQP, without TLS but in mode [`Mode::Namespace`](crate::Mode::Namespace), where every port wants it.
    pub amqp: SocketAddr,
    /// AMQP over TLS.
    pub amqps: SocketAddr,
    /// HTTP: the control API, and AMQP over WebSocket.
    pub http: SocketAddr,
    /// HTTP over TLS, where [`Builder::ports`](crate::Builder::ports) asked for it. Every other port takes TLS
    /// too.
    pub https: Option<SocketAddr>,
}

/// The ports that a namespace listens on beside those of AMQP.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HttpPorts {
    pub(crate) http: u16,
    pub(crate) https: Option<u16>,
}

impl Default for HttpPorts {
    fn default() -> Self {
        Self {
            http: HTTP_PORT,
            https: None,
        }
    }
}

/// A namespace and the strings that open it.
#[derive(Debug, Clone)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) connection_string: Secret,
    pub(crate) admin_connection_string: Secret,
}

impl From<NamespaceInfo> for Namespace {
    fn from(info: NamespaceInfo) -> Self {
        Self {
            name: info.name,
            connection_string: info.connection_string.into(),
            admin_connection_string: info.admin_connection_string.into(),
        }
    }
}
