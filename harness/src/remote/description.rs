//! Descriptions of entities in the XML of the administration API.
//!
//! The service requires its own order of elements and ignores those out of order, so descriptions are always written in that
//! order.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Map, Value};
use servicebus_broker::filter::Rule;
use servicebus_config::{
    descriptions::{description_elements, description_root, write_new_rule},
    xml::{ATOM, CONNECT, Element, INSTANCE, Writer},
};

use crate::{
    catalog::{EntityKind, broker_kind},
    text,
};

/// The idle time of a test's entity that sets none, beside the time that the test may wait.
const IDLE: Duration = Duration::from_secs(300);
/// The shortest time that the service cannot represent.
const NEVER: Duration = Duration::from_secs(10_675_199 * 86_400);
/// The service's encoding of "never".
const TIME_SPAN_MAX: &str = "P10675199DT2H48M5.4775807S";
/// The user metadata that marks an entity of a test.
const TEST_METADATA: &str = "made by a test with servicebus-harness";
/// Elements with the name of an entity of the same namespace.
const TARGETS: [&str; 2] = ["ForwardTo", "ForwardDeadLetteredMessagesTo"];

/// The description of an entity.
#[derive(Debug, Clone)]
pub(crate) struct Description {
    kind: EntityKind,
    elements: BTreeMap<String, Element>,
    /// The first rule of a subscription.
    first_rule: Option<Rule>,
}

impl Description {
    /// Describes a test's entity by properties in the official configuration format. It must outlast the longest wait of the
    /// test, because a wait is no use of the entity.
    pub(crate) fn new(
        kind: EntityKind,
        properties: &Value,
        authority: &str,
        longest_wait: Duration,
    ) -> Self {
        let mut description = Self {
            kind,
            elements: BTreeMap::new(),
            first_rule: None,
        };
        description.put("UserMetadata", TEST_METADATA);
        description.change(properties, authority);
        let idle = description.elements.get("AutoDeleteOnIdle");
        if idle.is_none_or(|idle| idle.text == TIME_SPAN_MAX) {
            let idle = IDLE.checked_add(longest_wait).filter(|idle| *idle < NEVER);
            let idle = idle.map_or_else(|| TIME_SPAN_MAX.to_owned(), text::iso8601);
            description.put("AutoDeleteOnIdle", &idle);
        }
        description
    }

    /// Reads the service's description of an entity.
    pub(crate) fn read(kind: EntityKind, element: &Element) -> Self {
        let (known, order) = (
            element.children.iter(),
            description_elements(broker_kind(kind)),
        );
        let known = known.filter(|child| order.contains(&child.name.as_str()));
        Self {
            kind,
            elements: known
                .map(|child| (child.name.clone(), child.clone()))
                .collect(),
            first_rule: None,
        }
    }

    /// Sets the given properties only. The service requires a target as an address.
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
                (true, target) => self.put(name, &format!("sb://{authority}/{target}")),
                (false, text) => self.put(name, text),
            }
        }
    }

    /// Sets the first rule of a subscription.
    pub(crate) fn with_rule(self, rule: Rule) -> Self {
        Self {
            first_rule: Some(rule),
            ..self
        }
    }

    /// Returns whether a test created the entity.
    pub(crate) fn is_of_test(&self) -> bool {
        self.elements
            .get("UserMetadata")
            .is_some_and(|element| element.text == TEST_METADATA)
    }

    /// Returns whether the entity forwards its messages, and its dead-lettered messages.
    pub(crate) fn forwards(&self) -> [bool; 2] {
        TARGETS.map(|name| self.elements.contains_key(name))
    }

    /// Writes the body of a request.
    pub(crate) fn document(&self) -> String {
        document(description_root(broker_kind(self.kind)), |out| {
            for name in description_elements(broker_kind(self.kind)) {
                if let Some(element) = self.elements.get(name) {
                    out.tree(element);
                } else if let Some(rule) = &self.first_rule
                    && name == "DefaultRuleDescription"
                {
                    out.open(name, &[]);
                    write_new_rule(rule, out);
                    out.close(name);
                }
            }
        })
    }

    fn put(&mut self, name: &str, text: &str) {
        let element = Element {
            name: name.to_owned(),
            text: text.to_owned(),
            ..Element::default()
        };
        self.elements.insert(name.to_owned(), element);
    }
}

