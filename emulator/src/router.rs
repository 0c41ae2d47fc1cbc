//! Carries effects from the operation that caused them to the connection that must act.
//!
//! A consumer's id names its connection, so that no table of consumers is needed.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};

use servicebus_broker::ConsumerId;
use tokio::sync::Notify;

/// A connection's number within the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ConnectionId(pub(crate) u32);

/// Finds connections by number.
#[derive(Debug, Default)]
pub(crate) struct Router {
    connections: RwLock<BTreeMap<ConnectionId, Arc<Doorbell>>>,
}

/// How other tasks reach a connection.
#[derive(Debug, Default)]
pub(crate) struct Doorbell {
    /// Name of the namespace that the connection belongs to.
    namespace: OnceLock<String>,
    state: Mutex<Rung>,
    notify: Notify,
}

#[derive(Debug, Default)]
struct Rung {
    woken: Vec<ConsumerId>,
    /// Consumers whose sessions are not theirs any more.
    lost: Vec<ConsumerId>,
    /// Whether the connection has something to do or to write.
    busy: bool,
    /// Whether entities were changed or deleted: links may have to go.
    entities_changed: bool,
    /// Whether all links are to go.
    service_updated: bool,
    /// Whether something has come that the connection waits for.
    nudged: bool,
}

/// What a connection learns beside what its consumers can take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct News {
    /// Entities were changed or deleted.
    pub(crate) entities_changed: bool,
    /// All links are to go.
    pub(crate) service_updated: bool,
}

impl ConnectionId {
    /// The id of the `n`th consumer of this connection.
    pub(crate) fn consumer(self, n: u32) -> ConsumerId {
        ConsumerId(u64::from(self.0) << 32 | u64::from(n))
    }

    pub(crate) fn of(consumer: ConsumerId) -> Self {
        Self((consumer.0 >> 32) as u32)
    }
}

impl Router {
    pub(crate) fn enter(&self, id: ConnectionId) -> Arc<Doorbell> {
        let bell = Arc::new(Doorbell::default());
        let mut connections = self
            .connections
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        connections.insert(id, Arc::clone(&bell));
        bell
    }

    pub(crate) fn leave(&self, id: ConnectionId) {
        let mut connections = self
            .connections
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        connections.remove(&id);
    }

    /// Tells the owner of a consumer to take what is assigned to it.
    pub(crate) fn wake(&self, consumer: ConsumerId) {
        let connections = self
            .connections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = connections.get(&ConnectionId::of(consumer)) {
            bell.ring(consumer);
        }
    }

    /// Tells the owner of a consumer that its session is not its any more.
    pub(crate) fn lose_session(&self, consumer: ConsumerId) {
        let connections = self
            .connections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = connections.get(&ConnectionId::of(consumer)) {
            let mut rung = bell.rung();
            rung.lost.push(consumer);
            rung.busy = true;
            drop(rung);
            bell.notify.notify_one();
        }
    }

    /// Tells the connections of a namespace that entities were changed or deleted.
    pub(crate) fn entities_changed(&self, namespace: &str) {
        let connections = self
            .connections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        for bell in connections.values() {
            if bell.namespace.get().is_some_and(|own| own == namespace) {
                let mut rung = bell.rung();
                rung.entities_changed = true;
                rung.busy = true;
                drop(rung);
                bell.notify.notify_one();
            }
        }
    }

    /// Tells the connections of a namespace that the service is updated: their links have to go.
    pub(crate) fn service_updated(&self, namespace: &str) {
        let connections = self
            .connections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        for bell in connections.values() {
            if bell.namespace.get().is_some_and(|own| own == namespace) {
                bell.rung().service_updated = true;
                bell.nudge();
            }
        }
    }

    /// Tells a connection that something it waits for has come.
    pub(crate) fn nudge(&self, id: ConnectionId) {
        let connections = self
            .connections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(bell) = connections.get(&id) {
            bell.nudge();
        }
    }

    /// The connections of a namespace that have something to do or to write.
    pub(crate) fn busy(&self, namespace: &str) -> Vec<ConnectionId> {
        let connections = self
            .connections
            .read()
            .unwrap_or_else(PoisonError::into_inner);
        let busy = connections.iter().filter(|(_, bell)| {
            bell.namespace.get().is_some_and(|own| own == namespace) && bell.rung().busy
        });
        busy.map(|(&id, _)| id).collect()
    }
}

impl Doorbell {
    /// Says which namespace has to wait for the connection; chosen once.
    pub(crate) fn belong_to(&self, namespace: &str) {
        let _ = self.namespace.set(namespace.to_owned());
    }

    /// Resolves when somebody has rung since the last time.
    pub(crate) async fn rang(&self) {
        self.notify.notified().await;
    }

    /// The consumers that were rung for, each as often as it was, and those that have lost their sessions.
    pub(crate) fn answer(&self, woken: &mut Vec<ConsumerId>, lost: &mut Vec<ConsumerId>) {
        let mut rung = self.rung();
        woken.append(&mut rung.woken);
        lost.append(&mut rung.lost);
    }

    /// What has come since this was last asked.
    pub(crate) fn news(&self) -> News {
        let mut rung = self.rung();
        rung.nudged = false;
        News {
            entities_changed: mem::take(&mut rung.entities_changed),
            service_updated: mem::take(&mut rung.service_updated),
        }
    }

    fn nudge(&self) {
        let mut rung = self.rung();
        rung.nudged = true;
        rung.busy = true;
        drop(rung);
        self.notify.notify_one();
    }

    /// Says at the end of a turn whether something is left to write.
    pub(crate) fn turn_ended(&self, unwritten: bool) {
        let mut rung = self.rung();
        let called = !rung.woken.is_empty() || !rung.lost.is_empty() || rung.entities_changed;
        let called = called || rung.service_updated || rung.nudged;
        rung.busy = unwritten || called;
    }

    fn ring(&self, consumer: ConsumerId) {
        let mut rung = self.rung();
        rung.woken.push(consumer);
        if !mem::replace(&mut rung.busy, true) || rung.woken.len() == 1 {
            drop(rung);
            self.notify.notify_one();
        }
    }

    fn rung(&self) -> std::sync::MutexGuard<'_, Rung> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
