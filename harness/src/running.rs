//! A started emulator, in any mode.
//!
//! A mode returns the connections to open, and a value whose drop ends the emulator. Nothing beyond this module depends on
//! the mode.

use std::{fmt, path::PathBuf, pin::Pin, sync::Arc};

use servicebus_config::ControlToken;
use servicebus_control_api::{Failure, NamespaceInfo};

use crate::{
    backend::Backend,
    endpoints::{Endpoints, Namespace},
    error::Error,
    file_lock::FileLock,
    liveness::Liveness,
    stream::Secure,
};

/// The version of the emulator that the harness requires.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An emulator that accepts connections.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) running: Box<dyn Running>,
    pub(crate) endpoints: Endpoints,
    pub(crate) namespaces: Vec<Namespace>,
    /// The certificate that clients over TLS must trust.
    pub(crate) ca_file: Option<PathBuf>,
    /// The lock of the only address, held until the emulator has ended.
    pub(crate) file_lock: Option<FileLock>,
}

impl Started {
    /// Returns the namespace of the test.
    pub(crate) fn first_namespace(&self) -> Result<&Namespace, Error> {
        let first = self.namespaces.first();
        first.ok_or_else(|| Error::start("the emulator serves no namespace"))
    }
}

/// Resolves when the emulator has ended.
pub(crate) type StopFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How an emulator ends before a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Termination {
    /// By a graceful shutdown.
    Stop,
    /// Like a killed process.
    Crash,
}

/// Resolves when the emulator has restarted, or with the error.
pub(crate) type RestartFuture = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// Resolves with a namespace, or with the text of the emulator's refusal.
pub(crate) type CreateFuture = Pin<Box<dyn Future<Output = Result<NamespaceInfo, String>> + Send>>;

/// An emulator in this process, which answers without HTTP. The futures must run on the background runtime.
pub(crate) trait OwnEmulator: fmt::Debug + Send + Sync {
    /// Returns its internal failures; `None` while it does not run.
    fn failures(&self) -> Option<Vec<Failure>>;

    /// Creates a namespace. `topology` is JSON in the official emulator's format.
    fn create_namespace(self: Arc<Self>, name: String, topology: String) -> CreateFuture;

    /// Removes a namespace, if it exists.
    fn remove_namespace(self: Arc<Self>, name: String) -> StopFuture;
}

/// Keeps the emulator running; a drop ends it and never blocks.
pub(crate) trait Running: fmt::Debug + Send + Sync {
    /// Returns the id of the emulator's process, if that can outlive this one.
    fn process(&self) -> Option<u32> {
        None
    }

    /// Returns access to a namespace that runs elsewhere, if it is one.
    fn remote(&self) -> Option<(Arc<dyn Backend>, Secure)> {
        None
    }

    /// Returns a handle that detects the emulator's end. For a namespace elsewhere it only knows that it does not answer.
    fn liveness(&self) -> Liveness {
        Liveness::default()
    }

    /// Returns the emulator, if it runs in this process.
    fn own_emulator(&self) -> Option<Arc<dyn OwnEmulator>> {
        None
    }

    /// Returns the token that its control API requires of clients beyond loopback, if it accepts any.
    fn control_token(&self) -> Option<ControlToken> {
        None
    }

    /// Returns the first namespace of an emulator in this process, for an exploration.
    #[cfg(feature = "explore")]
    fn exploration_namespace(&self) -> Option<servicebus_emulator::ConductedNamespace> {
        None
    }

    /// Ends the emulator and restarts it at the same addresses, with its data directory. Must run on the background runtime.
    fn restart(&self, _termination: Termination) -> RestartFuture {
        Box::pin(async {
            Err(Error::start(
                "the harness restarts only emulators that it has started",
            ))
        })
    }

    /// Shuts the emulator down gracefully and waits for its end.
    fn stop(self: Box<Self>) -> StopFuture;
}
