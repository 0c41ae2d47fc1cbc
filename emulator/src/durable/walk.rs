//! Reads all rows of a store, one entity at a time, and skips damaged ones.

use std::collections::BTreeSet;

use bytes::Bytes;
use servicebus_broker::{BodyId, DamagedRow, Entity, EntityId, RowKey, SubQueue, Tier, Timestamp};

use super::definition::read_keys;
use super::load::{
    CLOCK, DECLARATION, DEFINITION, Declared, ENTITY, KEYS, LoadError, LoadedEntity, NAMESPACE,
    WHOLE_DECLARATION, body_id,
};
use super::{ClockState, Disk, Table};
use crate::config::NamespaceConfig;

/// Receives the namespaces and entities of a store.
pub(crate) trait Visitor {
    /// A namespace; its entities follow.
    fn namespace(&mut self, config: &NamespaceConfig);

    /// An entity with its messages, whose bodies are on `disk`.
    fn entity(&mut self, loaded: LoadedEntity, disk: &dyn Disk);

    /// A damaged row.
    fn damaged(&mut self, problem: String);
}

/// The message bodies of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Bodies {
    pub(crate) count: u64,
    pub(crate) bytes: u64,
    /// Bodies to which no row refers; the next start removes them.
    pub(crate) unused: u64,
}

struct Walk<'a> {
    disk: &'a dyn Disk,
    visitor: &'a mut dyn Visitor,
    /// The number and the declaration of the namespace that is being read; one without a declaration is incomplete, and the next
    /// start removes it.
    namespace: Option<(u32, Option<NamespaceConfig>)>,
    now: Timestamp,
    entity: Option<LoadedEntity>,
    /// An entity whose definition is damaged or missing, which was reported; its other rows are skipped.
    skipped: Option<EntityId>,
    used: BTreeSet<BodyId>,
}

pub(crate) fn walk(disk: &dyn Disk, visitor: &mut dyn Visitor) -> Result<Bodies, LoadError> {
    let mut walk = Walk {
        disk,
        visitor,
        namespace: None,
        now: Timestamp::from_millis(0),
        entity: None,
        skipped: None,
        used: BTreeSet::new(),
    };
    disk.read(Table::Rows, &[NAMESPACE], &mut |key, row| {
        if let Err(error) = walk.row(&key[1..], row) {
            walk.report(key, &error);
        }
        Ok(())
    })?;
    walk.end_entity();
    let mut found = Bodies::default();
    disk.read(Table::Bodies, &[], &mut |key, body| {
        found.count += 1;
        found.bytes += body.len() as u64;
        found.unused += u64::from(!walk.used.contains(&body_id(key)?));
        Ok(())
    })?;
    Ok(found)
}

