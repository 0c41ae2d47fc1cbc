//! Reads the stored namespaces and entities when an emulator starts.

use std::collections::BTreeSet;
use std::num::NonZeroU64;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::Value;
use servicebus_broker::{BodyId, DamagedRow, Entity, EntityId, RowKey, Timestamp};
use thiserror::Error;

use super::definition::read_keys;
use super::{ClockState, Definition, NamespaceStore, Store, Table};
use crate::config::NamespaceConfig;
use crate::namespace::AuthorizationRule;

/// The first byte of row keys; the number of a namespace follows.
pub(super) const NAMESPACE: u8 = b'n';
/// The key of the row of [`Store::append_resources`].
pub(super) const RESOURCES: u8 = b'r';
/// The byte behind the number of a namespace. The id of an entity follows, and then its definition or a [`RowKey`], all of which are
/// behind the definition.
pub(super) const CLOCK: u8 = b'c';
pub(super) const DECLARATION: u8 = b'd';
/// The declaration with its entities, for resets.
pub(super) const WHOLE_DECLARATION: u8 = b'w';
/// Authorization rules that are not in the declaration.
pub(super) const KEYS: u8 = b'k';
pub(super) const ENTITY: u8 = b'e';
pub(super) const DEFINITION: u8 = b'!';

/// Why stored rows cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub(crate) enum LoadError {
    /// A row does not have the form in which rows are written.
    #[error("a row is damaged: {0}")]
    Damaged(String),
    /// The disk cannot be read.
    #[error("{0}")]
    Disk(String),
}

impl From<DamagedRow> for LoadError {
    fn from(_: DamagedRow) -> Self {
        Self::Damaged("it is not what was written".into())
    }
}

/// The content of one stored namespace.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) clock: Option<ClockState>,
    /// The configuration that declares it, with entities; directories of earlier versions lack it.
    pub(crate) whole_declaration: Option<String>,
    pub(crate) keys: Vec<AuthorizationRule>,
    pub(crate) entities: Vec<LoadedEntity>,
}

/// A stored namespace.
#[derive(Debug)]
pub(crate) struct Declared {
    pub(super) number: u32,
    pub(crate) name: String,
    /// The configuration that declares it, without entities.
    pub(crate) text: String,
}

/// A stored entity.
#[derive(Debug)]
pub(crate) struct LoadedEntity {
    pub(crate) entity: Entity,
    pub(crate) definition: Definition,
}

pub(super) fn body_id(key: &[u8]) -> Result<BodyId, LoadError> {
    let number = key.try_into().map(u64::from_be_bytes).ok();
    let id = number.and_then(NonZeroU64::new).map(BodyId);
    id.ok_or_else(|| LoadError::Damaged("the number of a message's bytes".into()))
}

/// The prefix of the keys of a namespace.
pub(super) fn prefix(number: u32) -> Vec<u8> {
    [&[NAMESPACE][..], &number.to_be_bytes()].concat()
}

impl Store {
    /// All stored namespaces.
    pub(crate) fn declared(&self) -> Result<Vec<Declared>, LoadError> {
        Ok(self.stored_namespaces()?.0)
    }

    /// All stored namespaces, and the numbers of incomplete ones, whose creation a kill has interrupted: the declaration is
    /// written last.
    pub(super) fn stored_namespaces(&self) -> Result<(Vec<Declared>, BTreeSet<u32>), LoadError> {
        let (mut all, mut incomplete) = (Vec::new(), BTreeSet::new());
        self.read_disk(|disk| {
            disk.read(Table::Rows, &[NAMESPACE], &mut |key, row| {
                let rest = key.get(1..).and_then(|key| key.split_first_chunk());
                let (number, rest) = rest.ok_or(DamagedRow)?;
                let number = u32::from_be_bytes(*number);
                incomplete.insert(number);
                if *rest == [DECLARATION] {
                    all.push(Declared::read(number, row).ok_or(DamagedRow)?);
                }
                Ok(())
            })
        })?;
        for own in &all {
            incomplete.remove(&own.number);
        }
        Ok((all, incomplete))
    }

