//! Message bodies that are not in memory: the cache of recent ones, and reading the others.
//!
//! The most recent bodies stay in memory up to [`CACHE_LIMIT`] bytes; of other messages memory has only the parts that the
//! broker reads. Another operation may remove a body as soon as the present one has ended. So an operation takes a
//! [`Snapshot`] before it ends, which waits for no disk, and reads from it when no entity is locked.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use servicebus_broker::{BodyId, EntityId, Message, SubQueue};

use super::{LoadError, NamespaceStore, Store};
use crate::blocking::run_blocking;
use crate::namespace::Namespace;

/// Bytes of committed bodies that stay in memory.
const CACHE_LIMIT: u64 = 64 << 20;
/// The cost of a message beside its body.
const OVERHEAD: u64 = 128;

/// Reads message bodies concurrently with writes.
pub(crate) trait Bodies: Send + Sync {
    /// A snapshot of these bodies, which later writes do not change. Waits for no disk.
    fn snapshot(&self, bodies: &[BodyId]) -> Result<Box<dyn Snapshot>, LoadError>;
}

/// Message bodies at one instant.
pub(crate) trait Snapshot: Send {
    fn body(&self, body: BodyId) -> Result<Option<Bytes>, LoadError>;
}

/// The body of a message that was in memory when it was appended.
#[derive(Debug)]
pub(super) struct CachedBody {
    pub(super) namespace: u32,
    pub(super) entity: EntityId,
    pub(super) place: (SubQueue, u64),
    pub(super) body: BodyId,
    pub(super) length: u64,
}

/// Committed bodies that may be in memory, the oldest first, with the namespaces of their messages.
#[derive(Debug, Default)]
pub(super) struct BodyCache {
    queue: VecDeque<CachedBody>,
    bytes: u64,
    namespaces: BTreeMap<u32, Weak<Namespace>>,
}

impl BodyCache {
    /// Adds committed bodies; returns those that are to be evicted for them.
    fn add(&mut self, committed: Vec<CachedBody>) -> Vec<CachedBody> {
        self.bytes += committed.iter().map(CachedBody::cost).sum::<u64>();
        self.queue.extend(committed);
        let mut evicted = Vec::new();
        while self.bytes > CACHE_LIMIT
            && let Some(oldest) = self.queue.pop_front()
        {
            self.bytes -= oldest.cost();
            evicted.push(oldest);
        }
        evicted
    }
}

impl CachedBody {
    fn cost(&self) -> u64 {
        self.length + OVERHEAD
    }
}

impl Store {
    /// Adds committed bodies to the cache, and evicts the oldest beyond its limit from memory.
    pub(super) fn cache(&self, committed: Vec<CachedBody>) {
        let mut cache = self.body_cache.lock();
        let evicted = cache.add(committed);
        let is_of_one = |one: &CachedBody, other: &CachedBody| {
            (one.namespace, one.entity) == (other.namespace, other.entity)
        };
        let groups: Vec<_> = evicted
            .chunk_by(is_of_one)
            .map(|group| {
                let namespace = cache.namespaces.get(&group[0].namespace);
                (namespace.and_then(Weak::upgrade), group)
            })
            .collect();
        drop(cache);
        for (namespace, group) in groups {
            if let Some(namespace) = namespace {
                let bodies = group.iter().map(|cached| (cached.place, cached.body));
                namespace.evict_bodies(group[0].entity, bodies);
            }
        }
    }
}

impl NamespaceStore {
    /// Registers the namespace from whose messages bodies are evicted.
    pub(crate) fn serve(&self, namespace: &Arc<Namespace>) {
        let mut cache = self.store.body_cache.lock();
        cache
            .namespaces
            .insert(self.number, Arc::downgrade(namespace));
    }

    /// Ends what [`Self::serve`] began.
    pub(crate) fn stop_serving(&self) {
        let mut cache = self.store.body_cache.lock();
        cache.namespaces.remove(&self.number);
    }
}

/// The bodies that messages of an operation lack.
#[derive(Default)]
pub(crate) struct MissingBodies(Option<Result<Box<dyn Snapshot>, LoadError>>);

impl MissingBodies {
    /// Takes a snapshot of the bodies that `messages` lack, before the operation ends.
    pub(crate) fn of<'a>(
        store: Option<&NamespaceStore>,
        messages: impl IntoIterator<Item = &'a Message>,
    ) -> Self {
        Self(store.and_then(|store| {
            let bodies = messages.into_iter().filter_map(Message::missing);
            let bodies = Vec::from_iter(bodies);
            (!bodies.is_empty()).then(|| store.store.body_reader.snapshot(&bodies))
        }))
    }

    /// Reads the bodies of these messages. A body that cannot be read stays missing, and the log has the reason.
    pub(crate) fn fill<'a>(&self, messages: impl IntoIterator<Item = &'a mut Message>) {
        let Some(snapshot) = &self.0 else {
            return;
        };
        // Only this thread waits for the disk.
        run_blocking(|| {
            for message in messages {
                let read = |body| snapshot.as_ref().map_err(Clone::clone)?.body(body);
                if let Err(reason) = fill(message, read) {
                    tracing::error!(%reason, "cannot read the body of a message");
                }
            }
        });
    }
}

/// Fills a message with its body, if it lacks it.
pub(crate) fn fill(
    message: &mut Message,
    read: impl FnOnce(BodyId) -> Result<Option<Bytes>, LoadError>,
) -> Result<(), LoadError> {
    let Some(body) = message.missing() else {
        return Ok(());
    };
    match read(body)?.is_some_and(|bytes| message.fill(bytes)) {
        true => Ok(()),
        false => Err(LoadError::Damaged(format!("the bytes {}", body.0))),
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;

    #[test]
    fn the_oldest_bodies_are_evicted_first() {
        let cached = |body| CachedBody {
            namespace: 1,
            entity: EntityId(1),
            place: (SubQueue::Active, body),
            body: BodyId(NonZeroU64::MIN.saturating_add(body)),
            length: CACHE_LIMIT / 4,
        };
        let mut all = BodyCache::default();
        assert!(all.add((0..3).map(cached).collect()).is_empty());
        let evicted = all.add((3..6).map(cached).collect());
        let places: Vec<_> = evicted.iter().map(|cached| cached.place.1).collect();
        assert_eq!(places, [0, 1, 2]);
        assert!(all.bytes <= CACHE_LIMIT);
    }
}
