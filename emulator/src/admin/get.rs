//! Reading one thing. A queue or topic that is missing is answered like at the service: 200, with the feed of what it
//! lists publicly (admin-http.md §7).

use std::sync::Arc;

use servicebus_broker::filter::Rule;
use servicebus_broker::{EntityKind, EntityPath, Tier};

use super::atom::{Item, entry, listed_services};
use super::call::{Answer, Call, Shape};
use super::describe::write_rule;
use super::refusal::ServiceError;
use super::route::Route;
use super::time::Frame;
use crate::namespace::{Namespace, SharedEntity};
use crate::xml::{CONNECT, INSTANCE, Writer};

impl Call<'_> {
    pub(crate) fn get(&self, route: &Route) -> Result<Answer, ServiceError> {
        match route {
            Route::Root => Ok(self.no_such_endpoint()),
            Route::NamespaceInfo => Ok(self.namespace_info()),
            Route::Queues => self.list_entities(EntityKind::Queue),
            Route::Topics => self.list_entities(EntityKind::Topic),
            Route::Entity(path) => {
                let entity = self.namespace.entity(&self.path(path)?);
                Ok(entity.map_or_else(|| self.no_such_endpoint(), |entity| self.show(&entity)))
            }
            Route::Subscriptions { topic } => self.list_subscriptions(topic),
            Route::Subscription { topic, name } => match self.topic(topic)? {
                None => Ok(self.no_such_endpoint()),
                Some(topic) => {
                    let path = self.subscription(&topic, name)?;
                    Ok(self.show(&*self.existing_subscription(&path)?))
                }
            },
            Route::Rules { topic, name } => self.list_rules(topic, name),
            Route::Rule { topic, name, rule } => match self.topic(topic)? {
                None => Ok(self.no_such_endpoint()),
                Some(topic) => {
                    let path = self.subscription(&topic, name)?;
                    let path = self.existing_subscription(&path)?.path.clone();
                    let missing = || ServiceError::no_entity(&self.tracker(&path, Some(rule)));
                    let rule = self.rule(&topic, &path, rule).ok_or_else(missing)?;
                    Ok(self.show_rule(&topic, &path, &rule))
                }
            },
            Route::SubQueue { .. } | Route::UnknownResource(_) => Err(ServiceError::verb("GET")),
        }
    }

    /// The subscription, or the text that it is missing.
    pub(crate) fn existing_subscription(
        &self,
        path: &EntityPath,
    ) -> Result<Arc<SharedEntity>, ServiceError> {
        let missing = || ServiceError::no_entity(&self.tracker(path, None));
        self.namespace.entity(path).ok_or_else(missing)
    }

    /// A rule of a subscription.
    pub(crate) fn rule(
        &self,
        topic: &SharedEntity,
        path: &EntityPath,
        name: &str,
    ) -> Option<Arc<Rule>> {
        self.namespace.read(topic, |entity| {
            let rules = entity.rules()?;
            rules.find(path, name).cloned()
        })
    }

    pub(crate) fn show_rule(&self, topic: &SharedEntity, path: &EntityPath, rule: &Rule) -> Answer {
        let id = self.url("sb", &format!("{path}/Rules/{}", rule.name));
        let item = Item {
            title: &rule.name,
            link: id.clone(),
            id,
            published: rule.created_at,
            updated: rule.created_at,
            author: None,
        };
        let body = entry(&item, self.frame, |out| {
            write_rule(rule, self.frame, false, out);
        });
        Answer::ok(Shape::Entry(body)).tagged(self.tag_of(topic))
    }

    fn namespace_info(&self) -> Answer {
        let id = self.url("https", "$namespaceinfo");
        let item = Item {
            title: self.namespace.name(),
            link: id.clone(),
            id,
            published: self.namespace.started_at,
            updated: self.namespace.started_at,
            author: Some(self.namespace.name()),
        };
        let body = entry(&item, self.frame, |out| {
            write_namespace(self.namespace, self.frame, out);
        });
        Answer::ok(Shape::Entry(body))
    }

    pub(crate) fn no_such_endpoint(&self) -> Answer {
        let now = self.namespace.clock.now();
        let feed = listed_services(self.admin.tracking_id(), now, self.frame);
        Answer::ok(Shape::Feed(feed))
    }
}

/// Writes what a namespace is.
fn write_namespace(namespace: &Namespace, frame: Frame, out: &mut Writer) {
    let tier = namespace.config.settings.tier;
    let started_at = frame.ticks(namespace.started_at);
    out.open(
        "NamespaceInfo",
        &[("xmlns", CONNECT), ("xmlns:i", INSTANCE)],
    );
    out.element("CreatedTime", &started_at);
    let sku = match tier {
        Tier::Basic => "Basic",
        Tier::Standard => "Standard",
        Tier::Premium => "Premium",
    };
    out.element("MessagingSKU", sku);
    if tier == Tier::Premium {
        out.element("MessagingUnits", "1");
    }
    out.element("ModifiedTime", &started_at);
    out.element("Name", namespace.name());
    out.element("NamespaceType", "Messaging");
    out.close("NamespaceInfo");
}
