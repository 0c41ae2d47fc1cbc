//! What a bus says it holds.
//!
//! Read from the queues that the control API lists, else from the topology the bus was started with, and only
//! as far as messages need it: the names of the queues, and the settings that explain where a message is.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;
use servicebus_emulator::config::Config;

use crate::{control::Control, mailbox::UnknownQueue, text};

/// The queues of a namespace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Catalog {
    queues: Vec<DeclaredQueue>,
}

/// What matters about a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DeclaredQueue {
    pub(crate) name: String,
    pub(crate) max_delivery_count: Option<u32>,
    pub(crate) dead_letters_expired: bool,
    pub(crate) forwards_to: Option<String>,
}

impl Catalog {
    /// Takes what the first namespace of a configuration declares.
    pub(crate) fn declared(config: &Config) -> Self {
        let namespace = config.namespaces.first();
        let queues = namespace
            .into_iter()
            .flat_map(|namespace| &namespace.queues);
        let queues = queues.map(|(path, description)| DeclaredQueue {
            name: path.to_string(),
            max_delivery_count: Some(description.max_delivery_count),
            dead_letters_expired: description.dead_lettering_on_message_expiration,
            forwards_to: description.forward_to.as_ref().map(ToString::to_string),
        });
        Self {
            queues: queues.collect(),
        }
    }

    /// Asks the emulator; nothing when it does not say.
    pub(crate) async fn fetch(control: &Control) -> Option<Self> {
        let listed: Listed = control.get("queues", &[]).await.ok()?;
        Some(listed.into())
    }

    /// Finds a queue by name, whatever the letter case.
    pub(crate) fn queue(&self, name: &str) -> Option<&DeclaredQueue> {
        let mut queues = self.queues.iter();
        queues.find(|queue| queue.name.eq_ignore_ascii_case(name))
    }

    /// Names the queues there are, when the one that was asked for is not among them.
    pub(crate) fn missing(&self, name: &str) -> Option<UnknownQueue> {
        if self.queue(name).is_some() {
            return None;
        }
        let known = self.queues.iter().map(|queue| queue.name.clone()).collect();
        Some(UnknownQueue {
            name: name.to_owned(),
            known: text::nearest_first(name, known),
        })
    }
}

/// The list of the control API, as far as it is read.
#[derive(Debug, Deserialize)]
struct Listed {
    queues: Vec<Queue>,
}

#[derive(Debug, Deserialize)]
struct Queue {
    name: String,
    #[serde(default)]
    properties: BTreeMap<String, Value>,
}

impl From<Listed> for Catalog {
    fn from(listed: Listed) -> Self {
        Self {
            queues: listed.queues.into_iter().map(DeclaredQueue::from).collect(),
        }
    }
}

impl From<Queue> for DeclaredQueue {
    fn from(queue: Queue) -> Self {
        let number = |name| queue.properties.get(name).and_then(Value::as_u64);
        let flag = |name| queue.properties.get(name).and_then(Value::as_bool);
        Self {
            max_delivery_count: number("MaxDeliveryCount")
                .and_then(|count| u32::try_from(count).ok()),
            dead_letters_expired: flag("DeadLetteringOnMessageExpiration").unwrap_or(false),
            forwards_to: queue
                .properties
                .get("ForwardTo")
                .and_then(Value::as_str)
                .filter(|target| !target.is_empty())
                .map(str::to_owned),
            name: queue.name,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn catalog() -> Catalog {
        let listed = r#"{"queues":[
            {"name":"billing","properties":{"ForwardTo":"orders"}},
            {"name":"orders","properties":{"MaxDeliveryCount":3,"DeadLetteringOnMessageExpiration":true,"ForwardTo":""}}
        ]}"#;
        serde_json::from_str::<Listed>(listed).unwrap().into()
    }

    #[test]
    fn a_queue_is_found_in_any_case() {
        let catalog = catalog();
        let orders = catalog.queue("Orders").unwrap();
        assert_eq!(orders.max_delivery_count, Some(3));
        assert!(orders.dead_letters_expired);
        assert_eq!(orders.forwards_to, None);
        let billing = catalog.queue("billing").unwrap();
        assert_eq!(billing.forwards_to.as_deref(), Some("orders"));
        assert_eq!(catalog.missing("ORDERS"), None);
    }

    #[test]
    fn an_unknown_queue_comes_with_the_known_ones() {
        assert_eq!(
            catalog().missing("ordres").unwrap().to_string(),
            "there is no queue \"ordres\"; the bus has orders, billing"
        );
    }
}
