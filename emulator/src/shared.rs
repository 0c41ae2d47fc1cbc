//! The state that all connections of a process share.
//!
//! It includes the state of Azure Resource Manager beyond namespaces, entities and rules: management locks and tags.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use servicebus_broker::{IdSource, Tier};
use tokio::sync::watch;
use uuid::Uuid;

use crate::access::Access;
use crate::clock::RealClock;
use crate::connection_limit::ConnectionLimit;
use crate::durable::{LoadError, Store};
use crate::listeners::{Listeners, Listening};
use crate::memory::Memory;
use crate::namespace::Ids;
use crate::namespaces::{Namespaces, RemoveError};
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
    pub(crate) resources: ResourceState,
    activity: Option<Arc<AtomicU64>>,
    connections_made: AtomicU32,
    connections: watch::Sender<usize>,
    connections_opened: AtomicU64,
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
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a part of its own, and this is called once"
    )]
    pub(crate) fn new(
        options: ConnectionOptions,
        real: RealClock,
        namespaces: Namespaces,
        listeners: Listeners,
        tls: Tls,
        memory: Arc<Memory>,
        connection_limit: Arc<ConnectionLimit>,
        access: Access,
        resources: ResourceState,
        activity: Option<Arc<AtomicU64>>,
    ) -> Self {
        Self {
            options,
            real,
            namespaces,
            listeners,
            tls,
            memory,
            connection_limit,
            access,
            resources,
            activity,
            connections_made: AtomicU32::new(0),
            connections: watch::Sender::new(0),
            connections_opened: AtomicU64::new(0),
        }
    }

    /// Returns the number of connected peers, and watches its changes.
    pub(crate) fn connections(&self) -> watch::Receiver<usize> {
        self.connections.subscribe()
    }

    /// Returns how many peers have ever connected.
    pub(crate) fn connections_opened(&self) -> u64 {
        self.connections_opened.load(Ordering::Relaxed)
    }

    /// Counts a turn of a connection or a part of a request, if the options ask for that.
    pub(crate) fn count_activity(&self) {
        if let Some(activity) = &self.activity {
            activity.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a connection until the guard is dropped.
    pub(crate) fn count_connection(&self) -> Counted<'_> {
        self.connections_opened.fetch_add(1, Ordering::Relaxed);
        self.connections.send_modify(|open| *open += 1);
        Counted(self)
    }

    /// Removes a namespace as [`Namespaces::remove`] does, and what Azure Resource Manager was given for it.
    pub(crate) fn remove_namespace(&self, name: &str) -> Result<Option<Listening>, RemoveError> {
        let mut given = None;
        let listening = self.namespaces.remove(name, || {
            let name = name.to_ascii_lowercase();
            given = self.resources.described.lock().remove(&name);
        })?;
        if given.is_some() {
            self.resources.keep();
        }
        Ok(listening)
    }

    /// Returns the number of a new connection.
    pub(crate) fn next_connection(&self) -> ConnectionId {
        // Zero is the broker itself.
        ConnectionId(self.connections_made.fetch_add(1, Ordering::Relaxed) + 1)
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
        self.0.connections.send_modify(|open| *open -= 1);
    }
}

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
