//! What a started emulator is, whichever way it was started.
//!
//! A mode yields one of these: the doors to dial, and the value whose drop ends the emulator. Nothing
//! beyond this file knows which mode it was.

use std::net::SocketAddr;

use serde::Deserialize;
use servicebus_emulator::Emulator;

use crate::process::ChildProcess;

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
}

impl Running {
    /// Ends the emulator in good order and waits until it has ended.
    pub(crate) async fn stop(self) {
        match self {
            Self::InProcess(emulator) => emulator.stop().await,
            Self::Process(child) => child.stop().await,
        }
    }
}

/// Where a bus listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// AMQP, without TLS.
    pub amqp: SocketAddr,
    /// HTTP: the control API.
    pub http: SocketAddr,
}

/// A namespace and the strings that open it.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Namespace {
    pub(crate) name: String,
    pub(crate) connection_string: String,
    pub(crate) admin_connection_string: String,
}
