//! One authorized request, and the parts that its responses share.
//!
//! Also the entries and feeds around descriptions (admin-http.md §4.2, §4.3).

use std::sync::Arc;

use axum::http::StatusCode;
use servicebus_broker::{EntityKind, EntityPath, IdSource, Timestamp};
use uuid::Uuid;

use super::Admin;
use super::describe::View;
use super::refusal::ServiceError;
use super::route::Query;
use super::time::{Frame, tag};
use crate::namespace::{Namespace, SharedEntity};
use crate::xml::{ATOM, Writer};

/// An authorized request.
pub(crate) struct Call<'a> {
    pub(crate) admin: &'a Admin,
    pub(crate) namespace: &'a Namespace,
    pub(crate) query: &'a Query,
    /// Host and port as the client wrote them.
    pub(crate) host: &'a str,
    /// The path of the request, as decoded.
    pub(crate) request_path: &'a str,
    /// The URL of the request, by which responses identify what they show, with the client's case and slashes.
    pub(crate) request_url: String,
    pub(crate) if_match: Option<&'a str>,
    pub(crate) frame: Frame,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body_kind: ResponseBody,
    pub(crate) tag: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ResponseBody {
    Entry(String),
    Feed(String),
    Nothing,
}

impl Answer {
    pub(crate) fn ok(body_kind: ResponseBody) -> Self {
        Self {
            status: StatusCode::OK,
            body_kind,
            tag: None,
        }
    }

    pub(crate) fn with_status(self, status: StatusCode) -> Self {
        Self { status, ..self }
    }

    pub(crate) fn untagged(self) -> Self {
        Self { tag: None, ..self }
    }

    pub(crate) fn tagged(self, tag: String) -> Self {
        let tag = Some(tag);
        Self { tag, ..self }
    }
}

impl Call<'_> {
    /// Returns unpredictable bits, for keys.
    pub(crate) fn bits(&self) -> u64 {
        self.admin.ids().next()
    }

    /// Returns a URL below the namespace with the query of the request, without its page.
    pub(crate) fn url(&self, path: &str) -> String {
        let (host, other_parameters) = (self.host, &self.query.other_parameters);
        match other_parameters.is_empty() {
            true => format!("https://{host}/{path}"),
            false => format!("https://{host}/{path}?{other_parameters}"),
        }
    }

    /// Parses the name of a queue or topic in a path.
    pub(crate) fn path(&self, text: &str) -> Result<EntityPath, ServiceError> {
        text.parse().map_err(|error| {
            ServiceError::bad_request(format!("The name '{text}' of a queue or topic {error}."))
        })
    }

    pub(crate) fn topic(&self, text: &str) -> Result<Option<Arc<SharedEntity>>, ServiceError> {
        let entity = self.namespace.entity(&self.path(text)?);
        Ok(entity.filter(|entity| entity.kind == EntityKind::Topic))
    }

    /// Returns the path of a subscription, with the topic's own spelling.
    pub(crate) fn subscription(
        &self,
        topic: &SharedEntity,
        name: &str,
    ) -> Result<EntityPath, ServiceError> {
        topic.path.subscription(name).map_err(|error| {
            ServiceError::bad_request(format!("The name '{name}' of a subscription {error}."))
        })
    }

    /// Returns the service's name of a subscription or rule in texts: `ns:Topic:topic|sub|rule`.
    pub(crate) fn tracker(&self, subscription: &EntityPath, rule: Option<&str>) -> String {
        let name = self.namespace.name();
        let of_topic = match subscription.topic() {
            Some((topic, subscription)) => format!("{name}:Topic:{topic}|{subscription}"),
            None => format!("{name}:Topic:{subscription}"),
        };
        match rule {
            Some(rule) => format!("{of_topic}|{rule}"),
            None => of_topic,
        }
    }

    /// Returns whether the request is an update: `If-Match` must be `*`, or the entity's tag.
    pub(crate) fn is_update(&self, tag: Option<&str>) -> Result<bool, ServiceError> {
        let Some(wanted) = self.if_match.map(|wanted| wanted.trim().trim_matches('"')) else {
            return Ok(false);
        };
        // A missing entity matches no tag, but has an error of its own.
        if wanted == "*" || tag.is_none() || tag == Some(wanted) {
            return Ok(true);
        }
        let text = format!(
            "The header 'If-Match' is '{}'; allowed: *, or the entity's 'ETag'. ",
            super::refusal::quote(wanted)
        );
        Err(ServiceError::new(StatusCode::PRECONDITION_FAILED, text))
    }

    /// Returns the response with one entity. A subscription has the tag of its topic.
    pub(crate) fn show(&self, entity: &SharedEntity) -> Answer {
        self.show_as(entity, true)
    }

    /// The same after an update, which does not contain when the entity was published.
    pub(crate) fn show_updated(&self, entity: &SharedEntity) -> Answer {
        self.show_as(entity, false)
    }

    fn show_as(&self, entity: &SharedEntity, is_published: bool) -> Answer {
        let view = View::of(self.namespace, entity);
        let id = &self.request_url;
        let mut item = self.item(&view, id.clone(), id.clone());
        item.published = item.published.filter(|_| is_published);
        let frame = self.frame;
        let body = entry(&item, frame, |out: &mut Writer| {
            view.write(self.query, frame, false, out);
        });
        Answer::ok(ResponseBody::Entry(body)).tagged(self.tag_of(entity))
    }

    pub(crate) fn item<'a>(&'a self, view: &'a View, id: String, link: String) -> Envelope<'a> {
        let name = view.path.topic().map(|(_, name)| name);
        let title = name.unwrap_or(view.path.as_str());
        Envelope {
            title,
            id,
            link,
            published: Some(view.created_at),
            updated: view.updated_at,
            author: name.is_none().then(|| self.namespace.name()),
        }
    }

    /// Returns the `ETag` of an entity; of a subscription, that of its topic.
    pub(crate) fn tag_of(&self, entity: &SharedEntity) -> String {
        let topic = entity.path.topic();
        let topic = topic.and_then(|(topic, _)| self.namespace.entity(&topic));
        let tagged = topic.as_deref().unwrap_or(entity);
        tag(tagged.metadata(|metadata| metadata.updated_at()))
    }
}

