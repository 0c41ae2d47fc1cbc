//! Queues, topics and subscriptions as resources: the service and the table of properties of the administration API, in
//! JSON.

use std::sync::Arc;

use axum::http::StatusCode;
use serde_json::{Map, Value, json};
use servicebus_broker::{
    Audience, EntityDescription, EntityKind, EntityPath, Property, PropertyValue, SubQueue, Tier,
};

use super::call::{Call, NAMESPACE};
use super::{Answer, Refusal, member};
use crate::admin::{Frame, NEVER};
use crate::config::property_json;
use crate::import::properties::{self, name, show_client};
use crate::namespace::{AdminMetadata, AdministerError, Namespace, SharedEntity};

const UNSUPPORTED: &str = "true is not allowed; allowed: false: the emulator does not support it";

impl Call<'_> {
    /// Returns the name at a position of the path: `~` stands for a slash.
    pub(crate) fn name_at(&self, at: usize) -> String {
        self.path[at].replace('~', "/")
    }

    /// Returns the kind and the path of the entity that the first parts of the path name.
    fn entity_at(&self, parts: usize) -> Result<(EntityKind, EntityPath), Refusal> {
        let above = self.name_at(NAMESPACE + 2);
        let path = above.parse::<EntityPath>();
        let path = path.map_err(|error| bad_request(&format!("The name '{above}' {error}.")))?;
        let kind = match self.lower[NAMESPACE + 1].as_str() {
            "queues" => return Ok((EntityKind::Queue, path)),
            _ if parts > NAMESPACE + 4 => EntityKind::Subscription,
            _ => return Ok((EntityKind::Topic, path)),
        };
        let name = &self.path[NAMESPACE + 4];
        let subscription = path.subscription(name);
        let subscription =
            subscription.map_err(|error| bad_request(&format!("The name '{name}' {error}.")))?;
        Ok((kind, subscription))
    }

    /// Returns the entity that the first parts of the path name.
    pub(crate) fn existing(
        &self,
        namespace: &Namespace,
        parts: usize,
    ) -> Result<Arc<SharedEntity>, Refusal> {
        let (kind, path) = self.entity_at(parts)?;
        let found = namespace.entity(&path).filter(|entity| entity.kind == kind);
        let found = found.ok_or_else(|| not_found(&self.id_of(parts)))?;
        match found.broken() {
            None => Ok(found),
            Some(broken) => {
                let text = broken.to_string();
                Err(Refusal::new(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "InternalServerError",
                    text,
                ))
            }
        }
    }

    pub(crate) fn list_entities(&self, namespace: &Namespace) -> Result<Answer, Refusal> {
        let (kind, paths) = match self.lower.last().map(String::as_str) {
            Some("queues") => (EntityKind::Queue, None),
            Some("topics") => (EntityKind::Topic, None),
            _ => {
                let topic = self.existing(namespace, NAMESPACE + 3)?;
                (
                    EntityKind::Subscription,
                    Some(namespace.subscriptions(&topic)),
                )
            }
        };
        let entities: Vec<_> = match paths {
            Some(paths) => paths
                .iter()
                .filter_map(|path| namespace.entity(path))
                .collect(),
            None => namespace
                .entities()
                .into_iter()
                .filter(|entity| entity.kind == kind)
                .collect(),
        };
        self.page(&entities, |entity| {
            let id = format!("{}/{}", self.id(), own_name(entity).replace('/', "~"));
            self.show_entity(namespace, entity, &id)
        })
    }

    pub(crate) fn entity(&self, namespace: &Namespace) -> Result<Answer, Refusal> {
        match self.head.method.as_str() {
            "GET" => {
                let entity = self.existing(namespace, self.path.len())?;
                Ok(Answer::ok(self.show_entity(namespace, &entity, &self.id())))
            }
            "PUT" => {
                self.shared.resources.check(&self.id(), false)?;
                let _alone = namespace.administer();
                self.put_entity(namespace)
            }
            "DELETE" => {
                self.shared.resources.check(&self.id(), true)?;
                let (kind, path) = self.entity_at(self.path.len())?;
                let _alone = namespace.administer();
                let is_there = namespace
                    .entity(&path)
                    .is_some_and(|entity| entity.kind == kind);
                Ok(Answer::deleted(
                    is_there && namespace.delete_entity(&path).is_ok(),
                ))
            }
            other => Err(method_not_allowed(other, "GET, PUT, DELETE")),
        }
    }

    /// Omitted properties get their defaults, except those that are fixed at creation or that old clients keep.
    fn put_entity(&self, namespace: &Namespace) -> Result<Answer, Refusal> {
        let (kind, path) = self.entity_at(self.path.len())?;
        let tier = namespace.config.settings.tier;
        let there = namespace.entity(&path);
        if let Some(other) = there.as_ref().filter(|entity| entity.kind != kind) {
            let text = format!("'{path}' is a {} already.", other.kind);
            return Err(Refusal::conflict(&text));
        }
        if kind == EntityKind::Subscription {
            self.existing(namespace, NAMESPACE + 3)?;
        }
        let mut usual = EntityDescription::of_tier(tier);
        let before = there
            .as_ref()
            .map(|entity| namespace.read(entity, |entity| entity.description().clone()));
        for property in Property::all_of(kind).filter(|property| property.is_kept) {
            if let Some(value) = before.as_ref().and_then(|before| property.get(before)) {
                property.set(&mut usual, value);
            }
        }
        usual.client = before.and_then(|before| before.client);
        let empty = Map::new();
        let written = member(&self.body, "properties").and_then(Value::as_object);
        let read = properties::read(kind, written.unwrap_or(&empty), usual, tier);
        let unsupported = read.unsupported.iter().map(|key| (key, UNSUPPORTED));
        let wrong = read.wrong.iter().map(|(key, message)| (key, &**message));
        if let Some((key, message)) = wrong.chain(unsupported).next() {
            return Err(bad_request(&format!(
                "The value of '{key}' of '{path}': {message}."
            )));
        }
        let done = match &there {
            Some(entity) => {
                let changed = namespace.change_entity(entity, read.description);
                changed.map(|()| Arc::clone(entity))
            }
            None => namespace.create_entity(kind, &path, read.description, None),
        };
        let entity = done.map_err(|error| self.refused(&path, &error))?;
        entity.metadata(|metadata| {
            let authorization_rules = metadata.authorization_rules().to_vec();
            metadata.set_admin_metadata(AdminMetadata {
                authorization_rules,
                ..AdminMetadata::default()
            });
        });
        namespace.append_metadata(&entity);
        Ok(Answer::ok(self.show_entity(namespace, &entity, &self.id())))
    }

    fn refused(&self, path: &EntityPath, error: &AdministerError) -> Refusal {
        match error {
            AdministerError::Exists => Refusal::conflict(&format!("There is '{path}' already.")),
            AdministerError::NotFound => not_found(&self.id()),
            AdministerError::TooManyEntities(limit)
            | AdministerError::TopicIsFull { limit, .. } => {
                let text = format!(
                    "SubCode=40300. There are {limit} already, which is the most that there may be."
                );
                Refusal::new(
                    StatusCode::FORBIDDEN,
                    "MessagingGatewayTooManyRequests",
                    text,
                )
            }
            AdministerError::Properties(problems) => {
                bad_request(&problem_text(path, problems.first()))
            }
            AdministerError::Targets(targets) => match targets.first() {
                Some((property, target)) => bad_request(&format!(
                    "The auto-forwarding destination entity '{target}' of '{path}' doesn't exist ({property})."
                )),
                None => bad_request("A target does not exist."),
            },
            AdministerError::Fixed(problems) => {
                let property = problems.first().map_or("", |problem| problem.property);
                bad_request(&format!(
                    "The value for the {property} property of the existing '{path}' cannot be changed."
                ))
            }
        }
    }

    fn show_entity(&self, namespace: &Namespace, entity: &SharedEntity, id: &str) -> Value {
        let kind = match entity.kind {
            EntityKind::Queue => "queues",
            EntityKind::Topic => "topics",
            EntityKind::Subscription => "topics/subscriptions",
        };
        let properties = properties_of(namespace, entity);
        self.envelope(id, &own_name(entity), kind, properties)
    }

    /// Returns a resource of the namespace with its properties.
    pub(crate) fn envelope(&self, id: &str, name: &str, kind: &str, properties: Value) -> Value {
        let kind = format!("Microsoft.ServiceBus/namespaces/{kind}");
        json!({
            "id": id,
            "name": name,
            "type": kind,
            "location": self.location(&self.path[NAMESPACE]),
            "properties": properties,
        })
    }
}

