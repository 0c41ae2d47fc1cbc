//! A namespace with a data directory: it appends its changes to the store, and recovers what an earlier process has stored.
//!
//! Entities that are declared and not stored are created; stored ones with other properties are updated as an administrator would
//! update them; stored ones that are not declared stay. A stored subscription keeps its stored rules, unless its declaration has
//! rules other than the default one: clients change rules, and a configuration without rules does not undo that.
//!
//! Of a namespace that only the directory has, no entity is created at the start, because clients may have deleted it; a reset
//! restores those that it was declared with.

use std::sync::Arc;

use servicebus_broker::filter::Rule;
use servicebus_broker::{
    BodyId, Delivery, Entities as _, Entity, EntityDescription, EntityId, EntityKind, EntityPath,
    Message, Property, RuleChange, SubQueue,
};

use super::{AuthorizationRule, Namespace, SharedEntity};
use crate::config::NamespaceConfig;
use crate::durable::{
    ClockState, Definition, LoadError, LoadedEntity, MissingBodies, NamespaceStore, UnitOfWork,
};
use crate::options::DataError;

/// What the declaration of a namespace changes in its stored contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Its entities are created or updated; `prunes` removes all others.
    Declared { prunes: bool },
    /// Nothing: the declaration itself is stored.
    Stored,
}

