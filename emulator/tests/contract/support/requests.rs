//! Bodies of `$management` requests, and what its replies carry (wire.md §6.2).

use serde_amqp::Value;
use serde_amqp::primitives::Array;
use uuid::Uuid;

use super::assert_starts_with;
use super::node::{Node, Reply};
use super::peer::Peer;
use servicebus_test_support::frame::untracked;
use servicebus_test_support::message::{Message, Received};
use servicebus_test_support::value::{binary, list, long, map, text, uint, uuid};

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
        let reply = self.call(node, "peek-message", peek_from(0, Value::Int(1000)));
        match reply.status() {
            204 => Vec::new(),
            _ => peeked(&reply),
        }
    }

    /// Settles by token what must be settled.
    pub(crate) fn settle_by_token(&mut self, node: &Node, status: &str, token: Uuid) {
        let reply = self.call(node, "update-disposition", disposition(status, &[token]));
        assert_eq!((reply.status(), &reply.body), (200, &Value::Null));
    }
}
