//! Requests that a namespace answers by its administration API.
//!
//! Requests that only an emulator supports keep the default answers of [`Backend`].

use std::time::{Duration, SystemTime};

use serde_json::Value;
use servicebus_assertions::EntityAddress;
use servicebus_config::xml::Element;
use servicebus_control_api::{Clock, Counts};

use super::{
    RemoteNamespace,
    admin::{ListedEntity, text_of},
    description::{Description, target},
};
use crate::{
    backend::{Backend, BoxFuture},
    catalog::{Catalog, EntitySettings},
    catalog::{EntityKind, subscription_path},
    error::control::{ControlError, Refusal},
    text,
};

/// The paths of dead-letter queues, and their counters.
const SUB_QUEUES: [(&str, &str); 2] = [
    (
        "/$Transfer/$DeadLetterQueue",
        "TransferDeadLetterMessageCount",
    ),
    ("/$DeadLetterQueue", "DeadLetterMessageCount"),
];

impl Backend for RemoteNamespace {
    fn is_own(&self, name: &str) -> bool {
        self.has_created(name)
    }

    fn entity_name(&self, name: &str) -> String {
        self.prefix.prefixed(name)
    }

    fn clock(&self) -> BoxFuture<'_, Clock> {
        Box::pin(async {
            Ok(Clock {
                now: SystemTime::now(),
                offset_seconds: 0.0,
                frozen: false,
                auto: false,
            })
        })
    }

    /// Waits for the time to pass, up to the limit.
    fn advance(&self, by: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            if by > self.max_real_wait {
                let (by, limit) = (text::seconds(by), text::seconds(self.max_real_wait));
                return Err(ControlError::Unsupported {
                    what: format!(
                        "what happens after {by}, because that time would really pass, and the longest wait is {limit}; the builder's `max_real_wait` or SERVICEBUS_HARNESS_MAX_REAL_WAIT allows more"
                    ),
                });
            }
            tokio::time::sleep(by).await;
            Ok(())
        })
    }

    /// Counts as the service does: locked and deferred messages are active, and have no counters of their own.
    fn counts<'a>(&'a self, address: &'a str) -> BoxFuture<'a, Counts> {
        Box::pin(self.counts_of(address))
    }

    fn catalog(&self) -> BoxFuture<'_, Catalog> {
        Box::pin(self.list_entities())
    }

    fn prepare_creation<'a>(&'a self, address: &'a EntityAddress) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let name = address.owner_path();
            if self.has_created(name) {
                return Ok(());
            }
            match self.delete_leftover(address.kind(), name).await? {
                None => Ok(()),
                Some(kind) => Err(ControlError::Refused(Refusal {
                    status: 409,
                    message: format!("the namespace has a {kind} \"{name}\" that no test created"),
                    problems: Vec::new(),
                })),
            }
        })
    }

    fn put<'a>(&'a self, address: &'a EntityAddress, properties: &'a Value) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut properties = properties.clone();
            self.prefix.add_to_targets(&mut properties);
            self.create_or_update(address, &properties).await
        })
    }

    fn delete<'a>(&'a self, address: &'a EntityAddress) -> BoxFuture<'a, ()> {
        Box::pin(self.admin.delete(address.owner_path()))
    }
}

impl RemoteNamespace {
    async fn list_entities(&self) -> Result<Catalog, ControlError> {
        let mut all = Vec::new();
        for queue in self.list_own("$Resources/queues").await? {
            all.push(declared(EntityKind::Queue, queue.name.clone(), &queue));
        }
        for topic in self.list_own("$Resources/topics").await? {
            all.push(declared(EntityKind::Topic, topic.name.clone(), &topic));
            let path = format!("{}/Subscriptions", topic.name);
            let found = match self.admin.list(&path).await {
                Ok(found) => found,
                // It was deleted in the meantime.
                Err(error) if error.status() == Some(404) => continue,
                Err(error) => return Err(error),
            };
            all.extend(found.iter().map(|found| {
                let path = subscription_path(&topic.name, &found.name);
                declared(EntityKind::Subscription, path, found)
            }));
        }
        Ok(all.into_iter().collect())
    }

    /// Lists queues or topics, without those that other tests created under their prefixes.
    async fn list_own(&self, path: &str) -> Result<Vec<ListedEntity>, ControlError> {
        let mut found = self.admin.list(path).await?;
        found.retain(|found| self.prefix.has_prefix(&found.name));
        Ok(found)
    }

    async fn counts_of(&self, address: &str) -> Result<Counts, ControlError> {
        let below = SUB_QUEUES.iter().find_map(|(suffix, counter)| {
            let entity = address.strip_suffix(suffix)?;
            Some((entity, *counter))
        });
        let entity = below.map_or(address, |(entity, _)| entity);
        let description = self.find_entity(entity).await?;
        let Some(details) = description.any("CountDetails") else {
            return Err(ControlError::Unsupported {
                what: "the message counts, which the namespace does not report".to_owned(),
            });
        };
        let number = |element: &Element, name| {
            let text = text_of(element, name);
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let mut counts = Counts::default();
        if let Some((_, counter)) = below {
            counts.active = number(details, counter);
            return Ok(counts);
        }
        counts.active = number(details, "ActiveMessageCount");
        counts.dead_letter = number(details, "DeadLetterMessageCount");
        counts.transfer_dead_letter = number(details, "TransferDeadLetterMessageCount");
        counts.scheduled = number(details, "ScheduledMessageCount");
        counts.transfer = number(details, "TransferMessageCount");
        // A subscription has no size.
        counts.size_bytes = number(&description, "SizeInBytes");
        Ok(counts)
    }

    async fn find_entity(&self, path: &str) -> Result<Element, ControlError> {
        for kind in [
            EntityKind::Queue,
            EntityKind::Topic,
            EntityKind::Subscription,
        ] {
            if let Some(found) = self.admin.find(kind, path).await? {
                return Ok(found);
            }
        }
        Err(ControlError::Refused(Refusal {
            status: 404,
            message: format!("the namespace has no entity \"{path}\""),
            problems: Vec::new(),
        }))
    }

    /// Creates an entity, or changes one and keeps properties that are not set.
    async fn create_or_update(
        &self,
        address: &EntityAddress,
        properties: &Value,
    ) -> Result<(), ControlError> {
        let (kind, name) = (address.kind(), address.owner_path());
        let authority = self.admin.authority();
        match self.admin.find(kind, name).await? {
            Some(found) => {
                let mut description = Description::read(kind, &found);
                description.change(properties, authority);
                self.admin.replace(name, &description).await
            }
            None => {
                let description = Description::new(kind, properties, authority, self.max_real_wait);
                self.create(kind, name, &description).await
            }
        }
    }
}

/// Converts a listed entity.
fn declared(kind: EntityKind, name: String, found: &ListedEntity) -> EntitySettings {
    let text = |name| text_of(&found.description, name);
    let target = text("ForwardTo").map(|address| target(address).to_owned());
    EntitySettings {
        kind,
        name,
        max_delivery_count: text("MaxDeliveryCount").and_then(|text| text.parse().ok()),
        dead_letters_expired: text("DeadLetteringOnMessageExpiration") == Some("true"),
        requires_session: text("RequiresSession") == Some("true"),
        forwards_to: target.filter(|target| !target.is_empty()),
    }
}
