//! The state of Azure Resource Manager beyond namespaces, entities and rules: management locks and tags.
//!
//! Locks and tags end with the namespace or entity that they belong to, whichever client or deadline removes it.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::durable::{LoadError, Store};

/// The Resource Manager state of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct ResourceState {
    /// By their ids in lower case.
    pub(crate) locks: Mutex<BTreeMap<String, ManagementLock>>,
    /// Locations and tags of namespaces, by lower-case name. Locked after [`Namespaces::served`].
    pub(crate) described: Mutex<BTreeMap<String, Value>>,
    /// The data directory, if any.
    store: Option<Arc<Store>>,
}

impl ResourceState {
    /// Loads the stored state; later changes are stored too. Fails if the stored state is damaged.
    pub(crate) fn kept(store: Arc<Store>) -> Result<Self, LoadError> {
        let kept = store.resources()?;
        let read = kept
            .map(|row| serde_json::from_slice::<ResourceRow>(&row))
            .transpose();
        let read = read.map_err(|error| LoadError::Damaged(error.to_string()))?;
        let (locks, described) = read.unwrap_or_default();
        Ok(Self {
            locks: Mutex::new(locks),
            described: Mutex::new(described),
            store: Some(store),
        })
    }

    /// Returns the scopes of all locks.
    pub(crate) fn scopes(&self) -> Vec<String> {
        let locks = self.locks.lock();
        locks.values().map(|lock| lock.scope.clone()).collect()
    }

    /// Removes the locks at or below a resource, as [`resource_of`] returns it; returns whether there were any.
    pub(crate) fn forget_locks(&self, resource: &str) -> bool {
        self.retain_locks(|scope| resource_of(scope).is_none_or(|own| !is_within(own, resource)))
    }

    /// Removes locks by their scopes; returns whether there were any.
    pub(crate) fn retain_locks(&self, is_kept: impl Fn(&str) -> bool) -> bool {
        let mut locks = self.locks.lock();
        let before = locks.len();
        locks.retain(|_, lock| is_kept(&lock.scope));
        locks.len() < before
    }

    /// Stores the current state.
    pub(crate) fn keep(&self) {
        let Some(store) = &self.store else {
            return;
        };
        // Both locks are held until the state is appended, so that an older state never follows a newer one.
        let (locks, described) = (self.locks.lock(), self.described.lock());
        let row = serde_json::to_vec(&(&*locks, &*described));
        store.append_resources(row.unwrap_or_default());
    }
}

/// Locks and descriptions as a row of the store.
type ResourceRow = (BTreeMap<String, ManagementLock>, BTreeMap<String, Value>);

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ManagementLock {
    pub(crate) id: String,
    /// The id of the locked resource, in lower case.
    pub(crate) scope: String,
    pub(crate) name: String,
    pub(crate) is_read_only: bool,
    pub(crate) notes: Option<String>,
}

/// The locks that end with an entity.
#[derive(Debug)]
pub(crate) struct TiedLocks {
    pub(crate) state: Arc<ResourceState>,
    /// The entity, as [`resource_of`] returns it.
    pub(crate) resource: String,
}

impl TiedLocks {
    /// Removes the locks.
    pub(crate) fn end(&self) {
        if self.state.forget_locks(&self.resource) {
            self.state.keep();
        }
    }
}

/// Returns the namespace of a scope in lower case with what is below it, as in `shop/queues/orders`: the subscription and the
/// group above do not matter. `None` for a scope above namespaces.
pub(crate) fn resource_of(scope: &str) -> Option<&str> {
    let (_, resource) = scope.split_once("/providers/microsoft.servicebus/namespaces/")?;
    Some(resource)
}

/// Returns whether an id is that of a scope, or below it.
pub(crate) fn is_within(id: &str, scope: &str) -> bool {
    let rest = id.strip_prefix(scope);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}
