//! The doors of a running bus, as every handle holds them.
//!
//! Handles share the doors and not the emulator: the emulator ends with its [`ServiceBus`](crate::ServiceBus),
//! whatever handles are still around. All work happens on the background runtime.

use std::{future::Future, sync::Arc};

use crate::{amqp::Amqp, background::Background, catalog::Catalog, control::Control};

/// What a handle needs to act on a bus.
#[derive(Debug)]
pub(crate) struct Doors {
    pub(crate) background: Arc<Background>,
    pub(crate) amqp: Amqp,
    pub(crate) control: Control,
    /// What the bus was started with.
    pub(crate) declared: Catalog,
}

impl Doors {
    /// Returns what the bus holds now, as far as it says so.
    pub(crate) async fn catalog(&self) -> Catalog {
        Catalog::fetch(&self.control)
            .await
            .unwrap_or_else(|| self.declared.clone())
    }

    /// Runs an operation on the background runtime; dropping the future cancels it.
    pub(crate) async fn run<T, F>(self: &Arc<Self>, operation: impl FnOnce(Arc<Self>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.background.spawn(operation(Arc::clone(self))).await
    }
}
