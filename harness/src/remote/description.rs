//! Descriptions of entities in the XML of the administration API.
//!
//! The service takes elements in its own order only and keeps what stands elsewhere without heeding it, so they are
//! always written in that order.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use servicebus_emulator::{broker, description_elements};

use super::xml::{Element, escape};
use crate::kind::EntityKind;

/// The Atom Syndication Format.
const ATOM: &str = "http://www.w3.org/2005/Atom";
/// Descriptions of entities.
const CONNECT: &str = "http://schemas.microsoft.com/netservices/2010/10/servicebus/connect";
/// `i:type`.
const INSTANCE: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// What an entity of a test has that says nothing of idleness.
const IDLE: &str = "PT5M";
/// How the service writes "never".
const FOREVER: &str = "P10675199DT2H48M5.4775807S";
/// By what an entity is known that a test made.
const MARK: &str = "made by a test with servicebus-harness";
/// Elements that name an entity of the same namespace.
const TARGETS: [&str; 2] = ["ForwardTo", "ForwardDeadLetteredMessagesTo"];

/// What an entity is, or is to be.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    kind: EntityKind,
    /// What stands in each element.
    elements: BTreeMap<String, String>,
}

impl Description {
    /// Describes an entity that a test makes, by properties of the official configuration format.
    pub(crate) fn new(kind: EntityKind, properties: &Value, authority: &str) -> Self {
        let mut description = Self {
            kind,
            elements: BTreeMap::new(),
        };
        description.put("UserMetadata", MARK.to_owned());
        description.change(properties, authority);
        let idle = description.elements.get("AutoDeleteOnIdle");
        if idle.is_none_or(|idle| idle == FOREVER) {
            description.put("AutoDeleteOnIdle", IDLE.to_owned());
        }
        description
    }

    /// Reads what the service says of one.
    pub(crate) fn read(kind: EntityKind, element: &Element) -> Self {
        let (known, order) = (element.children.iter(), order(kind));
        let known = known.filter(|child| order.contains(&child.name.as_str()));
        let elements = known.map(|child| (child.name.clone(), child.inner.clone()));
        Self {
            kind,
            elements: elements.collect(),
        }
    }

    /// Sets what the properties say, and nothing else. A target is written as the address that the service wants.
    pub(crate) fn change(&mut self, properties: &Value, authority: &str) {
        let nothing = Map::new();
        for (name, value) in properties.as_object().unwrap_or(&nothing) {
            let text = match value {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            match (TARGETS.contains(&name.as_str()), text.as_str()) {
                (true, "") => {
                    self.elements.remove(name);
                }
                (true, target) => self.put(name, escape(&format!("sb://{authority}/{target}"))),
                (false, text) => self.put(name, escape(text)),
            }
        }
    }

    /// Sets the rule that a subscription begins with.
    pub(crate) fn with_rule(mut self, rule: String) -> Self {
        self.put("DefaultRuleDescription", rule);
        self
    }

    /// Whether a test made it.
    pub(crate) fn is_ours(&self) -> bool {
        self.elements
            .get("UserMetadata")
            .is_some_and(|text| text == MARK)
    }

    /// Whether messages go on from it, or dead letters do.
    pub(crate) fn forwards(&self) -> [bool; 2] {
        TARGETS.map(|name| self.elements.contains_key(name))
    }

    /// Writes it as the body of a request.
    pub(crate) fn document(&self) -> String {
        let parts = order(self.kind).into_iter().filter_map(|name| {
            let inner = self.elements.get(name)?;
            Some(format!("<{name}>{inner}</{name}>"))
        });
        let root = match self.kind {
            EntityKind::Queue => "QueueDescription",
            EntityKind::Topic => "TopicDescription",
            EntityKind::Subscription => "SubscriptionDescription",
        };
        document(root, &String::from_iter(parts))
    }

    fn put(&mut self, name: &str, inner: String) {
        self.elements.insert(name.to_owned(), inner);
    }
}

/// Writes a description as the body of a request.
pub(crate) fn document(root: &str, inner: &str) -> String {
    format!(
        r#"<entry xmlns="{ATOM}"><content type="application/xml"><{root} xmlns="{CONNECT}" xmlns:i="{INSTANCE}">{inner}</{root}></content></entry>"#
    )
}

/// Returns the name of the entity at an address that the service stored.
pub(crate) fn target(address: &str) -> &str {
    let path = address.split_once("://").map(|(_, rest)| rest);
    path.and_then(|rest| rest.split_once('/'))
        .map_or(address, |(_, path)| path.trim_end_matches('/'))
}

/// The elements of a description, in the order of the service.
fn order(kind: EntityKind) -> Vec<&'static str> {
    description_elements(match kind {
        EntityKind::Queue => broker::EntityKind::Queue,
        EntityKind::Topic => broker::EntityKind::Topic,
        EntityKind::Subscription => broker::EntityKind::Subscription,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn elements_stand_in_the_services_order() {
        let properties = json!({
            "AutoDeleteOnIdle": FOREVER, "ForwardTo": "audit", "LockDuration": "PT30S",
            "ForwardDeadLetteredMessagesTo": "",
        });
        let description = Description::new(EntityKind::Queue, &properties, "h");
        let document = description.document();
        let inner = "<LockDuration>PT30S</LockDuration><ForwardTo>sb://h/audit</ForwardTo><UserMetadata>made by a test with servicebus-harness</UserMetadata><AutoDeleteOnIdle>PT5M</AutoDeleteOnIdle></QueueDescription>";
        assert!(document.contains(inner), "{document}");
        assert_eq!(description.forwards(), [true, false]);
        assert!(description.is_ours());
    }

    #[test]
    fn what_is_read_stays_but_for_what_is_changed() {
        let read = "<d><LockDuration>PT1M</LockDuration><SizeInBytes>0</SizeInBytes><AutoDeleteOnIdle>PT6M</AutoDeleteOnIdle></d>";
        let element = Element::read(read).unwrap();
        let mut description = Description::read(EntityKind::Queue, &element);
        description.change(&json!({ "MaxDeliveryCount": 3 }), "h");
        let inner = "<LockDuration>PT1M</LockDuration><MaxDeliveryCount>3</MaxDeliveryCount><AutoDeleteOnIdle>PT6M</AutoDeleteOnIdle></QueueDescription>";
        assert!(description.document().contains(inner));
        assert!(!description.is_ours());
    }

    #[test]
    fn targets_are_known_by_their_names() {
        for address in ["sb://h:1/a/b", "https://h/a/b/", "a/b"] {
            assert_eq!(target(address), "a/b");
        }
    }
}
