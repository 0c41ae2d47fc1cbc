//! Reads entities. For a missing queue or topic it responds as the service does: 200, with the feed of its listed endpoints
//! (admin-http.md §7).

use std::sync::Arc;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use servicebus_broker::filter::Rule;
use servicebus_broker::{EntityKind, EntityPath, Tier, Timestamp};
use servicebus_config::descriptions::write_rule;

use super::call::{Answer, Call, ResponseBody};
use super::call::{Envelope, Feed, entry, feed, listed_services, write_entry};
use super::describe::View;
use super::refusal::ServiceError;
use super::route::Route;
use super::selection::Selection;
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
                    Ok(self.show_rule(&topic, &rule, Some(rule.created_at)))
                }
            },
            Route::SubQueue { .. } | Route::UnknownResource(_) => Err(ServiceError::verb("GET")),
        }
    }

    /// Returns the subscription, or the error that it is missing.
    pub(crate) fn existing_subscription(
        &self,
        path: &EntityPath,
    ) -> Result<Arc<SharedEntity>, ServiceError> {
        let missing = || ServiceError::no_entity(&self.tracker(path, None));
        self.namespace.entity(path).ok_or_else(missing)
    }

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

    /// Returns the response with one rule; `published` is `None` after an update, which does not contain it.
    pub(crate) fn show_rule(
        &self,
        topic: &SharedEntity,
        rule: &Rule,
        published: Option<Timestamp>,
    ) -> Answer {
        let id = &self.request_url;
        let item = Envelope {
            title: &rule.name,
            link: id.clone(),
            id: id.clone(),
            published,
            updated: rule.created_at,
            author: None,
        };
        let body = entry(&item, self.frame, |out| {
            write_rule(rule, &self.frame.ticks(rule.created_at), false, out);
        });
        Answer::ok(ResponseBody::Entry(body)).tagged(self.tag_of(topic))
    }

    fn namespace_info(&self) -> Answer {
        let id = &self.request_url;
        let item = Envelope {
            title: self.namespace.name(),
            link: id.clone(),
            id: id.clone(),
            published: Some(self.namespace.started_at),
            updated: self.namespace.started_at,
            author: Some(self.namespace.name()),
        };
        let body = entry(&item, self.frame, |out| {
            write_namespace(self.namespace, self.frame, out);
        });
        Answer::ok(ResponseBody::Entry(body))
    }

    pub(crate) fn no_such_endpoint(&self) -> Answer {
        let now = self.namespace.clock.now();
        let feed = listed_services(self.admin.tracking_id(), now, self.frame);
        Answer::ok(ResponseBody::Feed(feed))
    }
}

/// Writes the properties of a namespace.
fn write_namespace(namespace: &Namespace, frame: Frame, out: &mut Writer) {
    let tier = namespace.config.settings.tier;
    let started_at = frame.ticks(namespace.started_at);
    out.open(
        "NamespaceInfo",
        &[("xmlns", CONNECT), ("xmlns:i", INSTANCE)],
    );
    out.element("CreatedTime", &started_at);
    out.element("MessagingSKU", tier.name());
    if tier == Tier::Premium {
        out.element("MessagingUnits", "1");
    }
    out.element("ModifiedTime", &started_at);
    out.element("Name", namespace.name());
    out.element("NamespaceType", "Messaging");
    out.close("NamespaceInfo");
}

/// The default number of entries in a page.
const PAGE: usize = 100;

