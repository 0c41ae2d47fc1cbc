//! What all connections of a process share.
//!
//! What is kept of Azure Resource Manager beyond namespaces, entities and rules: management locks, and tags.

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
use crate::durable::{LoadError, Store};
use crate::listeners::Listeners;
use crate::memory::Memory;
use crate::namespace::Ids;
use crate::namespaces::Namespaces;
use crate::places::Places;
use crate::router::ConnectionId;
use crate::tls::Tls;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ConnectionOptions,
    pub(crate) real: RealClock,
    pub(crate) namespaces: Namespaces,
    pub(crate) listeners: Listeners,
    pub(crate) tls: Tls,
    pub(crate) memory: Arc<Memory>,
    pub(crate) places: Arc<Places>,
    pub(crate) access: Access,
    pub(crate) resources: ResourceState,
    activity: Option<Arc<AtomicU64>>,
    connections_made: AtomicU32,
    connections: watch::Sender<usize>,
    connections_opened: AtomicU64,
}

/// One of the connections that are open.
pub(crate) struct Counted<'a>(&'a Shared);

/// Settings of the process that connections ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionOptions {
    pub(crate) seed: Option<u64>,
    /// Whether outcomes to old fe2o3 peers are repeated (decision D31).
    pub(crate) outcome_delay: bool,
    /// Most requests that wait for messages of one entity at the same time.
    pub(crate) waiting_requests: u32,
    /// How long a peer may take to send its first byte, to finish a TLS handshake, to send the head of an HTTP request
    /// and to put a first token.
    pub(crate) patience: Duration,
    /// That of namespaces that are made while the emulator serves and name none.
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
        places: Arc<Places>,
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
            places,
            access,
            resources,
            activity,
            connections_made: AtomicU32::new(0),
            connections: watch::Sender::new(0),
            connections_opened: AtomicU64::new(0),
        }
    }

    /// How many peers are connected, and word of every change.
    pub(crate) fn connections(&self) -> watch::Receiver<usize> {
        self.connections.subscribe()
    }

    /// How many peers have ever connected.
    pub(crate) fn connections_opened(&self) -> u64 {
        self.connections_opened.load(Ordering::Relaxed)
    }

    /// Counts a turn of a connection or a part of a request, where that is asked for.
    pub(crate) fn count_activity(&self) {
        if let Some(activity) = &self.activity {
            activity.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a connection until the guard is dropped, however it ends.
    pub(crate) fn count_connection(&self) -> Counted<'_> {
        self.connections_opened.fetch_add(1, Ordering::Relaxed);
        self.connections.send_modify(|open| *open += 1);
        Counted(self)
    }

    /// The number of a new connection.
    pub(crate) fn next_connection(&self) -> ConnectionId {
        // Zero stands for the broker itself.
        ConnectionId(self.connections_made.fetch_add(1, Ordering::Relaxed) + 1)
    }

    pub(crate) fn engine_config(&self, ids: &mut Ids) -> servicebus_amqp::Config {
        servicebus_amqp::Config {
            container_id: self.tracking_id(ids).simple().to_string(),
            tracking_id: self.tracking_id(ids).to_string(),
            ..servicebus_amqp::Config::default()
        }
    }

    /// A fresh id to find something again in the log.
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

/// Of all namespaces.
#[derive(Debug, Default)]
pub(crate) struct ResourceState {
    /// By their ids in lower case.
    pub(crate) locks: Mutex<BTreeMap<String, ManagementLock>>,
    /// Location and tags of namespaces, by their names in lower case.
    pub(crate) described: Mutex<BTreeMap<String, Value>>,
    /// Where they outlive the process.
    store: Option<Arc<Store>>,
}

impl ResourceState {
    /// What is kept, and from now on is; an error is what is wrong with it.
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

    /// Takes down how they are now.
    pub(crate) fn keep(&self) {
        let Some(store) = &self.store else {
            return;
        };
        // Both are held until it is taken down, so that what is older never comes behind what is newer.
        let (locks, described) = (self.locks.lock(), self.described.lock());
        let row = serde_json::to_vec(&(&*locks, &*described));
        store.append_resources(row.unwrap_or_default());
    }
}

/// Locks and descriptions as a row of the store has them.
type ResourceRow = (BTreeMap<String, ManagementLock>, BTreeMap<String, Value>);

/// A management lock.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ManagementLock {
    pub(crate) id: String,
    /// What it is on, in lower case.
    pub(crate) scope: String,
    pub(crate) name: String,
    pub(crate) is_read_only: bool,
    pub(crate) notes: Option<String>,
}
