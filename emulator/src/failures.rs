//! Internal failures: panics, each of which is a bug of the emulator, and their consequences.
//!
//! A panic ends only the task or operation in which it happens. It is logged once, and `/health` reports it from then on, so
//! that a test that caused it cannot overlook it.

use std::any::Any;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use servicebus_broker::EntityPath;
pub(crate) use servicebus_control_api::Failure;
use thiserror::Error;

/// Failures that are kept; the first ones are the most useful.
const MOST: usize = 100;

/// The internal failures of a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures(Arc<Mutex<Vec<Failure>>>);

/// The payload with which a panic continues once its entity is marked as broken.
#[derive(Debug, Clone, Error)]
#[error("the entity '{entity}' failed: {reason}")]
pub(crate) struct Broken {
    pub(crate) entity: EntityPath,
    pub(crate) reason: Arc<str>,
}

impl Failures {
    /// Keeps a failure and logs it.
    pub(crate) fn add(&self, failure: Failure) {
        let Failure {
            namespace,
            entity,
            reason,
        } = &failure;
        tracing::error!(?namespace, ?entity, reason, "an internal error");
        let mut all = self.lock();
        if all.len() < MOST {
            all.push(failure);
        }
    }

    /// Returns the kept failures, oldest first.
    pub(crate) fn all(&self) -> Vec<Failure> {
        self.lock().clone()
    }

    /// Removes the failures of one namespace, whose entities have been reset.
    pub(crate) fn forget(&self, namespace: &str) {
        self.lock()
            .retain(|failure| failure.namespace.as_deref() != Some(namespace));
    }

    /// Adds the panic of a task that ended with it, unless it was added where it happened.
    pub(crate) fn add_panic(&self, place: &str, payload: &(dyn Any + Send)) {
        if !payload.is::<Broken>() {
            self.add(Failure {
                namespace: None,
                entity: None,
                reason: format!("{place}: {}", panic_text(payload)),
            });
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Failure>> {
        self.0.lock()
    }
}

pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("it does not say why"))
}