impl Namespace {
    /// Begins a unit of work, where there is a store.
    pub(super) fn begin_unit(&self) -> Option<UnitOfWork<'_>> {
        self.store.as_ref().map(|store| store.begin_unit())
    }

    /// Whether the disk has space for what clients send.
    pub(super) fn has_disk_space(&self) -> bool {
        (self.store.as_ref()).is_none_or(|store| store.store().has_space())
    }

    /// Appends what an operation changed in an entity, which is locked.
    pub(super) fn append_changes(&self, shared: &SharedEntity, entity: &mut Entity) {
        let Some(store) = &self.store else {
            return;
        };
        let definition = |entity: &Entity| {
            shared.metadata(|metadata| Definition::row(entity, metadata, shared.is_temporary()))
        };
        store.append_changes(entity, || self.stored_clock(), definition);
    }

    pub(crate) fn store(&self) -> Option<&NamespaceStore> {
        self.store.as_ref()
    }

    /// The bodies that deliveries of the present operation lack.
    pub(crate) fn missing_bodies_of(&self, taken: &[Delivery]) -> MissingBodies {
        MissingBodies::of(self.store(), taken.iter().map(|delivery| &delivery.message))
    }

    /// Reads messages of an entity; the caller fills them with the returned bodies.
    pub(crate) fn read_messages<T>(
        &self,
        entity: &SharedEntity,
        read: impl FnOnce(&Entity) -> Vec<T>,
        message: impl Fn(&T) -> &Message,
    ) -> (Vec<T>, MissingBodies) {
        let _unit = self.begin_unit();
        self.read(entity, |entity| {
            let messages = read(entity);
            let missing = MissingBodies::of(self.store(), messages.iter().map(message));
            (messages, missing)
        })
    }

    /// A copy of a message of the present operation with its body; waits for the disk while the entity is locked.
    pub(crate) fn whole(&self, seen: &Message) -> Message {
        let mut message = seen.clone();
        MissingBodies::of(self.store(), [seen]).fill([&mut message]);
        message
    }

    /// Evicts bodies of an entity's messages from memory.
    pub(crate) fn evict_bodies(
        &self,
        entity: EntityId,
        bodies: impl IntoIterator<Item = ((SubQueue, u64), BodyId)>,
    ) {
        let found = self.entity_name(entity).and_then(|path| self.entity(&path));
        if let Some(found) = found.filter(|found| found.id == entity) {
            let mut locked = found.lock();
            for (place, body) in bodies {
                locked.drop_body(place, body);
            }
        }
    }

    pub(crate) fn append_metadata(&self, entity: &SharedEntity) {
        if self.store.is_some() {
            self.operate_as_broker(entity, |entity, _| entity.definition_changed());
        }
    }

    /// Appends the added authorization rules, which are locked.
    pub(crate) fn append_added_rules(&self, rules: &[AuthorizationRule]) {
        if let Some(store) = &self.store {
            store.append_keys(rules);
        }
    }

    fn stored_clock(&self) -> ClockState {
        ClockState {
            is_automatic: self.auto.is_on(),
            ..self.clock.stored_state()
        }
    }

    /// Appends the clock, for which a client waits.
    pub(crate) fn append_clock(&self) {
        if let Some(store) = &self.store {
            store.append_clock(&self.stored_clock());
        }
    }

    /// Recovers the stored entities, and creates or updates those that are declared.
    pub(super) fn recover(&mut self, contents: Contents) -> Result<(), DataError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let damaged = |error: LoadError| DataError::Damaged {
            file: store.store().path().to_owned(),
            reason: error.to_string(),
        };
        let loaded = store
            .load(&self.config, self.clock.now())
            .map_err(damaged)?;
        if let Some(clock) = loaded.clock {
            self.restore_clock(clock);
        }
        *self.added_rules.lock() = loaded.keys;
        let paths: Vec<EntityPath> = (loaded.entities.into_iter())
            .map(|loaded| self.insert_loaded(loaded))
            .collect();
        for path in &paths {
            self.join_topic(path);
        }
        self.with_entities(|entities| {
            for path in &paths {
                entities.with_entity(path, Entity::recover);
            }
        });
        self.delete_left_by_links(&paths);
        match contents {
            Contents::Declared { prunes } => self.apply_declaration(prunes)?,
            Contents::Stored => self.restore_declaration(loaded.whole_declaration),
        }
        self.check_tier()?;
        // Last: without it the next start removes a namespace whose creation was interrupted.
        self.append_declaration();
        Ok(())
    }

    fn append_declaration(&self) {
        if let Some(store) = &self.store {
            let text = |config: &NamespaceConfig| config.to_json().to_string();
            store.append_declaration(text(&self.config.without_entities()), text(&self.config));
        }
    }

    /// Takes the declared entities from the stored declaration. Where an earlier version has stored none, the present entities count
    /// as declared: a reset must not delete them.
    fn restore_declaration(&mut self, stored: Option<String>) {
        let (name, tier) = (self.name(), self.config.settings.tier);
        let read = stored.and_then(|text| {
            let read = NamespaceConfig::parse_as(name, &text, tier, &|_| false);
            read.inspect_err(|error| {
                tracing::warn!(namespace = name, %error, "cannot read the declared entities; a reset restores the present ones");
            })
            .ok()
        });
        let declared = read.unwrap_or_else(|| self.present());
        self.config = NamespaceConfig {
            queues: declared.queues,
            topics: declared.topics,
            ..self.config.without_entities()
        };
    }

    fn restore_clock(&self, stored: ClockState) {
        if stored.is_automatic {
            self.auto.switch(true);
        }
        let back = self.clock.restore(stored);
        if back > 0 {
            tracing::warn!(
                namespace = self.name(),
                milliseconds = back,
                "the system clock was set back while the emulator was stopped; the namespace's clock continues at its last value"
            );
        }
    }

    fn insert_loaded(&self, loaded: LoadedEntity) -> EntityPath {
        let LoadedEntity {
            mut entity,
            definition,
        } = loaded;
        entity.restore_rules(definition.rules);
        let path = definition.path;
        let made = SharedEntity::new(entity, definition.metadata);
        if definition.is_temporary {
            made.mark_temporary();
        }
        let inserted = self.index_of_entities().insert(&path, |_| made);
        if inserted.is_err() {
            tracing::warn!(namespace = self.name(), %path, "is stored twice; the older one is used");
        }
        path
    }

    /// Counts the size of a subscription as its topic's.
    fn join_topic(&self, path: &EntityPath) {
        let topic = path.topic().and_then(|(topic, _)| self.entity(&topic));
        let held = topic.and_then(|topic| self.read(&topic, Entity::held));
        if let (Some(held), Some(entity)) = (held, self.entity(path)) {
            entity.lock().join(held);
        }
    }

    /// Fails if a stored entity is not allowed in the tier, which may have been another one before.
    fn check_tier(&self) -> Result<(), DataError> {
        let tier = self.config.settings.tier;
        for entity in self.entities() {
            let (kind, path) = (entity.kind, entity.path.to_string());
            let problems = self.read(&entity, |own| own.description().problems(kind, tier));
            let of_kind = kind.problem(&path, tier);
            let problems = of_kind.into_iter().chain(problems);
            let reasons: Vec<String> = problems.map(|problem| problem.to_string()).collect();
            if !reasons.is_empty() {
                return Err(DataError::Tier {
                    namespace: self.name().to_owned(),
                    entity: path,
                    tier: tier.name(),
                    reason: reasons.join("; "),
                });
            }
        }
        Ok(())
    }

    fn apply_declaration(&self, prunes: bool) -> Result<(), DataError> {
        let declared = self.declared();
        if prunes {
            for entity in self.entities() {
                if declared.get(&entity.path) != Some(&entity.kind) {
                    tracing::info!(namespace = self.name(), entity = %entity.path, "is not declared and was removed");
                    self.delete(&entity.path);
                }
            }
        }
        for (path, description) in &self.config.queues {
            self.apply_entity(EntityKind::Queue, path, description, &[])?;
        }
        for topic in &self.config.topics {
            self.apply_entity(EntityKind::Topic, &topic.path, &topic.description, &[])?;
            for subscription in &topic.subscriptions {
                let Ok(path) = topic.path.subscription(&subscription.name) else {
                    // The configuration has been checked.
                    continue;
                };
                let rules: Vec<Rule> = subscription.rules_at(self.clock.now()).collect();
                let description = &subscription.description;
                self.apply_entity(EntityKind::Subscription, &path, description, &rules)?;
                self.apply_rules(&path, &rules, prunes);
            }
        }
        Ok(())
    }

    fn apply_entity(
        &self,
        kind: EntityKind,
        path: &EntityPath,
        description: &EntityDescription,
        rules: &[Rule],
    ) -> Result<(), DataError> {
        let Err(entity) = self.create(kind, path, description.clone(), rules.to_vec()) else {
            return Ok(());
        };
        let differs = |reason| DataError::Differs {
            namespace: self.name().to_owned(),
            entity: path.to_string(),
            reason,
        };
        if entity.kind != kind {
            return Err(differs(format!(
                "it is a {}, declared: {kind}",
                entity.kind
            )));
        }
        let stored = self.read(&entity, |entity| entity.description().clone());
        let mut declared = description.clone();
        // The configuration cannot declare them.
        for property in Property::of_administration(kind) {
            if let Some(value) = property.get(&stored) {
                property.set(&mut declared, value);
            }
        }
        let problems = stored.fixed_problems(&declared);
        if !problems.is_empty() {
            let texts: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(differs(texts.join("; ")));
        }
        if stored != declared {
            tracing::info!(namespace = self.name(), entity = %path, "was changed to the declared settings");
            // What became due before the start follows the stored settings.
            while self.expire(&entity) > 0 {}
            self.update(&entity, declared);
        }
        Ok(())
    }

    /// Adds declared rules that are missing and replaces those that differ, unless only the default rule is declared. Removes
    /// an undeclared default rule, with which the others would not filter; and with `prunes` all undeclared rules.
    fn apply_rules(&self, path: &EntityPath, rules: &[Rule], prunes: bool) {
        let topic = path.topic().and_then(|(topic, _)| self.entity(&topic));
        let Some(topic) = topic.filter(|_| !rules.iter().all(is_default)) else {
            return;
        };
        let stored: Vec<Arc<Rule>> =
            self.read(&topic, |topic| topic.rules_of(path).cloned().collect());
        let (namespace, subscription) = (self.name(), path);
        let change = |change| {
            let changed =
                self.operate_as_broker(&topic, |topic, cx| topic.change_rule(cx, path, change));
            if let Err(error) = changed {
                tracing::warn!(namespace, %subscription, %error, "cannot change a rule to the declared settings");
            }
        };
        let has = |rules: &[Rule], name: &str| {
            rules.iter().any(|own| own.name.eq_ignore_ascii_case(name))
        };
        for other in stored.iter().filter(|own| !has(rules, &own.name)) {
            let rule = &*other.name;
            if prunes || is_default(other) {
                tracing::info!(namespace, %subscription, rule, "is not declared and was removed");
                change(RuleChange::Remove(rule.to_owned()));
            } else {
                tracing::warn!(namespace, %subscription, rule, "is not declared and stays; --prune removes it");
            }
        }
        for rule in rules {
            let mut all = stored.iter();
            let stored = all.find(|stored| stored.name.eq_ignore_ascii_case(&rule.name));
            let changed = match stored {
                None => RuleChange::Add(rule.clone()),
                Some(stored) if is_same(stored, rule) => continue,
                Some(_) => RuleChange::Replace(rule.clone()),
            };
            tracing::info!(namespace, %subscription, rule = &*rule.name, "was changed to the declared settings");
            change(changed);
        }
    }
}

fn is_default(rule: &Rule) -> bool {
    *rule == Rule::default_rule(rule.created_at)
}

fn is_same(stored: &Rule, declared: &Rule) -> bool {
    let created_at = declared.created_at;
    Rule {
        created_at,
        ..stored.clone()
    } == *declared
}
