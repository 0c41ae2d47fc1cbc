//! Bytes of messages that are not in memory: which are left out, and how they are read when they are asked for.
//!
//! Messages that were sent of late stay whole, up to [`FRESH`] bytes; of all others memory has what the broker reads of them. The
//! bytes of a message may be removed as soon as another operation begins. So who saw it takes a [`Snapshot`] before their own
//! operation has ended, which waits for no disk, and reads of it when no entity is locked.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Weak};

use bytes::Bytes;
use servicebus_broker::{BodyId, EntityId, Message, SubQueue};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use super::{LoadError, NamespaceStore, Store};
use crate::namespace::Namespace;

/// Bytes of messages that stay in memory when they are written.
const FRESH: u64 = 64 << 20;
/// What a message counts beside its bytes.
const OVERHEAD: u64 = 128;

/// Gives out the bytes of messages while others are written.
pub(crate) trait Bodies: Send + Sync {
    /// What there is now of these; later writes change nothing of it. Waits for no disk.
    fn snapshot(&self, bodies: &[BodyId]) -> Result<Box<dyn Snapshot>, LoadError>;
}

/// The bytes of messages at one instant.
pub(crate) trait Snapshot: Send {
    fn body(&self, body: BodyId) -> Result<Option<Bytes>, LoadError>;
}

/// A message that was whole when it was handed over to be written.
#[derive(Debug)]
pub(super) struct Fresh {
    pub(super) namespace: u32,
    pub(super) entity: EntityId,
    pub(super) place: (SubQueue, u64),
    pub(super) body: BodyId,
    pub(super) length: u64,
}

/// Messages that are written and may be whole, the oldest first, with the namespaces that have them.
#[derive(Debug, Default)]
pub(super) struct FreshMessages {
    queue: VecDeque<Fresh>,
    bytes: u64,
    namespaces: BTreeMap<u32, Weak<Namespace>>,
}

impl FreshMessages {
    /// Adds what was written; returns what is to be left out for it.
    fn add(&mut self, written: Vec<Fresh>) -> Vec<Fresh> {
        self.bytes += written.iter().map(Fresh::cost).sum::<u64>();
        self.queue.extend(written);
        let mut left_out = Vec::new();
        while self.bytes > FRESH
            && let Some(oldest) = self.queue.pop_front()
        {
            self.bytes -= oldest.cost();
            left_out.push(oldest);
        }
        left_out
    }
}

impl Fresh {
    fn cost(&self) -> u64 {
        self.length + OVERHEAD
    }
}

impl Store {
    /// Notes that these are written, and leaves out the bytes of the oldest.
    pub(super) fn leave_out(&self, written: Vec<Fresh>) {
        let mut fresh = self.fresh.lock();
        let left_out = fresh.add(written);
        let is_of_one = |one: &Fresh, other: &Fresh| {
            (one.namespace, one.entity) == (other.namespace, other.entity)
        };
        let groups: Vec<_> = left_out
            .chunk_by(is_of_one)
            .map(|group| {
                let namespace = fresh.namespaces.get(&group[0].namespace);
                (namespace.and_then(Weak::upgrade), group)
            })
            .collect();
        drop(fresh);
        for (namespace, group) in groups {
            if let Some(namespace) = namespace {
                let bodies = group.iter().map(|fresh| (fresh.place, fresh.body));
                namespace.leave_out(group[0].entity, bodies);
            }
        }
    }
}

impl NamespaceStore {
    /// Leaves out bytes of messages that this namespace has.
    pub(crate) fn serve(&self, namespace: &Arc<Namespace>) {
        let mut fresh = self.store.fresh.lock();
        fresh
            .namespaces
            .insert(self.number, Arc::downgrade(namespace));
    }

    /// What these bytes of messages can be read of, which the present operation has seen.
    fn snapshot(&self, bodies: &[BodyId]) -> Result<Box<dyn Snapshot>, LoadError> {
        self.store.bodies_on_disk.snapshot(bodies)
    }
}

/// What is needed to fill messages that an operation has seen.
#[derive(Default)]
pub(crate) struct Missing(Option<Result<Box<dyn Snapshot>, LoadError>>);

impl Missing {
    /// To be asked for before the operation has ended.
    pub(crate) fn of<'a>(
        store: Option<&NamespaceStore>,
        messages: impl IntoIterator<Item = &'a Message>,
    ) -> Self {
        Self(store.and_then(|store| {
            let bodies = messages.into_iter().filter_map(Message::missing);
            let bodies = Vec::from_iter(bodies);
            (!bodies.is_empty()).then(|| store.snapshot(&bodies))
        }))
    }

    /// Reads what is missing of these messages. What cannot be read stays missing, and the log tells why.
    pub(crate) fn fill<'a>(&self, messages: impl IntoIterator<Item = &'a mut Message>) {
        let Some(snapshot) = &self.0 else {
            return;
        };
        let read = || {
            for message in messages {
                let read = |body| snapshot.as_ref().map_err(Clone::clone)?.body(body);
                if let Err(reason) = fill(message, read) {
                    tracing::error!(%reason, "the bytes of a message cannot be read");
                }
            }
        };
        match Handle::try_current().map(|handle| handle.runtime_flavor()) {
            // The disk keeps this thread alone waiting.
            Ok(RuntimeFlavor::MultiThread) => block_in_place(read),
            _ => read(),
        }
    }
}

/// Takes in what is missing of a message, by what reads the bytes under a number.
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
    fn the_oldest_are_left_out_first() {
        let fresh = |body| Fresh {
            namespace: 1,
            entity: EntityId(1),
            place: (SubQueue::Active, body),
            body: BodyId(NonZeroU64::MIN.saturating_add(body)),
            length: FRESH / 4,
        };
        let mut all = FreshMessages::default();
        assert!(all.add((0..3).map(fresh).collect()).is_empty());
        let left_out = all.add((3..6).map(fresh).collect());
        let places: Vec<_> = left_out.iter().map(|fresh| fresh.place.1).collect();
        assert_eq!(places, [0, 1, 2]);
        assert!(all.bytes <= FRESH);
    }
}
