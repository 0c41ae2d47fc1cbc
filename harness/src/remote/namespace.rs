//! What a `ServiceBus` has made in a namespace, and its end.
//!
//! Everything is removed when the `ServiceBus` ends, whichever way: a drop blocks until that is done, because a process that
//! ends does not wait for threads of its own.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;

use super::admin::Admin;
use crate::{
    address::random_number,
    backend::Backend,
    background::Background,
    catalog::{EntityKind, topic_and_name},
    file_lock::FileLock,
    running::{Running, Stopped},
    stream::Secure,
};

/// A namespace while a `ServiceBus` works in it.
#[derive(Debug)]
pub(crate) struct RemoteNamespace {
    pub(crate) admin: Admin,
    /// How long an advance of the clock may really wait.
    pub(crate) max_real_wait: Duration,
    pub(crate) prefix: Prefix,
    pub(crate) made: Mutex<Vec<(EntityKind, String)>>,
}

/// What is put before the names of entities where several `ServiceBus` work in a namespace at a time; nothing elsewhere.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefix(String);

impl Prefix {
    /// One that no other `ServiceBus` has, on this machine or another.
    pub(crate) fn unique() -> Self {
        Self(format!("test-{:016x}-", random_number()))
    }

    /// The name, or path of a subscription, that an entity has in the namespace.
    pub(crate) fn before(&self, name: &str) -> String {
        match self.is_of(name) {
            true => name.to_owned(),
            false => format!("{}{name}", self.0),
        }
    }

    pub(crate) fn is_of(&self, name: &str) -> bool {
        name.starts_with(&self.0)
    }

    /// Puts it before the entities that properties name.
    pub(crate) fn before_targets(&self, properties: &mut Value) {
        for name in ["ForwardTo", "ForwardDeadLetteredMessagesTo"] {
            if let Some(target) = properties.get_mut(name)
                && let Some(known) = target.as_str().filter(|target| !target.is_empty())
            {
                *target = self.before(known).into();
            }
        }
    }
}

impl RemoteNamespace {
    /// Remembers what is to be removed; before it is made, or a request that is cancelled would be forgotten.
    pub(crate) fn remember(&self, kind: EntityKind, name: &str) {
        let mut made = self.made.lock();
        made.push((kind, name.to_owned()));
    }

    /// Whether this `ServiceBus` has made an entity, or what it is under.
    pub(crate) fn has_made(&self, name: &str) -> bool {
        let made = self.made.lock();
        let root = topic_and_name(name).map_or(name, |(topic, _)| topic);
        let is_it = |made: &String| made.eq_ignore_ascii_case(root);
        made.iter().any(|(_, made)| is_it(made))
    }

    /// Whether nothing is left to remove.
    fn is_clean(&self) -> bool {
        let made = self.made.lock();
        made.is_empty()
    }

    /// Removes everything, the last first, so that nothing forwards to what is gone. What is gone already counts.
    async fn clean(&self) {
        let made = std::mem::take(&mut *self.made.lock());
        let roots = made
            .iter()
            .rev()
            .filter(|(kind, _)| *kind != EntityKind::Subscription);
        for (kind, name) in roots {
            match self.admin.delete(name).await {
                Ok(()) => {}
                Err(error) if matches!(error.status(), Some(404 | 410)) => {}
                Err(error) => eprintln!(
                    "the {kind} \"{name}\" stays in the namespace for five minutes without use: {error}"
                ),
            }
        }
    }
}

/// Keeps the namespace for one `ServiceBus`; dropping it removes what that made.
#[derive(Debug)]
pub(crate) struct RemoteRun {
    pub(crate) remote: Arc<RemoteNamespace>,
    pub(crate) background: Arc<Background>,
    pub(crate) secure: Secure,
    /// Dropped last, so that the next `ServiceBus` finds nothing.
    pub(crate) _file_lock: Option<FileLock>,
}

impl Running for RemoteRun {
    fn remote(&self) -> Option<(Arc<dyn Backend>, Secure)> {
        Some((Arc::clone(&self.remote) as _, self.secure.clone()))
    }

    /// Removes what the `ServiceBus` made where it is possible to wait.
    fn stop(self: Box<Self>) -> Stopped {
        Box::pin(async move { self.remote.clean().await })
    }
}

impl Drop for RemoteRun {
    fn drop(&mut self) {
        // Stopped in good order, which may be on the background runtime: that must not wait for itself.
        if self.remote.is_clean() {
            return;
        }
        let remote = Arc::clone(&self.remote);
        let clean = async move { remote.clean().await };
        // Every request has a deadline of its own.
        let _ = self.background.wait_for(Duration::MAX, clean);
    }
}
