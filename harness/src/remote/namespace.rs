//! The entities that a `ServiceBus` has created in a namespace, and their removal.
//!
//! They are deleted when the `ServiceBus` ends, in whatever way. A drop blocks for that, because a process that ends does
//! not wait for its threads.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use serde_json::Value;

use super::{admin::Admin, description::Description};
use crate::{
    address::random_number,
    backend::Backend,
    background::Background,
    catalog::{EntityKind, topic_and_name},
    error::control::ControlError,
    file_lock::FileLock,
    running::{Running, StopFuture},
    stream::Secure,
};

/// A namespace in which a `ServiceBus` works.
#[derive(Debug)]
pub(crate) struct RemoteNamespace {
    pub(crate) admin: Admin,
    /// How long an advance of the clock may wait in real time.
    pub(crate) max_real_wait: Duration,
    pub(crate) prefix: Prefix,
    pub(crate) created: Mutex<Vec<CreatedEntity>>,
}

/// An entity that a `ServiceBus` has created, or has tried to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CreatedEntity {
    kind: EntityKind,
    name: String,
    /// Whether the namespace has confirmed the creation; otherwise the entity may be another's.
    is_confirmed: bool,
}

/// The prefix of entity names where several `ServiceBus` work in a namespace at a time; otherwise empty.
#[derive(Debug, Clone, Default)]
pub(crate) struct Prefix(String);

impl Prefix {
    /// Returns a prefix that no other `ServiceBus` uses, on this machine or another.
    pub(crate) fn unique() -> Self {
        Self(format!("test-{:016x}-", random_number()))
    }

    /// Returns the name of an entity, or the path of a subscription, in the namespace.
    pub(crate) fn prefixed(&self, name: &str) -> String {
        match self.has_prefix(name) {
            true => name.to_owned(),
            false => format!("{}{name}", self.0),
        }
    }

    pub(crate) fn has_prefix(&self, name: &str) -> bool {
        name.starts_with(&self.0)
    }

    /// Adds the prefix to the entities that properties name.
    pub(crate) fn add_to_targets(&self, properties: &mut Value) {
        for name in ["ForwardTo", "ForwardDeadLetteredMessagesTo"] {
            if let Some(target) = properties.get_mut(name)
                && let Some(known) = target.as_str().filter(|target| !target.is_empty())
            {
                *target = self.prefixed(known).into();
            }
        }
    }
}

impl RemoteNamespace {
    /// Creates an entity, and records it to be deleted in the end. It is recorded before the request: the namespace may create
    /// it although the request is cancelled or its answer is lost.
    pub(crate) async fn create(
        &self,
        kind: EntityKind,
        name: &str,
        description: &Description,
    ) -> Result<(), ControlError> {
        let entity = CreatedEntity {
            kind,
            name: name.to_owned(),
            is_confirmed: false,
        };
        self.created.lock().push(entity.clone());
        let created = self.admin.create(name, description).await;
        let is_refused = |error: &ControlError| matches!(error.status(), Some(400..500));
        let mut entities = self.created.lock();
        let position = entities.iter().rposition(|created| *created == entity);
        match (position, &created) {
            (Some(position), Ok(())) => entities[position].is_confirmed = true,
            (Some(position), Err(error)) if is_refused(error) => drop(entities.remove(position)),
            _ => {}
        }
        created
    }

    /// Returns whether this `ServiceBus` created an entity, or the topic of a subscription.
    pub(crate) fn has_created(&self, name: &str) -> bool {
        let created = self.created.lock();
        let root = topic_and_name(name).map_or(name, |(topic, _)| topic);
        let mut confirmed = created.iter().filter(|entity| entity.is_confirmed);
        confirmed.any(|entity| {
            [root, name]
                .iter()
                .any(|own| entity.name.eq_ignore_ascii_case(own))
        })
    }

    /// Deletes what a killed run left under a name. Returns the kind of an entity that a test did not create, which stays.
    pub(crate) async fn delete_leftover(
        &self,
        kind: EntityKind,
        name: &str,
    ) -> Result<Option<EntityKind>, ControlError> {
        let kinds: &[_] = match kind {
            EntityKind::Subscription => &[EntityKind::Subscription],
            _ => &[EntityKind::Queue, EntityKind::Topic],
        };
        for &kind in kinds {
            let Some(found) = self.admin.find(kind, name).await? else {
                continue;
            };
            if !Description::read(kind, &found).is_of_test() {
                return Ok(Some(kind));
            }
            self.admin.delete(name).await?;
        }
        Ok(None)
    }

    /// Returns whether nothing is left to delete.
    fn is_empty(&self) -> bool {
        let created = self.created.lock();
        created.is_empty()
    }

    /// Deletes everything in reverse order, so that no entity forwards to a deleted one. An entity that no longer exists
    /// counts as deleted. If this is cancelled, the rest remains to be deleted.
    async fn delete_all(&self) {
        while let Some(entity) = self.last_created() {
            match self.delete_created(&entity).await {
                Ok(()) => {}
                Err(error) if matches!(error.status(), Some(404 | 410)) => {}
                Err(error) => eprintln!(
                    "the {} \"{}\" stays in the namespace until it is idle for long enough: {error}",
                    entity.kind, entity.name
                ),
            }
            self.created.lock().retain(|created| *created != entity);
        }
    }

    /// Returns what was created last. Subscriptions go with their topic, if that was created, too.
    fn last_created(&self) -> Option<CreatedEntity> {
        let mut created = self.created.lock();
        let confirmed = created.iter().filter(|entity| entity.is_confirmed);
        let roots = Vec::from_iter(confirmed.map(|entity| entity.name.to_lowercase()));
        created.retain(|entity| {
            topic_and_name(&entity.name)
                .is_none_or(|(topic, _)| !roots.contains(&topic.to_lowercase()))
        });
        created.last().cloned()
    }

    /// Deletes an entity, but none that a test has not created.
    async fn delete_created(&self, entity: &CreatedEntity) -> Result<(), ControlError> {
        let CreatedEntity { kind, name, .. } = entity;
        if !entity.is_confirmed {
            let found = self.admin.find(*kind, name).await?;
            if !found.is_some_and(|found| Description::read(*kind, &found).is_of_test()) {
                return Ok(());
            }
        }
        self.admin.delete(name).await
    }
}

/// Reserves the namespace for one `ServiceBus`; dropping it deletes the entities of that.
#[derive(Debug)]
pub(crate) struct RemoteLease {
    pub(crate) remote: Arc<RemoteNamespace>,
    pub(crate) background: Arc<Background>,
    pub(crate) secure: Secure,
    /// Dropped last, so that the next `ServiceBus` finds no entities.
    pub(crate) _file_lock: Option<FileLock>,
}

impl Running for RemoteLease {
    fn remote(&self) -> Option<(Arc<dyn Backend>, Secure)> {
        Some((Arc::clone(&self.remote) as _, self.secure.clone()))
    }

    /// Deletes the entities of the `ServiceBus` where that can be awaited.
    fn stop(self: Box<Self>) -> StopFuture {
        Box::pin(async move { self.remote.delete_all().await })
    }
}

impl Drop for RemoteLease {
    fn drop(&mut self) {
        // The namespace was stopped, maybe on the background runtime, which must not wait for itself.
        if self.remote.is_empty() {
            return;
        }
        let remote = Arc::clone(&self.remote);
        let delete_all = async move { remote.delete_all().await };
        // Every request has a deadline of its own.
        let _ = self.background.wait_for(Duration::MAX, delete_all);
    }
}
