//! `$cbs` and `$management`: sends requests and reads replies (wire.md §6.2).

use serde_amqp::Value;
use serde_amqp::primitives::{Array, OrderedMap};
use servicebus_emulator::auth::{Key, sas};
use servicebus_test_support::frame::untracked;
use servicebus_test_support::message::{Message, Received};
use servicebus_test_support::value::{binary, composite, list, long, map, text, uint, uuid};
use uuid::Uuid;

use super::assert_starts_with;
use super::bus::in_an_hour;
use super::link::{Attach, Link};
use super::peer::Peer;
use super::receiving::Delivery;

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
    /// Attaches to a node with ample credit, as Go does: the target's address routes the replies.
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

    /// Puts a token of the well-known key, for the whole namespace.
    pub(crate) fn let_in(&mut self) {
        let token = sas::sign("sb://localhost/", &Key::well_known(), in_an_hour());
        let reply = self.put_token("sb://localhost/", &token);
        assert_eq!(reply.cbs_status(), 202, "{reply:?}");
    }

    /// Puts a token at `$cbs`.
    pub(crate) fn put_token(&mut self, audience: &str, token: &str) -> Reply {
        let cbs = self.node("$cbs");
        let reply = self.ask(&cbs, &token_request(&cbs, audience, token));
        self.detach(&cbs.requests);
        self.detach(&cbs.replies);
        reply
    }
}

/// A request that puts a token.
pub(crate) fn token_request(cbs: &Node, audience: &str, token: &str) -> Message {
    Message::request(text("token-1"), text(&cbs.reply_to), text(token))
        .application("operation", text("put-token"))
        .application("type", text("servicebus.windows.net:sastoken"))
        .application("name", text(audience))
}

/// The body of `peek-message`.
pub(crate) fn peek_from(from: i64, count: Value) -> Value {
    map([
        (text("from-sequence-number"), long(from)),
        (text("message-count"), count),
    ])
}

/// The entry `lock-tokens`.
pub(crate) fn tokens(tokens: &[Uuid]) -> (Value, Value) {
    let array: Vec<Value> = tokens.iter().map(|&token| uuid(token)).collect();
    (text("lock-tokens"), Value::Array(Array(array)))
}

/// The body of `update-disposition`.
pub(crate) fn disposition(status: &str, lock_tokens: &[Uuid]) -> Value {
    map([
        (text("disposition-status"), text(status)),
        tokens(lock_tokens),
    ])
}

/// The entry `sequence-numbers`.
pub(crate) fn numbers(numbers: &[i64]) -> (Value, Value) {
    let array: Vec<Value> = numbers.iter().map(|&number| long(number)).collect();
    (text("sequence-numbers"), Value::Array(Array(array)))
}

/// The body of `receive-by-sequence-number`: 0 deletes, 1 locks.
pub(crate) fn receive_by(sequence_numbers: &[i64], mode: u32) -> Value {
    let mode = (text("receiver-settle-mode"), uint(mode));
    map([numbers(sequence_numbers), mode])
}

/// The body of `schedule-message`, as JavaScript writes it.
pub(crate) fn schedule(messages: &[Message]) -> Value {
    let entry = |message: &Message| {
        map([
            (text("message-id"), text("repeated")),
            (text("message"), binary(&message.encode())),
        ])
    };
    map([(text("messages"), list(messages.iter().map(entry)))])
}

/// The numbers in the reply to `schedule-message`: an array of long even when there is one.
pub(crate) fn scheduled(reply: &Reply) -> Vec<i64> {
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let Value::Array(Array(numbers)) = reply.field("sequence-numbers") else {
        panic!("sequence-numbers are an array: {reply:?}");
    };
    let number = |number: &Value| match number {
        Value::Long(number) => *number,
        other => panic!("a sequence number is {other:?}"),
    };
    numbers.iter().map(number).collect()
}

/// The messages of a peek reply: a list of maps with one entry each.
pub(crate) fn peeked(reply: &Reply) -> Vec<Received> {
    let only = |entry: &Value| match entry {
        Value::Map(map) if map.len() == 1 => match map.get(&text("message")) {
            Some(Value::Binary(bytes)) => Received::parse(bytes),
            other => panic!("message is {other:?}"),
        },
        other => panic!("an entry is {other:?}"),
    };
    entries(reply).iter().map(only).collect()
}

/// The messages of a reply to `receive-by-sequence-number`, each with its token.
pub(crate) fn received(reply: &Reply) -> Vec<(Uuid, Received)> {
    let both = |entry: &Value| match entry {
        Value::Map(map) => match (map.get(&text("lock-token")), map.get(&text("message"))) {
            (Some(Value::Uuid(token)), Some(Value::Binary(bytes))) => {
                let token = Uuid::from_bytes(token.clone().into_inner());
                (token, Received::parse(bytes))
            }
            other => panic!("token and message are {other:?}"),
        },
        other => panic!("an entry is {other:?}"),
    };
    entries(reply).iter().map(both).collect()
}

fn entries(reply: &Reply) -> &[Value] {
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let Value::List(entries) = reply.field("messages") else {
        panic!("messages are a list: {reply:?}");
    };
    entries
}

pub(crate) fn ids(messages: &[Received]) -> Vec<String> {
    messages.iter().map(Received::id).collect()
}

/// Asserts that a request was refused with this status and condition, and returns the words.
#[track_caller]
pub(crate) fn refused_with(reply: &Reply, status: i32, condition: &str) -> String {
    let text = reply.text();
    assert_eq!(
        (reply.status(), reply.condition().as_str()),
        (status, condition),
        "{text}"
    );
    untracked(&text).0.to_owned()
}

#[track_caller]
pub(crate) fn assert_lock_lost(reply: &Reply) {
    let words = refused_with(reply, 410, "com.microsoft:message-lock-lost");
    assert_starts_with(&words, "The lock supplied is invalid.");
}

impl Peer {
    /// Everything that peeking at a node shows.
    pub(crate) fn peek_all(&mut self, node: &Node) -> Vec<Received> {
        let reply = self.peek(node, 0, 1000);
        match reply.status() {
            204 => Vec::new(),
            _ => peeked(&reply),
        }
    }

    pub(crate) fn peek(&mut self, node: &Node, from: i64, count: i32) -> Reply {
        self.call(node, "peek-message", peek_from(from, Value::Int(count)))
    }

    pub(crate) fn schedule(&mut self, node: &Node, messages: &[Message]) -> Reply {
        self.call(node, "schedule-message", schedule(messages))
    }

    pub(crate) fn cancel_scheduled(&mut self, node: &Node, scheduled: &[i64]) -> Reply {
        let body = map([numbers(scheduled)]);
        self.call(node, "cancel-scheduled-message", body)
    }

    pub(crate) fn update_disposition(
        &mut self,
        node: &Node,
        status: &str,
        lock_tokens: &[Uuid],
    ) -> Reply {
        let body = disposition(status, lock_tokens);
        self.call(node, "update-disposition", body)
    }

    /// Settles by token what must be settled.
    pub(crate) fn settle_by_token(&mut self, node: &Node, status: &str, token: Uuid) {
        let reply = self.update_disposition(node, status, &[token]);
        assert_eq!((reply.status(), &reply.body), (200, &Value::Null));
    }
}
