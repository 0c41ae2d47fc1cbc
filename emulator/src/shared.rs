//! The state that all connections of a process share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use servicebus_broker::{EntityPath, IdSource, Tier};
use tokio::sync::watch;
use uuid::Uuid;

use crate::access::Access;
use crate::clock::RealClock;
use crate::connection_limit::ConnectionLimit;
use crate::listeners::{Listeners, Listening};
use crate::memory::Memory;
use crate::namespace::Ids;
use crate::namespaces::{Namespaces, RemoveError};
use crate::resource_state::{ResourceState, resource_of};
use crate::router::ConnectionId;
use crate::tls::Tls;

/// The state that all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ConnectionOptions,
    pub(crate) real: RealClock,
    pub(crate) namespaces: Namespaces,
    pub(crate) listeners: Listeners,
    pub(crate) tls: Tls,
    pub(crate) memory: Arc<Memory>,
    pub(crate) connection_limit: Arc<ConnectionLimit>,
    pub(crate) access: Access,
    pub(crate) resources: Arc<ResourceState>,
    pub(crate) activity: Option<Arc<AtomicU64>>,
    pub(crate) counts: ConnectionCounts,
}

/// The numbers of connections: ids that were given, open ones, and all that were ever opened.
#[derive(Debug, Default)]
pub(crate) struct ConnectionCounts {
    ids: AtomicU32,
    open: watch::Sender<usize>,
    opened: AtomicU64,
}

/// The guard of an open connection.
pub(crate) struct Counted<'a>(&'a Shared);

/// Options that connections read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionOptions {
    pub(crate) seed: Option<u64>,
    /// Whether outcomes to old fe2o3 clients are repeated (decision D31).
    pub(crate) outcome_delay: bool,
    /// Limit of REST requests that wait for messages of one entity at the same time.
    pub(crate) waiting_requests: u32,
    /// Timeout for each of a peer's first byte, a TLS handshake, the head of an HTTP request and the first token.
    pub(crate) step_timeout: Duration,
    /// The tier of namespaces that are created at run time without one.
    pub(crate) tier: Tier,
}

impl Shared {
    /// Returns the number of connected peers, and watches its changes.
    pub(crate) fn connections(&self) -> watch::Receiver<usize> {
        self.counts.open.subscribe()
    }

    /// Returns how many peers have ever connected.
    pub(crate) fn connections_opened(&self) -> u64 {
        self.counts.opened.load(Ordering::Relaxed)
    }

    /// Counts a turn of a connection or a part of a request, if the options ask for that.
    pub(crate) fn count_activity(&self) {
        if let Some(activity) = &self.activity {
            activity.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a connection until the guard is dropped.
    pub(crate) fn count_connection(&self) -> Counted<'_> {
        self.counts.opened.fetch_add(1, Ordering::Relaxed);
        self.counts.open.send_modify(|open| *open += 1);
        Counted(self)
    }

    /// Removes a namespace as [`Namespaces::remove`] does, and what Azure Resource Manager was given for it. This is stored
    /// first: after a kill in between the namespace is still there.
    pub(crate) fn remove_namespace(&self, name: &str) -> Result<Option<Listening>, RemoveError> {
        self.namespaces.remove(name, || {
            let name = name.to_ascii_lowercase();
            let described = self.resources.described.lock().remove(&name);
            if self.resources.forget_locks(&name) || described.is_some() {
                self.resources.keep();
            }
        })
    }

    /// Lets the locks of a scope end with its entity, if it is in one; returns whether its namespace and entity exist.
    pub(crate) fn tie_locks(&self, scope: &str) -> bool {
        let scope = scope.to_ascii_lowercase();
        let parts: Vec<&str> = match resource_of(&scope) {
            Some(resource) => resource.split('/').collect(),
            // Of a subscription or a group.
            None => return true,
        };
        let Some(namespace) = self.namespaces.named(parts[0]) else {
            return false;
        };
        let (depth, subscription) = match parts[..] {
            [_, "topics", _, "subscriptions", name, ..] => (5, Some(name)),
            [_, "queues" | "topics", _, ..] => (3, None),
            _ => return true,
        };
        let above = parts[2].replace('~', "/").parse::<EntityPath>().ok();
        let path = above.and_then(|above| match subscription {
            Some(name) => above.subscription(name).ok(),
            None => Some(above),
        });
        let entity = || namespace.entity(path.as_ref()?);
        let Some(found) = entity() else {
            return false;
        };
        found.tie_locks(&self.resources, parts[..depth].join("/"));
        // It may have been removed meanwhile.
        entity().is_some_and(|now| Arc::ptr_eq(&now, &found))
    }

    /// Removes the stored locks and tags of resources that do not exist: those that `--prune` has removed, for example.
    pub(crate) fn forget_missing_resources(&self) {
        let resources = &self.resources;
        let names = self.namespaces.names();
        let names = BTreeSet::from_iter(names.iter().map(|name| name.to_ascii_lowercase()));
        let scopes = resources.scopes();
        let missing = scopes.into_iter().filter(|scope| !self.tie_locks(scope));
        let missing = BTreeSet::from_iter(missing);
        let mut described = resources.described.lock();
        let before = described.len();
        described.retain(|name, _| names.contains(name));
        let is_changed = described.len() < before;
        drop(described);
        if resources.retain_locks(|scope| !missing.contains(scope)) || is_changed {
            resources.keep();
        }
    }

    /// Returns the number of a new connection.
    pub(crate) fn next_connection(&self) -> ConnectionId {
        // Zero is the broker itself.
        ConnectionId(self.counts.ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn engine_config(&self, ids: &mut Ids) -> servicebus_amqp::Config {
        servicebus_amqp::Config {
            container_id: self.tracking_id(ids).simple().to_string(),
            tracking_id: self.tracking_id(ids).to_string(),
            ..servicebus_amqp::Config::default()
        }
    }

    /// Returns a new id that links an error with the log.
    pub(crate) fn tracking_id(&self, ids: &mut Ids) -> Uuid {
        uuid::Builder::from_u128(u128::from(ids.next()) << 64 | u128::from(ids.next()))
            .with_version(uuid::Version::Random)
            .with_variant(uuid::Variant::RFC4122)
            .into_uuid()
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.counts.open.send_modify(|open| *open -= 1);
    }
}
