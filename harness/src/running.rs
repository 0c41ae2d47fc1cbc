//! What a started emulator is, whichever way it was started.
//!
//! A mode yields one of these: the connections to dial, and the value whose drop ends the emulator. Nothing
//! beyond this file knows which mode it was.

use std::{fmt, path::PathBuf, pin::Pin, sync::Arc};

use servicebus_config::ControlToken;
use servicebus_control_api::Failure;

use crate::{
    backend::Backend,
    endpoints::{Endpoints, Namespace},
    error::Error,
    file_lock::FileLock,
    liveness::Liveness,
    stream::Secure,
};

/// The version an emulator must have: the harness speaks to no other.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// An emulator that accepts connections.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) running: Box<dyn Running>,
    pub(crate) endpoints: Endpoints,
    pub(crate) namespaces: Vec<Namespace>,
    /// The certificate that clients over TLS must trust.
    pub(crate) ca_file: Option<PathBuf>,
    /// Of the only address, until the emulator has ended.
    pub(crate) file_lock: Option<FileLock>,
}

impl Started {
    /// The namespace that a test gets.
    pub(crate) fn first_namespace(&self) -> Result<&Namespace, Error> {
        let first = self.namespaces.first();
        first.ok_or_else(|| Error::start("the emulator serves no namespace"))
    }
}

/// Ends when the emulator has ended.
pub(crate) type Stopped = Pin<Box<dyn Future<Output = ()> + Send>>;

/// How an emulator ends that is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    /// In good order.
    Stop,
    /// As a process that is killed.
    Crash,
}

/// Resolves when the emulator is there again, or says why it is not.
pub(crate) type Restarted = Pin<Box<dyn Future<Output = Result<(), Error>> + Send>>;

/// An emulator of this process.
pub(crate) trait OwnEmulator: fmt::Debug + Send + Sync {
    /// What has failed inside; none while it does not run.
    fn failures(&self) -> Option<Vec<Failure>>;
}

/// Keeps the emulator; dropping it ends the emulator and never blocks.
pub(crate) trait Running: fmt::Debug + Send + Sync {
    /// The id of the process that the emulator is, if that can go on when this one has ended.
    fn process(&self) -> Option<u32> {
        None
    }

    /// How a namespace that runs elsewhere is asked and reached, if it is one.
    fn remote(&self) -> Option<(Arc<dyn Backend>, Secure)> {
        None
    }

    /// Lets others see whether the emulator lives. Of one that runs elsewhere nothing is seen but that it does not answer.
    fn liveness(&self) -> Liveness {
        Liveness::default()
    }

    /// An emulator of this process, which tells without being asked over HTTP what has failed inside.
    fn own(&self) -> Option<Arc<dyn OwnEmulator>> {
        None
    }

    /// What its control API wants to see of clients beyond its loopback, if it may see any.
    fn control_token(&self) -> Option<ControlToken> {
        None
    }

    /// The first namespace of an emulator of this process, as an exploration conducts it.
    #[cfg(feature = "explore")]
    fn conducted(&self) -> Option<servicebus_emulator::ConductedNamespace> {
        None
    }

    /// Ends the emulator and starts it again at the same addresses, with what its data directory holds. To be awaited on the
    /// background runtime.
    fn restart(&self, _ending: Ending) -> Restarted {
        Box::pin(async {
            Err(Error::start(
                "what runs there cannot be started again from here",
            ))
        })
    }

    /// Ends the emulator in good order and waits until it has ended.
    fn stop(self: Box<Self>) -> Stopped;
}
