//! Storage beyond the process: rows as in a store, from which the queues are restored.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU64;

use bytes::Bytes;
use servicebus_broker::{
    BodyChange, BodyCounts, BodyId, Effects, Entities, Entity, EntityDescription, EntityId,
    EntityKind, FollowUps, Message, Namespace, RowKey,
};

use super::World;

#[derive(Debug, Default)]
pub(super) struct RecordedState {
    descriptions: BTreeMap<EntityId, EntityDescription>,
    rows: BTreeMap<(EntityId, Vec<u8>), Vec<u8>>,
    bodies: BTreeMap<BodyId, Bytes>,
    /// All bodies ever: they are read only after the operation that returned their messages has ended.
    written: BTreeMap<BodyId, Bytes>,
    counts: BodyCounts,
    last_body: u64,
}

impl RecordedState {
    /// Writes what an operation changed.
    pub(super) fn keep(&mut self, entity: &mut Entity) {
        let mut next_body = || {
            self.last_body += 1;
            BodyId(NonZeroU64::new(self.last_body).expect("it is more than 0"))
        };
        let Some(mut changes) = entity.take_changes(&mut next_body) else {
            return;
        };
        let id = changes.entity;
        let (bodies, written) = (&mut self.bodies, &mut self.written);
        self.counts.follow(&mut changes, |change| match change {
            BodyChange::Write(body, bytes) => {
                bodies.insert(body, bytes.clone());
                written.insert(body, bytes);
            }
            BodyChange::Stay(body) => assert!(bodies.contains_key(&body), "it was written"),
            BodyChange::Remove(body) => drop(bodies.remove(&body).expect("it was written")),
        });
        for gained in &changes.gained {
            entity.drop_body(gained.place, gained.body);
        }
        if changes.definition {
            self.descriptions.insert(id, entity.description().clone());
        }
        for (key, row) in changes.rows {
            let mut bytes = Vec::new();
            key.encode(&mut bytes);
            match row {
                Some(row) => drop(self.rows.insert((id, bytes), row)),
                None => drop(self.rows.remove(&(id, bytes))),
            }
        }
        if changes.deleted {
            self.rows.retain(|(of, _), _| *of != id);
            self.descriptions.remove(&id);
        }
    }

    /// A message as delivered, with the body that is not in memory.
    pub(super) fn whole(&self, seen: &Message) -> Message {
        let mut message = seen.clone();
        if let Some(body) = seen.missing() {
            assert!(
                message.fill(self.written[&body].clone()),
                "these are other bytes"
            );
        }
        message
    }

    /// Forgets a queue that is gone without having been deleted.
    pub(super) fn forget(&mut self, id: EntityId) {
        self.rows.retain(|(of, _), _| *of != id);
        self.descriptions.remove(&id);
        let used = self.used();
        self.bodies.retain(|body, _| used.contains(body));
        self.count();
    }

    fn used(&self) -> BTreeSet<BodyId> {
        let messages = self.rows.iter().filter(|((_, key), _)| key[0] == b'm');
        let bodies = messages.map(|(_, row)| Entity::body_of(row).expect("it was written"));
        bodies.map(|(body, _)| body).collect()
    }

    fn count(&mut self) {
        self.counts = BodyCounts::default();
        for ((_, key), row) in &self.rows {
            if key[0] == b'm' {
                let (body, _) = Entity::body_of(row).expect("it was written");
                self.counts.count(body);
            }
        }
    }
}

impl World {
    /// Continues in another process from the stored state.
    pub(super) fn restart(&mut self) {
        let used = self.recorded.used();
        let bodies = self.recorded.bodies.keys().copied();
        assert_eq!(
            used,
            bodies.collect(),
            "bytes that are kept and rows differ"
        );
        self.recorded.count();
        self.namespace = Namespace::default();
        (self.effects, self.follow_ups) = (Effects::new(), FollowUps::default());
        let ids: Vec<EntityId> = self.recorded.descriptions.keys().copied().collect();
        for &id in &ids {
            let entity = self.restored(id);
            let path = entity.path().clone();
            let inserted = self.namespace.insert(&path, |_| RefCell::new(entity));
            inserted.expect("its name is free");
        }
        for id in ids {
            let path = self.paths[id.0 as usize - 1].clone();
            self.with_entity(&path, Entity::recover);
        }
    }

    fn restored(&self, id: EntityId) -> Entity {
        let path = self.paths[id.0 as usize - 1].clone();
        let description = self.recorded.descriptions[&id].clone();
        let kind = EntityKind::Queue;
        let mut entity = Entity::new(kind, id, path, description, &self.settings, self.now);
        for ((_, key), row) in (self.recorded.rows.iter()).filter(|((of, _), _)| *of == id) {
            let key = RowKey::decode(key).expect("it was written");
            let payload = match key {
                RowKey::Message(..) => match Entity::body_of(row).expect("it was written") {
                    (body, true) => self.recorded.bodies[&body].clone(),
                    (_, false) => Bytes::new(),
                },
                RowKey::Counters | RowKey::Session(_) | RowKey::Seen(_) => Bytes::new(),
            };
            let restored = entity.restore(&key, row, payload);
            restored.expect("it was written");
        }
        entity
    }
}