    /// The row of [`Store::append_resources`].
    pub(crate) fn resources(&self) -> Result<Option<Vec<u8>>, LoadError> {
        let mut found = None;
        self.read_disk(|disk| {
            disk.read(Table::Rows, &[RESOURCES], &mut |_, row| {
                found = Some(row.to_vec());
                Ok(())
            })
        })?;
        Ok(found)
    }

    /// Removes bodies to which no row refers: a panic may leave those of an entity that was deleted.
    pub(crate) fn remove_orphans(&self) -> Result<(), LoadError> {
        let pending = &mut *self.pending.lock();
        self.read_disk(|disk| {
            let (bodies, _) = disk.bodies()?;
            if bodies == pending.counts.len() {
                return Ok(());
            }
            disk.read(Table::Bodies, &[], &mut |key, _| {
                let body = body_id(key)?;
                if !pending.counts.is_used(body) {
                    pending.batch.bodies.insert(body, None);
                }
                Ok(())
            })
        })
    }
}

impl NamespaceStore {
    pub(crate) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Reads the content of this namespace, whose settings are those of `config`.
    pub(crate) fn load(
        &self,
        config: &NamespaceConfig,
        now: Timestamp,
    ) -> Result<Loaded, LoadError> {
        let mut loaded = Loaded {
            clock: None,
            whole_declaration: None,
            keys: Vec::new(),
            entities: Vec::new(),
        };
        let prefix = self.prefix();
        let mut bodies = Vec::new();
        self.store.read_disk(|disk| {
            disk.read(Table::Rows, &prefix, &mut |key, row| {
                let (&tag, rest) = key[prefix.len()..].split_first().ok_or(DamagedRow)?;
                match tag {
                    CLOCK => loaded.clock = Some(ClockState::decode(row).ok_or(DamagedRow)?),
                    WHOLE_DECLARATION => {
                        loaded.whole_declaration = String::from_utf8(row.to_vec()).ok();
                    }
                    KEYS => loaded.keys = read_keys(row).map_err(LoadError::Damaged)?,
                    ENTITY => {
                        let (id, key) = rest.split_first_chunk().ok_or(DamagedRow)?;
                        let id = EntityId(u32::from_be_bytes(*id));
                        if key == [DEFINITION] {
                            loaded
                                .entities
                                .push(LoadedEntity::read(id, row, config, now)?);
                            return Ok(());
                        }
                        let last = loaded.entities.last_mut();
                        let last = last.filter(|last| last.entity.id() == id);
                        let entity = &mut last.ok_or(DamagedRow)?.entity;
                        let key = RowKey::decode(key)?;
                        let mut payload = Bytes::new();
                        if let RowKey::Message(..) = key {
                            let (body, is_needed) = Entity::body_of(row)?;
                            bodies.push(body);
                            if is_needed {
                                payload = disk.body(body)?.ok_or(DamagedRow)?;
                            }
                        }
                        entity.restore(&key, row, payload)?;
                    }
                    _ => {}
                }
                Ok(())
            })
        })?;
        let counts = &mut self.store.pending.lock().counts;
        bodies.into_iter().for_each(|body| counts.count(body));
        Ok(loaded)
    }
}

impl Declared {
    pub(super) fn read(number: u32, row: &[u8]) -> Option<Self> {
        let text = String::from_utf8(row.to_vec()).ok()?;
        let value: Value = serde_json::from_str(&text).ok()?;
        let name = value.pointer("/UserConfig/Namespaces/0/Name")?.as_str()?;
        Some(Self {
            number,
            name: name.to_owned(),
            text,
        })
    }
}

impl LoadedEntity {
    pub(super) fn read(
        id: EntityId,
        row: &[u8],
        config: &NamespaceConfig,
        now: Timestamp,
    ) -> Result<Self, LoadError> {
        let definition = Definition::read(row).map_err(LoadError::Damaged)?;
        let entity = Entity::new(
            definition.kind,
            id,
            definition.path.clone(),
            definition.description.clone(),
            &config.settings,
            now,
        );
        Ok(Self { entity, definition })
    }
}