fn problem_text(path: &EntityPath, problem: Option<&servicebus_broker::Problem>) -> String {
    match problem {
        Some(problem) => format!(
            "The value {} of '{}' of '{path}' is not allowed; allowed: {}.",
            problem.value, problem.property, problem.allowed
        ),
        None => format!("'{path}' is not allowed."),
    }
}

pub(crate) fn bad_request(text: &str) -> Refusal {
    Refusal::bad_request(
        "MessagingGatewayBadRequest",
        format!("SubCode=40000. {text}"),
    )
}

pub(crate) fn not_found(id: &str) -> Refusal {
    let text = format!("The requested resource {id} does not exist. SubCode=40400.");
    Refusal::new(
        StatusCode::NOT_FOUND,
        "MessagingGatewayNotFoundStatusCode",
        text,
    )
}

/// Returns the error for a method; `allowed` are the methods of the resource.
pub(crate) fn method_not_allowed(method: &str, allowed: &str) -> Refusal {
    let text = format!("{method} is not allowed here; allowed: {allowed}.");
    Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", text)
}

/// Returns the name without the topic's.
fn own_name(entity: &SharedEntity) -> String {
    match entity.path.topic() {
        Some((_, name)) => name.to_string(),
        None => entity.path.to_string(),
    }
}

fn properties_of(namespace: &Namespace, entity: &SharedEntity) -> Value {
    let (now, frame) = (namespace.clock.now(), Frame::of(namespace));
    let kind = entity.kind;
    namespace.read(entity, |locked| {
        let mut shown = described(kind, locked.description(), locked.tier());
        let counts = locked.counts(SubQueue::Active);
        let dead_letters = if kind == EntityKind::Topic {
            0
        } else {
            counts.dead_letter
        };
        // As in the administration API.
        let all = counts.active + dead_letters + counts.scheduled;
        shown.insert("sizeInBytes".to_owned(), locked.whole_size().into());
        shown.insert(
            "countDetails".to_owned(),
            json!({
                "activeMessageCount": counts.active,
                "deadLetterMessageCount": dead_letters,
                "scheduledMessageCount": counts.scheduled,
                "transferMessageCount": counts.transfer,
                "transferDeadLetterMessageCount": counts.transfer_dead_letter,
            }),
        );
        match locked.rules() {
            Some(rules) => shown.insert(
                "subscriptionCount".to_owned(),
                rules.subscriptions().count().into(),
            ),
            None => shown.insert("messageCount".to_owned(), all.into()),
        };
        entity.metadata(|metadata| {
            let accessed = metadata.accessed_at(locked.last_used(now));
            let made = (kind == EntityKind::Subscription).then(|| metadata.updated_at());
            let accessed = accessed
                .or(made)
                .map_or_else(|| NEVER.to_owned(), |at| frame.milliseconds(at));
            for (key, at) in [
                ("createdAt", frame.milliseconds(metadata.created_at())),
                ("updatedAt", frame.milliseconds(metadata.updated_at())),
                ("accessedAt", accessed),
            ] {
                shown.insert(key.to_owned(), at.into());
            }
        });
        shown.into()
    })
}

/// Returns the properties of a description; leaves out those that are not set.
fn described(kind: EntityKind, description: &EntityDescription, tier: Tier) -> Map<String, Value> {
    let mut shown = Map::new();
    for property in Property::all_of(kind) {
        let is_shown =
            property.audience != Audience::Unsupported || property.name == "IsClientAffine";
        let value = match property.name {
            "MaxSizeInMegabytes" => {
                Some(PropertyValue::Number(description.capacity_in_megabytes()))
            }
            _ => property.get(description),
        };
        let value = value.filter(|value| *value != PropertyValue::Target(None));
        let of_tier = || {
            let is_size = property.name == "MaxMessageSizeInKilobytes";
            is_size.then(|| if tier == Tier::Premium { 1024 } else { 256 }.into())
        };
        let value = value
            .map(property_json)
            .filter(|value| !value.is_null())
            .or_else(of_tier);
        if let Some(value) = value.filter(|_| is_shown) {
            shown.insert(name(property), value);
        }
    }
    shown.extend(description.client.as_deref().map(show_client));
    shown
}
