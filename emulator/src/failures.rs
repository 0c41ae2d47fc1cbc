//! What went wrong inside: panics, each of which is a mistake of ours, and what they left behind.
//!
//! A panic ends what it happened in and nothing else. It is in the log once, and `/health` names it from then on, so that
//! a test that caused it does not pass unnoticed.

use std::any::Any;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use servicebus_broker::EntityPath;
pub(crate) use servicebus_control_api::Failure;
use thiserror::Error;

/// Failures that are remembered; the first ones tell most.
const MOST: usize = 100;

/// What went wrong in one process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Failures(Arc<Mutex<Vec<Failure>>>);

/// What a panic is carried on as once its entity is marked as broken.
#[derive(Debug, Clone, Error)]
#[error("the entity '{entity}' is broken: {reason}")]
pub(crate) struct Broken {
    pub(crate) entity: EntityPath,
    pub(crate) reason: Arc<str>,
}

impl Failures {
    /// Remembers a failure and puts it into the log.
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

    /// All that are remembered, oldest first.
    pub(crate) fn all(&self) -> Vec<Failure> {
        self.lock().clone()
    }

    /// Forgets those of one namespace, whose entities are whole again.
    pub(crate) fn forget(&self, namespace: &str) {
        self.lock()
            .retain(|failure| failure.namespace.as_deref() != Some(namespace));
    }

    /// Remembers a panic of a task that ended with it, unless that was done where it happened.
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

/// What a panic says.
pub(crate) fn panic_text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref::<String>().map(String::as_str));
    format!("panicked: {}", text.unwrap_or("it does not say why"))
}
