//! `$cbs` and `$management`: requests out, replies in.

use serde_amqp::Value;
use serde_amqp::primitives::OrderedMap;
use servicebus_emulator::auth::{Key, sas};

use super::bus::in_an_hour;
use super::link::{Attach, Link};
use super::peer::Peer;
use super::receiving::Delivery;
use servicebus_test_support::message::Message;
use servicebus_test_support::value::{composite, text};

/// A pair of links to a node.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) requests: Link,
    pub(crate) replies: Link,
    pub(crate) reply_to: String,
}

/// What a node answered.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) delivery: Delivery,
    pub(crate) correlation_id: Value,
    pub(crate) body: Value,
}

impl Reply {
    pub(crate) fn new(delivery: Delivery) -> Self {
        let body = delivery.message.value().cloned();
        Self {
            correlation_id: delivery.message.property(5),
            body: body.unwrap_or_else(|| panic!("replies have a value: {delivery:?}")),
            delivery,
        }
    }

    fn property(&self, name: &str) -> Value {
        self.delivery.message.application(name)
    }

    /// The status of a `$management` reply, which must be an `int`.
    pub(crate) fn status(&self) -> i32 {
        self.int("statusCode")
    }

    /// The status of a `$cbs` reply, which must be an `int`.
    pub(crate) fn cbs_status(&self) -> i32 {
        self.int("status-code")
    }

    fn int(&self, name: &str) -> i32 {
        match self.property(name) {
            Value::Int(status) => status,
            other => panic!("{name} is {other:?}"),
        }
    }

    /// The error condition, which must be a symbol; empty when there is none.
    pub(crate) fn condition(&self) -> String {
        match self.property("errorCondition") {
            Value::Symbol(condition) => condition.into_inner(),
            Value::Null => String::new(),
            other => panic!("the condition is {other:?}"),
        }
    }

    /// The description, which must be a string, in either spelling.
    pub(crate) fn text(&self) -> String {
        let names = ["statusDescription", "status-description"];
        match names.map(|name| self.property(name)) {
            [Value::String(text), Value::Null] | [Value::Null, Value::String(text)] => text,
            other => panic!("the description is {other:?}"),
        }
    }

    /// An entry of a body that is a map with string keys.
    pub(crate) fn field(&self, name: &str) -> &Value {
        let entries: &OrderedMap<Value, Value> = match &self.body {
            Value::Map(map) => map,
            other => panic!("the body is {other:?}"),
        };
        let found = entries.get(&text(name));
        found.unwrap_or_else(|| panic!("there is no {name}: {self:?}"))
    }
}

impl Peer {
    /// Attaches to a node with plenty of credit, as Go does: replies find their way by the target's address.
    pub(crate) fn node(&mut self, address: &str) -> Node {
        let reply_to = format!("{address}-replies-{}", self.next_handle);
        let node = self.node_without_credit(address, &reply_to);
        self.credit(&node.replies, 10_000);
        node
    }

    pub(crate) fn node_without_credit(&mut self, address: &str, reply_to: &str) -> Node {
        let requests = Attach::sender(address).named(&format!("{reply_to}:sender"));
        let replies = Attach {
            name: format!("{reply_to}:receiver"),
            target: composite(0x29, [text(reply_to)]),
            ..Attach::receiver(address)
        };
        Node {
            requests: self.attached(&requests),
            replies: self.attached(&replies),
            reply_to: reply_to.to_owned(),
        }
    }

    /// Sends a request of `$management` and waits for the reply.
    pub(crate) fn call(&mut self, node: &Node, operation: &str, body: Value) -> Reply {
        let reply_to = text(&node.reply_to);
        let request = Message::request(text("request-1"), reply_to, body)
            .application("operation", text(&format!("com.microsoft:{operation}")));
        self.ask(node, &request)
    }

    /// Sends any request and waits for the reply, which comes after the request was accepted.
    pub(crate) fn ask(&mut self, node: &Node, request: &Message) -> Reply {
        self.send(&node.requests, request);
        Reply::new(self.receive(&node.replies))
    }

    /// Shows a token of the key that everybody knows, for the whole namespace.
    pub(crate) fn let_in(&mut self) {
        let token = sas::sign("sb://localhost/", &Key::well_known(), in_an_hour());
        let reply = self.put_token("sb://localhost/", &token);
        assert_eq!(reply.cbs_status(), 202, "{reply:?}");
    }

    /// Puts a token at `$cbs`.
    pub(crate) fn put_token(&mut self, audience: &str, token: &str) -> Reply {
        let cbs = self.node("$cbs");
        let reply_to = text(&cbs.reply_to);
        let request = Message::request(text("token-1"), reply_to, text(token))
            .application("operation", text("put-token"))
            .application("type", text("servicebus.windows.net:sastoken"))
            .application("name", text(audience));
        let reply = self.ask(&cbs, &request);
        self.detach(&cbs.requests);
        self.detach(&cbs.replies);
        reply
    }
}
