//! What a started emulator is, whichever way it was started.
//!
//! A mode yields one of these: the doors to dial, and the value whose drop ends the emulator. Nothing
//! beyond this file knows which mode it was.

use std::net::SocketAddr;

use serde::Deserialize;
use servicebus_emulator::{Emulator, HTTP_PORT};

use crate::{process::ChildProcess, remote::RemoteRun};

/// An emulator that accepts connections.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) running: Running,
    pub(crate) endpoints: Endpoints,
    pub(crate) namespaces: Vec<Namespace>,
}

/// Keeps the emulator; dropping it ends the emulator and never blocks.
#[derive(Debug)]
pub(crate) enum Running {
    InProcess(Emulator),
    Process(ChildProcess),
    /// Nothing runs here; the drop removes what was made there.
    Remote(RemoteRun),
}

impl Running {
    /// Ends the emulator in good order and waits until it has ended.
    pub(crate) async fn stop(self) {
        match self {
            Self::InProcess(emulator) => emulator.stop().await,
            Self::Process(child) => child.stop().await,
            Self::Remote(remote) => remote.stop().await,
        }
    }
}

/// Where a bus listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// AMQP, without TLS but in mode [`Mode::Namespace`](crate::Mode::Namespace), where every door wants it.
    pub amqp: SocketAddr,
    /// AMQP over TLS.
    pub amqps: SocketAddr,
    /// HTTP: the control API, and AMQP over WebSocket.
    pub http: SocketAddr,
    /// HTTP over TLS, where [`Builder::web_ports`](crate::Builder::web_ports) asked for it. Every other port takes TLS
    /// too.
    pub https: Option<SocketAddr>,
}

/// The ports that a bus listens on beside those of AMQP.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WebPorts {
    pub(crate) http: u16,
    pub(crate) https: Option<u16>,
}

impl Default for WebPorts {
    fn default() -> Self {
        Self {
            http: HTTP_PORT,
            https: None,
        }
    }
}

/// A namespace and the strings that open it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) connection_string: String,
    pub(crate) admin_connection_string: String,
}
