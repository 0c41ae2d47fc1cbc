//! Entries and feeds around descriptions (admin-http.md §4.2, §4.3).

use servicebus_broker::Timestamp;
use uuid::Uuid;

use super::time::Frame;
use crate::xml::{ATOM, Writer};

/// What stands around a description.
#[derive(Debug, Clone)]
pub(crate) struct Item<'a> {
    pub(crate) title: &'a str,
    /// Its address.
    pub(crate) id: String,
    /// The same as links write it.
    pub(crate) link: String,
    pub(crate) published: Timestamp,
    pub(crate) updated: Timestamp,
    /// The namespace, where the service names it.
    pub(crate) author: Option<&'a str>,
}

/// What stands around the entries of a list.
#[derive(Debug, Clone)]
pub(crate) struct Feed<'a> {
    pub(crate) title: &'a str,
    pub(crate) url: String,
    pub(crate) updated: Timestamp,
    /// Where it goes on, if it does: some clients take a second link for that and no other.
    pub(crate) next: Option<String>,
}

/// One entry as a document of its own.
pub(crate) fn entry(item: &Item<'_>, frame: Frame, content: impl FnOnce(&mut Writer)) -> String {
    let mut out = Writer::new();
    out.open("entry", &[("xmlns", ATOM)]);
    write_item(item, frame, content, &mut out);
    out.close("entry");
    out.finish()
}

/// A list; `entries` writes its entries with [`write_entry`].
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

/// An entry of a list at `base`.
pub(crate) fn write_entry(
    base: &str,
    item: &Item<'_>,
    frame: Frame,
    content: impl FnOnce(&mut Writer),
    out: &mut Writer,
) {
    out.open("entry", &[("xml:base", base)]);
    write_item(item, frame, content, out);
    out.close("entry");
}

/// What is answered where a queue or topic is missing: the service looks the name up among its listed endpoints.
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

fn write_item(item: &Item<'_>, frame: Frame, content: impl FnOnce(&mut Writer), out: &mut Writer) {
    out.element("id", &item.id);
    out.typed("title", &[("type", "text")], item.title);
    out.element("published", &frame.seconds(item.published));
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
