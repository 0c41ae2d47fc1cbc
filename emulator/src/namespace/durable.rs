//! What a namespace holds goes on where an earlier process has left it, and is taken down while it is served.
//!
//! What the configuration declares and is not kept is made; what is kept with other settings is changed as an administrator would
//! change it; what is kept and not declared stays. Rules of a subscription that is kept are those that are kept, unless its
//! declaration has rules of its own: clients change rules, and a file that says nothing of them does not mean to undo that.

use servicebus_broker::filter::Rule;
use servicebus_broker::{
    BodyId, Delivery, Entities as _, Entity, EntityDescription, EntityId, EntityKind, EntityPath,
    Message, RuleChange, SubQueue,
};

use super::{AuthorizationRule, Namespace, SharedEntity};
use crate::durable::{
    Definition, KeptClock, LoadError, LoadedEntity, Missing, NamespaceStore, Unit,
};
use crate::options::DataError;

impl Namespace {
    /// Begins an operation whose changes are written together, where they are written.
    pub(super) fn begin_unit(&self) -> Option<Unit<'_>> {
        self.store.as_ref().map(|store| store.begin_unit())
    }

    /// Whether there is room for what clients send.
    pub(super) fn has_room(&self) -> bool {
        (self.store.as_ref()).is_none_or(|store| store.store().has_room())
    }

    /// Takes down what an operation changed in an entity, which is locked.
    pub(super) fn keep(&self, shared: &SharedEntity, entity: &mut Entity) {
        let Some(store) = &self.store else {
            return;
        };
        let definition =
            |entity: &Entity| shared.metadata(|metadata| Definition::row(entity, metadata));
        store.keep(entity, || self.clock.kept(), definition);
    }

    /// Where bodies are that are not in memory.
    pub(crate) fn store(&self) -> Option<&NamespaceStore> {
        self.store.as_ref()
    }

    /// What fills these, which the present operation has taken.
    pub(crate) fn missing_of(&self, taken: &[Delivery]) -> Missing {
        Missing::of(self.store(), taken.iter().map(|delivery| &delivery.message))
    }

    /// Looks at messages of an entity; they are whole when what is returned has filled them.
    pub(crate) fn read_messages<T>(
        &self,
        entity: &SharedEntity,
        read: impl FnOnce(&Entity) -> Vec<T>,
        message: impl Fn(&T) -> &Message,
    ) -> (Vec<T>, Missing) {
        let _unit = self.begin_unit();
        self.read(entity, |entity| {
            let messages = read(entity);
            let missing = Missing::of(self.store(), messages.iter().map(message));
            (messages, missing)
        })
    }

    /// A copy of a message that the present operation sees, with its body: for who may wait for the disk while the entity is locked.
    pub(crate) fn whole(&self, seen: &Message) -> Message {
        let mut message = seen.clone();
        Missing::of(self.store(), [seen]).fill([&mut message]);
        message
    }

    /// Leaves bytes of messages of an entity to where they are kept.
    pub(crate) fn leave_out(
        &self,
        entity: EntityId,
        bodies: impl IntoIterator<Item = ((SubQueue, u64), BodyId)>,
    ) {
        let found = self.entity_name(entity).and_then(|path| self.entity(&path));
        if let Some(found) = found.filter(|found| found.id == entity) {
            let mut locked = found.lock();
            for (place, body) in bodies {
                locked.leave_out_body(place, body);
            }
        }
    }

    /// Takes down what is shown of an entity as it was given, and its keys.
    pub(crate) fn keep_metadata(&self, entity: &SharedEntity) {
        if self.store.is_some() {
            self.operate_as_broker(entity, |entity, _| entity.definition_changed());
        }
    }

    /// Takes down the keys that were added, which are locked.
    pub(crate) fn keep_added_rules(&self, rules: &[AuthorizationRule]) {
        if let Some(store) = &self.store {
            store.keep_keys(rules);
        }
    }

    /// Takes down how the clock stands; a client is told that it does.
    pub(crate) fn keep_clock(&self) {
        if let Some(store) = &self.store {
            store.keep_clock(&self.clock.kept());
        }
    }

    /// Goes on with what is kept, and becomes what is declared.
    pub(super) fn go_on(&self, prunes: bool) -> Result<(), DataError> {
        let Some(store) = &self.store else {
            return Ok(());
        };
        let damaged = |error: LoadError| DataError::Damaged {
            file: store.store().place().to_owned(),
            reason: error.to_string(),
        };
        let loaded = store
            .load(&self.config, self.clock.now())
            .map_err(damaged)?;
        if let Some(clock) = loaded.clock {
            self.set_clock(clock);
        }
        *self.added_rules.lock() = loaded.keys;
        let paths: Vec<EntityPath> = (loaded.entities.into_iter())
            .map(|loaded| self.insert_kept(loaded))
            .collect();
        for path in &paths {
            self.join_topic(path);
        }
        self.carry(|carrier| {
            for path in &paths {
                carrier.with_entity(path, Entity::recover);
            }
        });
        self.delete_left_by_links(&paths);
        let declaration = self.config.without_entities().to_json().to_string();
        store.keep_declaration(declaration);
        self.follow_declaration(prunes)
    }

    fn set_clock(&self, kept: KeptClock) {
        let back = self.clock.go_on(kept);
        if back > 0 {
            tracing::warn!(
                namespace = self.name(),
                milliseconds = back,
                "the clock of this machine went back while the emulator was not running; the namespace's goes on where it was"
            );
        }
    }

    fn insert_kept(&self, loaded: LoadedEntity) -> EntityPath {
        let LoadedEntity {
            mut entity,
            definition,
        } = loaded;
        entity.restore_rules(definition.rules);
        let path = definition.path;
        let made = SharedEntity::new(entity, definition.metadata);
        let inserted = self.index_of_entities().insert(&path, |_| made);
        if inserted.is_err() {
            tracing::warn!(namespace = self.name(), %path, "is kept twice; the older one is served");
        }
        path
    }

    /// A subscription counts as its topic's.
    fn join_topic(&self, path: &EntityPath) {
        let topic = path.topic().and_then(|(topic, _)| self.entity(&topic));
        let held = topic.and_then(|topic| self.read(&topic, Entity::held));
        if let (Some(held), Some(entity)) = (held, self.entity(path)) {
            entity.lock().join(held);
        }
    }

    fn follow_declaration(&self, prunes: bool) -> Result<(), DataError> {
        let declared = self.declared();
        if prunes {
            for entity in self.entities() {
                if declared.get(&entity.path) != Some(&entity.kind) {
                    tracing::info!(namespace = self.name(), entity = %entity.path, "is not declared: removed");
                    self.delete(&entity.path);
                }
            }
        }
        for (path, description) in &self.config.queues {
            self.follow_entity(EntityKind::Queue, path, description, &[])?;
        }
        for topic in &self.config.topics {
            self.follow_entity(EntityKind::Topic, &topic.path, &topic.description, &[])?;
            for subscription in &topic.subscriptions {
                let Ok(path) = topic.path.subscription(&subscription.name) else {
                    // The configuration has been checked.
                    continue;
                };
                let rules: Vec<Rule> = subscription.rules_at(self.clock.now()).collect();
                let description = &subscription.description;
                self.follow_entity(EntityKind::Subscription, &path, description, &rules)?;
            }
        }
        Ok(())
    }

    fn follow_entity(
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
        let kept = self.read(&entity, |entity| entity.description().clone());
        let problems = kept.fixed_problems(description);
        if !problems.is_empty() {
            let told: Vec<String> = problems.iter().map(ToString::to_string).collect();
            return Err(differs(told.join("; ")));
        }
        if kept != *description {
            tracing::info!(namespace = self.name(), entity = %path, "is changed to what is declared");
            self.update(&entity, description.clone());
        }
        self.follow_rules(path, rules);
        Ok(())
    }

    /// Rules that are declared and lack, or differ, are as they are declared; a declaration that has none says nothing.
    fn follow_rules(&self, path: &EntityPath, rules: &[Rule]) {
        let is_default = |rule: &Rule| *rule == Rule::default_rule(rule.created_at);
        let topic = path.topic().and_then(|(topic, _)| self.entity(&topic));
        let Some(topic) = topic.filter(|_| !rules.iter().all(is_default)) else {
            return;
        };
        for rule in rules {
            let kept = self.read(&topic, |topic| {
                let mut all = topic.rules_of(path);
                all.find(|kept| kept.name.eq_ignore_ascii_case(&rule.name))
                    .map(|kept| (**kept).clone())
            });
            let change = match kept {
                None => RuleChange::Add(rule.clone()),
                Some(kept) if is_same(&kept, rule) => continue,
                Some(_) => RuleChange::Replace(rule.clone()),
            };
            tracing::info!(namespace = self.name(), subscription = %path, rule = &*rule.name, "is changed to what is declared");
            let changed =
                self.operate_as_broker(&topic, |topic, cx| topic.change_rule(cx, path, change));
            if let Err(error) = changed {
                tracing::warn!(namespace = self.name(), subscription = %path, %error, "a declared rule was not made");
            }
        }
    }
}

fn is_same(kept: &Rule, declared: &Rule) -> bool {
    let created_at = declared.created_at;
    Rule {
        created_at,
        ..kept.clone()
    } == *declared
}