impl Walk<'_> {
    fn row(&mut self, key: &[u8], row: &[u8]) -> Result<(), LoadError> {
        let (number, key) = key.split_first_chunk().ok_or(DamagedRow)?;
        let number = u32::from_be_bytes(*number);
        if self
            .namespace
            .as_ref()
            .is_none_or(|(own, _)| *own != number)
        {
            self.end_entity();
            self.skipped = None;
            self.namespace = Some((number, None));
        }
        match key.split_first().ok_or(DamagedRow)? {
            (&CLOCK, []) => {
                let clock = ClockState::decode(row).ok_or(DamagedRow)?;
                self.now = Timestamp::from_millis(clock.now);
            }
            (&KEYS, []) => drop(read_keys(row).map_err(LoadError::Damaged)?),
            (&DECLARATION, []) => self.declaration(number, row)?,
            (&WHOLE_DECLARATION, []) => {}
            (&ENTITY, rest) => {
                let (id, key) = rest.split_first_chunk().ok_or(DamagedRow)?;
                self.entity_row(EntityId(u32::from_be_bytes(*id)), key, row)?;
            }
            _ => return Err(DamagedRow.into()),
        }
        Ok(())
    }

    fn declaration(&mut self, number: u32, row: &[u8]) -> Result<(), LoadError> {
        // The entities of a damaged declaration can be read.
        self.namespace = Some((number, Some(NamespaceConfig::new(""))));
        let declared = Declared::read(number, row).ok_or(DamagedRow)?;
        let (name, tier) = (&declared.name, Tier::default());
        let config = NamespaceConfig::parse_as(name, &declared.text, tier, &|_| false);
        let config = config.map_err(|error| LoadError::Damaged(error.to_string()))?;
        self.visitor.namespace(&config);
        self.namespace = Some((number, Some(config)));
        Ok(())
    }

    fn entity_row(&mut self, id: EntityId, key: &[u8], row: &[u8]) -> Result<(), LoadError> {
        let Some((_, Some(config))) = &self.namespace else {
            return Ok(());
        };
        if key == [DEFINITION] {
            if let Some(loaded) = self.entity.take() {
                self.visitor.entity(loaded, self.disk);
            }
            self.skipped = Some(id);
            self.entity = Some(LoadedEntity::read(id, row, config, self.now)?);
            self.skipped = None;
            return Ok(());
        }
        if self.skipped == Some(id) {
            return Ok(());
        }
        let entity = self.entity.as_mut().filter(|own| own.entity.id() == id);
        let Some(entity) = entity else {
            self.skipped = Some(id);
            return Err(LoadError::Damaged("its properties are missing".into()));
        };
        let key = RowKey::decode(key)?;
        let mut payload = Bytes::new();
        if let RowKey::Message(..) = key {
            let (body, is_needed) = Entity::body_of(row)?;
            let missing = || LoadError::Damaged("its bytes are missing".into());
            let bytes = self.disk.body(body)?.ok_or_else(missing)?;
            self.used.insert(body);
            if is_needed {
                payload = bytes;
            }
        }
        Ok(entity.entity.restore(&key, row, payload)?)
    }

    fn end_entity(&mut self) {
        if let Some(loaded) = self.entity.take() {
            self.visitor.entity(loaded, self.disk);
        }
    }

    /// Reports a damaged row by what its key says about it.
    fn report(&mut self, key: &[u8], error: &LoadError) {
        let config = self.namespace.as_ref().and_then(|(_, own)| own.as_ref());
        let name = config.map(|config| &*config.name);
        let name = name.filter(|name| !name.is_empty()).unwrap_or("of no name");
        let rest = key.get(5..).unwrap_or_default();
        let place = match rest.split_first() {
            Some((&ENTITY, rest)) => self.place(rest),
            Some((&DECLARATION, _)) => "its declaration".to_owned(),
            Some((&KEYS, _)) => "its keys".to_owned(),
            _ => "its clock".to_owned(),
        };
        let problem = format!("namespace {name:?}, {place}: {error}");
        self.visitor.damaged(problem);
    }

    fn place(&self, key: &[u8]) -> String {
        let Some((id, key)) = key.split_first_chunk() else {
            return "an entity".to_owned();
        };
        let id = EntityId(u32::from_be_bytes(*id));
        let own = self.entity.as_ref().filter(|own| own.entity.id() == id);
        let entity = own.map_or_else(
            || format!("entity {}", id.0),
            |own| format!("{:?}", own.definition.path.to_string()),
        );
        match RowKey::decode(key) {
            Ok(RowKey::Message(kind, offset)) => {
                format!(
                    "{entity}, the message at place {offset} of its {} queue",
                    queue_name(kind)
                )
            }
            Ok(RowKey::Session(name)) => format!("{entity}, the state of session {name:?}"),
            Ok(RowKey::Seen(id)) => format!("{entity}, the history of the id {id:?}"),
            Ok(RowKey::Counters) => format!("{entity}, its counters"),
            Err(_) if key == [DEFINITION] => format!("{entity}, its properties"),
            Err(_) => entity,
        }
    }
}

fn queue_name(kind: SubQueue) -> &'static str {
    match kind {
        SubQueue::Active => "own",
        SubQueue::DeadLetter => "dead-letter",
        SubQueue::TransferDeadLetter => "transfer dead-letter",
    }
}
