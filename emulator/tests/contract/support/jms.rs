//! Connections and links as qpid-jms asks for them (spec/jms.md).

use serde_amqp::Value;
use serde_amqp::primitives::Array;

use super::bus::{Bus, queues};
use super::link::{Attach, Link};
use super::peer::{Open, Peer};
use servicebus_test_support::frame::DETACH;
use servicebus_test_support::value::{composite, described_list, map, symbol, text, uint};

/// The lifetime policy of nodes that go with their link.
const DELETE_ON_CLOSE: u64 = 0x2b;

/// An array of symbols.
pub(crate) fn symbols(names: &[&str]) -> Value {
    Value::Array(Array(names.iter().map(|name| symbol(name)).collect()))
}

impl Open {
    /// A client of JMS 2.0 with this identifier, and other properties of its `open`.
    pub(crate) fn jms(client_id: &str, others: &[(&str, Value)]) -> Self {
        let provider = (
            symbol("com.microsoft:is-client-provider"),
            Value::Bool(true),
        );
        let others = others
            .iter()
            .map(|(name, value)| (symbol(name), value.clone()));
        let mut rest = vec![Value::Null; 7];
        rest[5] = symbols(&[
            "sole-connection-for-container",
            "DELAYED_DELIVERY",
            "ANONYMOUS-RELAY",
            "SHARED-SUBS",
        ]);
        rest.push(map([provider].into_iter().chain(others)));
        Self {
            rest,
            ..Self::named(client_id)
        }
    }
}

impl Bus {
    /// A premium namespace with these queues.
    pub(crate) fn premium(names: &[&str]) -> Self {
        let plain: Vec<_> = names.iter().map(|&name| (name, "")).collect();
        Self::configured(&queues(r#""Tier":"premium""#, &plain))
    }

    /// A client of JMS 2.0 that may do everything.
    pub(crate) fn jms(&self, client_id: &str) -> Peer {
        self.client_as(&Open::jms(client_id, &[]))
    }

    /// The names of the subscriptions of a topic, as the control API lists them.
    pub(crate) fn subscriptions_of(&self, topic: &str) -> Vec<String> {
        let topic = self.http.get(&format!("~/topics/{topic}")).ok();
        let names = topic["subscriptions"].as_array().expect("it has some");
        let names = names.iter().map(|name| name.as_str().expect("a name"));
        names.map(str::to_owned).collect()
    }
}

impl Attach {
    /// A producer to a queue or topic, which `kind` says.
    pub(crate) fn producer(address: &str, kind: &str) -> Self {
        let target = [
            text(address),
            uint(0),
            Value::Null,
            uint(0),
            Value::Bool(false),
        ];
        let target = target.into_iter().chain([Value::Null, symbols(&[kind])]);
        Self {
            rcv_settle_mode: 0,
            target: composite(0x29, target),
            ..Self::sender(address)
        }
    }

    /// A consumer of a queue.
    pub(crate) fn consumer(address: &str) -> Self {
        Self::receiver(address).with_source(address, false, &["queue"], &Value::Null)
    }

    /// A browser of a queue.
    pub(crate) fn queue_browser(address: &str) -> Self {
        Self::deleting(address).with_source_of(address, 0, "copy", &["queue"], &Value::Null)
    }

    /// A consumer of a topic under the name of a link.
    pub(crate) fn subscriber(
        link: &str,
        topic: &str,
        is_durable: bool,
        capabilities: &[&str],
    ) -> Self {
        let mut all = vec!["topic"];
        all.extend(capabilities);
        Self::receiver(topic)
            .named(link)
            .with_source(topic, is_durable, &all, &Value::Null)
    }

    /// The same with a selector.
    pub(crate) fn selecting(self, selector: &str) -> Self {
        let (_, fields) = described_list(&self.source);
        let mut fields = fields.to_vec();
        fields[7] = jms_selector(selector);
        Self {
            source: composite(0x28, fields),
            ..self
        }
    }

    fn with_source(
        self,
        address: &str,
        is_durable: bool,
        capabilities: &[&str],
        filter: &Value,
    ) -> Self {
        let (durable, mode) = if is_durable { (2, "copy") } else { (0, "") };
        self.with_source_of(address, durable, mode, capabilities, filter)
    }

    fn with_source_of(
        self,
        address: &str,
        durable: u32,
        mode: &str,
        capabilities: &[&str],
        filter: &Value,
    ) -> Self {
        let expiry = if durable == 2 { "never" } else { "link-detach" };
        let mode = if mode.is_empty() {
            Value::Null
        } else {
            symbol(mode)
        };
        let fields = [
            text(address),
            uint(durable),
            symbol(expiry),
            uint(0),
            Value::Bool(false),
            Value::Null,
            mode,
            filter.clone(),
            Value::Null,
            symbols(&["amqp:accepted:list", "amqp:rejected:list"]),
            symbols(capabilities),
        ];
        Self {
            source: composite(0x28, fields),
            target: composite(0x29, []),
            rcv_settle_mode: 0,
            ..self
        }
    }

    /// What ends a durable subscription.
    pub(crate) fn unsubscriber(link: &str, desired: &[&str]) -> Self {
        Self {
            source: Value::Null,
            target: composite(0x29, []),
            desired: match desired {
                [] => Value::Null,
                _ => symbols(desired),
            },
            rcv_settle_mode: 0,
            ..Self::receiver(link).named(link)
        }
    }

    /// A link whose queue or topic is made for it, with this lifetime policy.
    pub(crate) fn temporary(name: &str, kind: &str, policy: u64) -> Self {
        let node = map([(symbol("lifetime-policy"), composite(policy, []))]);
        let fields = [
            Value::Null,
            uint(0),
            symbol("link-detach"),
            uint(0),
            Value::Bool(true),
            node,
            symbols(&[kind]),
        ];
        Self {
            source: composite(0x28, []),
            target: composite(0x29, fields),
            ..Self::sender(name).named(&format!("qpid-jms:{kind}-creator:{name}"))
        }
    }
}

impl Peer {
    /// A temporary queue or topic: the link that it lasts as long as, and its address.
    pub(crate) fn temporary(&mut self, name: &str, kind: &str) -> (Link, String) {
        let link = self.attached(&Attach::temporary(name, kind, DELETE_ON_CLOSE));
        let (_, target) = described_list(link.answer.field(6));
        let Value::String(address) = target[0].clone() else {
            panic!("no address: {target:?}");
        };
        (link, address)
    }

    /// Detaches without closing, as the consumer of a durable subscription does.
    pub(crate) fn leave(&mut self, link: &Link) {
        self.frame(
            link.channel,
            DETACH,
            &[uint(link.handle), Value::Bool(false)],
        );
        self.detached(link);
    }
}

/// The filter set of a source with this selector.
pub(crate) fn jms_selector(selector: &str) -> Value {
    let filter = Value::Described(Box::new(serde_amqp::described::Described {
        descriptor: serde_amqp::descriptor::Descriptor::Code(0x0000_468c_0000_0004),
        value: text(selector),
    }));
    map([(symbol("jms-selector"), filter)])
}