impl Call<'_> {
    pub(crate) fn list_entities(&self, kind: EntityKind) -> Result<Answer, ServiceError> {
        let title = match kind {
            EntityKind::Topic => "Topics",
            EntityKind::Queue | EntityKind::Subscription => "Queues",
        };
        let entities = self.namespace.entities().into_iter();
        let entities = self.selected(entities.filter(|entity| entity.kind == kind))?;
        Ok(self.page(title, &entities, |entity, base, out| {
            let view = View::of(self.namespace, entity);
            let path = view.path.as_str();
            let link = self.relative(&format!("../{path}"));
            self.write_view(&view, self.url(path), link, base, out);
        }))
    }

    pub(crate) fn list_subscriptions(&self, topic: &str) -> Result<Answer, ServiceError> {
        let topic = self.parent(topic)?;
        let paths = self.namespace.subscriptions(&topic);
        let entities = paths.iter().filter_map(|path| self.namespace.entity(path));
        let entities = self.selected(entities)?;
        let page = self.page("Subscriptions", &entities, |entity, base, out| {
            let view = View::of(self.namespace, entity);
            let name = view.path.topic().map_or("", |(_, name)| name);
            let (id, link) = self.listed(name);
            self.write_view(&view, id, link, base, out);
        });
        Ok(page.tagged(self.tag_of(&topic)))
    }

    pub(crate) fn list_rules(&self, topic: &str, name: &str) -> Result<Answer, ServiceError> {
        let topic = self.parent(topic)?;
        let path = self.subscription(&topic, name)?;
        let path = self.existing_subscription(&path)?.path.clone();
        let rules: Vec<_> = self
            .namespace
            .read(&topic, |entity| entity.rules_of(&path).cloned().collect());
        let page = self.page("Rules", &rules, |rule, base, out| {
            let (id, link) = self.listed(&rule.name);
            let item = Envelope {
                title: &rule.name,
                id,
                link,
                published: Some(rule.created_at),
                updated: rule.created_at,
                author: None,
            };
            write_entry(
                base,
                &item,
                self.frame,
                |out| write_rule(rule, &self.frame.ticks(rule.created_at), true, out),
                out,
            );
        });
        Ok(page.tagged(self.tag_of(&topic)))
    }

    /// Returns the topic whose subscriptions or rules are listed.
    fn parent(&self, topic: &str) -> Result<Arc<SharedEntity>, ServiceError> {
        let missing =
            || ServiceError::no_entity(&format!("{}:Topic:{topic}", self.namespace.name()));
        self.topic(topic)?.ok_or_else(missing)
    }

    /// Returns the entities that the filter of the query selects.
    fn selected(
        &self,
        entities: impl Iterator<Item = Arc<SharedEntity>>,
    ) -> Result<Vec<Arc<SharedEntity>>, ServiceError> {
        let filter = self.query.filter.as_deref();
        let filter = filter.filter(|filter| !filter.trim().is_empty());
        let Some(selection) = filter.map(Selection::parse).transpose()? else {
            return Ok(entities.collect());
        };
        let is_selected = |entity: &Arc<SharedEntity>| {
            selection.holds(&View::of(self.namespace, entity), self.frame)
        };
        Ok(entities.filter(is_selected).collect())
    }

    fn page<T>(&self, title: &str, all: &[T], write: impl Fn(&T, &str, &mut Writer)) -> Answer {
        let skip = self.query.skip.unwrap_or(0).min(all.len());
        let top = self.query.top.unwrap_or(PAGE).min(PAGE);
        let rest = &all[skip..];
        let page = &rest[..top.min(rest.len())];
        let has_more = !page.is_empty() && page.len() < rest.len();
        let next = has_more.then(|| {
            let and = if self.query.other_parameters.is_empty() {
                '?'
            } else {
                '&'
            };
            let filter = self
                .query
                .filter
                .as_ref()
                .map_or_else(String::new, |filter| {
                    format!("&$filter={}", utf8_percent_encode(filter, NON_ALPHANUMERIC))
                });
            let skip = skip + page.len();
            let url = self.url(self.request_path);
            format!("{url}{and}$skip={skip}&$top={top}{filter}")
        });
        let now = self.namespace.clock.now();
        let about = Feed {
            title,
            url: self.request_url.clone(),
            updated: now,
            next,
        };
        let body = feed(&about, self.frame, |out| {
            for entry in page {
                write(entry, &self.request_url, out);
            }
        });
        Answer::ok(ResponseBody::Feed(body))
    }

    fn write_view(&self, view: &View, id: String, link: String, base: &str, out: &mut Writer) {
        let item = self.item(view, id, link);
        let write = |out: &mut Writer| view.write(self.query, self.frame, true, out);
        write_entry(base, &item, self.frame, write, out);
    }

    /// Returns the URL of an entry of the list that the request is for, and its link relative to that.
    fn listed(&self, name: &str) -> (String, String) {
        let list = self.request_path;
        let keyword = list.rsplit('/').next().unwrap_or_default();
        let link = self.relative(&format!("{keyword}/{name}"));
        (self.url(&format!("{list}/{name}")), link)
    }

    fn relative(&self, path: &str) -> String {
        match &self.query.api_version {
            Some(version) => format!("{path}?api-version={version}"),
            None => path.to_owned(),
        }
    }
}