/// The envelope of a description.
#[derive(Debug, Clone)]
pub(crate) struct Envelope<'a> {
    pub(crate) title: &'a str,
    /// Its address.
    pub(crate) id: String,
    /// Its address in links.
    pub(crate) link: String,
    pub(crate) published: Option<Timestamp>,
    pub(crate) updated: Timestamp,
    /// The namespace, if the service names it.
    pub(crate) author: Option<&'a str>,
}

/// The envelope of the entries of a list.
#[derive(Debug, Clone)]
pub(crate) struct Feed<'a> {
    pub(crate) title: &'a str,
    pub(crate) url: String,
    pub(crate) updated: Timestamp,
    /// The link to the next page, if any: some clients take a second link for it and no other.
    pub(crate) next: Option<String>,
}

/// Renders one entry as a document of its own.
pub(crate) fn entry(
    item: &Envelope<'_>,
    frame: Frame,
    content: impl FnOnce(&mut Writer),
) -> String {
    let mut out = Writer::new();
    out.open("entry", &[("xmlns", ATOM)]);
    write_item(item, frame, content, &mut out);
    out.close("entry");
    out.finish()
}

/// Renders a list; `entries` writes its entries with [`write_entry`].
pub(crate) fn feed(feed: &Feed<'_>, frame: Frame, entries: impl FnOnce(&mut Writer)) -> String {
    let mut out = Writer::new();
    out.open("feed", &[("xmlns", ATOM)]);
    out.typed("title", &[("type", "text")], feed.title);
    out.element("id", &feed.url);
    out.element("updated", &frame.seconds(feed.updated));
    out.empty("link", &[("rel", "self"), ("href", &feed.url)]);
    if let Some(next) = &feed.next {
        out.empty("link", &[("rel", "next"), ("href", next)]);
    }
    entries(&mut out);
    out.close("feed");
    out.finish()
}

/// Writes an entry of a list at `base`.
pub(crate) fn write_entry(
    base: &str,
    item: &Envelope<'_>,
    frame: Frame,
    content: impl FnOnce(&mut Writer),
    out: &mut Writer,
) {
    out.open("entry", &[("xml:base", base)]);
    write_item(item, frame, content, out);
    out.close("entry");
}

/// Renders the response for a missing queue or topic: the service looks the name up among its listed endpoints.
pub(crate) fn listed_services(tracking: Uuid, now: Timestamp, frame: Frame) -> String {
    let mut out = Writer::new();
    out.open("feed", &[("xmlns", ATOM)]);
    out.typed("title", &[("type", "text")], "Publicly Listed Services");
    let subtitle = "This is the list of publicly-listed services currently available.";
    out.typed("subtitle", &[("type", "text")], subtitle);
    out.element("id", &format!("uuid:{tracking};id=1"));
    out.element("updated", &frame.seconds(now));
    out.element("generator", "Service Bus 1.1");
    out.close("feed");
    out.finish()
}

fn write_item(
    item: &Envelope<'_>,
    frame: Frame,
    content: impl FnOnce(&mut Writer),
    out: &mut Writer,
) {
    out.element("id", &item.id);
    out.typed("title", &[("type", "text")], item.title);
    if let Some(published) = item.published {
        out.element("published", &frame.seconds(published));
    }
    out.element("updated", &frame.seconds(item.updated));
    if let Some(author) = item.author {
        out.open("author", &[]);
        out.element("name", author);
        out.close("author");
    }
    out.empty("link", &[("rel", "self"), ("href", &item.link)]);
    out.open("content", &[("type", "application/xml")]);
    content(out);
    out.close("content");
}