/// Writes a rule as the body of a request.
pub(crate) fn rule_document(rule: &Rule) -> String {
    document("RuleDescription", |out| write_new_rule(rule, out))
}

fn document(root: &str, content: impl FnOnce(&mut Writer)) -> String {
    let mut out = Writer::new();
    out.open("entry", &[("xmlns", ATOM)]);
    out.open("content", &[("type", "application/xml")]);
    out.open(root, &[("xmlns", CONNECT), ("xmlns:i", INSTANCE)]);
    content(&mut out);
    for name in [root, "content", "entry"] {
        out.close(name);
    }
    out.finish()
}

/// Returns the entity name in an address of the service.
pub(crate) fn target(address: &str) -> &str {
    let path = address.split_once("://").map(|(_, rest)| rest);
    path.and_then(|rest| rest.split_once('/'))
        .map_or(address, |(_, path)| path.trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn elements_are_in_the_services_order() {
        let properties = json!({
            "AutoDeleteOnIdle": TIME_SPAN_MAX, "ForwardTo": "audit", "LockDuration": "PT30S",
            "ForwardDeadLetteredMessagesTo": "",
        });
        let description =
            Description::new(EntityKind::Queue, &properties, "h", Duration::from_secs(60));
        let document = description.document();
        let inner = "<LockDuration>PT30S</LockDuration><ForwardTo>sb://h/audit</ForwardTo><UserMetadata>made by a test with servicebus-harness</UserMetadata><AutoDeleteOnIdle>PT6M</AutoDeleteOnIdle></QueueDescription>";
        assert!(document.contains(inner), "{document}");
        assert_eq!(description.forwards(), [true, false]);
        assert!(description.is_of_test());
    }

    #[test]
    fn an_update_keeps_other_properties() {
        let read = "<d><LockDuration>PT1M</LockDuration><SizeInBytes>0</SizeInBytes><AutoDeleteOnIdle>PT6M</AutoDeleteOnIdle></d>";
        let element = servicebus_config::xml::read(read.as_bytes()).unwrap();
        let mut description = Description::read(EntityKind::Queue, &element);
        description.change(&json!({ "MaxDeliveryCount": 3 }), "h");
        let inner = "<LockDuration>PT1M</LockDuration><MaxDeliveryCount>3</MaxDeliveryCount><AutoDeleteOnIdle>PT6M</AutoDeleteOnIdle></QueueDescription>";
        assert!(description.document().contains(inner));
        assert!(!description.is_of_test());
    }

    #[test]
    fn a_subscription_is_created_with_its_first_rule() {
        let text = r#"{"UserConfig":{"Namespaces":[{"Name":"n","Queues":[],"Topics":[{"Name":"t","Subscriptions":[
            {"Name":"s","Rules":[{"Name":"r","Properties":{"FilterType":"Sql",
                "SqlFilter":{"SqlExpression":"a < 1"}}}]}]}]}]}}"#;
        let config = servicebus_config::Config::parse(text).unwrap();
        let rule = config.namespaces[0].topics[0].subscriptions[0].rules[0].clone();
        let inner = r#"<Filter i:type="SqlFilter"><SqlExpression>a &lt; 1</SqlExpression><CompatibilityLevel>20</CompatibilityLevel><Parameters/></Filter><Action i:type="EmptyRuleAction"/><Name>r</Name>"#;
        assert!(rule_document(&rule).contains(inner));
        let description =
            Description::new(EntityKind::Subscription, &json!({}), "h", Duration::ZERO);
        let document = description.with_rule(rule).document();
        let element = format!("<DefaultRuleDescription>{inner}</DefaultRuleDescription>");
        assert!(document.contains(&element), "{document}");
    }

    #[test]
    fn forwarding_targets_are_read_as_names() {
        for address in ["sb://h:1/a/b", "https://h/a/b/", "a/b"] {
            assert_eq!(target(address), "a/b");
        }
    }
}
