//! Scheduling in a transaction: a request to `$management` that belongs to it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fe2o3_amqp::transaction::{OwnedTransaction, TransactionPosting};
use fe2o3_amqp::types::messaging::annotations::{Annotations, OwnedKey};
use fe2o3_amqp::types::messaging::message::__private::Serializable;
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body, Data, Message, MessageAnnotations, Outcome, Properties,
    Source, Target,
};
use fe2o3_amqp::types::primitives::{Binary, OrderedMap, Timestamp, Value};
use fe2o3_amqp::{Receiver, Sender};
use servicebus_harness::prelude::*;
use servicebus_test_support::client::{Client, message, within};

use super::bus_with;
use super::peer::{commit, roll_back};
use crate::conformance::client::done;

/// Where replies go, in this client.
const REPLY_TO: &str = "answers";

/// The links of a client to the `$management` of "orders".
struct Node {
    requests: Sender,
    replies: Receiver,
}

impl Node {
    async fn open(peer: &mut Client) -> Self {
        let address = "orders/$management";
        let source = Source::builder().address(address).build();
        let target = Target::builder().address(REPLY_TO).build();
        Self {
            replies: peer.receiver_between(source, target).await.unwrap(),
            requests: peer.sender(address).await,
        }
    }

    /// Schedules a message for a minute from now in a transaction, and returns its number.
    async fn schedule(&mut self, transaction: &OwnedTransaction) -> i64 {
        let asking = transaction.post(&mut self.requests, request());
        let outcome = within("the request", asking).await;
        assert!(matches!(outcome, Ok(Outcome::Accepted(_))), "{outcome:?}");
        done("the credit", self.replies.set_credit(1)).await;
        let reply = within("the reply", self.replies.recv::<Body<Value>>()).await;
        let reply = reply.expect("it is received");
        let Body::Value(AmqpValue(Value::Map(answer))) = reply.body() else {
            panic!("not an answer: {reply:?}");
        };
        match answer.get(&Value::from("sequence-numbers")) {
            Some(Value::Array(numbers)) => match numbers.0[..] {
                [Value::Long(number)] => number,
                _ => panic!("not one number: {answer:?}"),
            },
            _ => panic!("no numbers: {answer:?}"),
        }
    }
}

fn request() -> Message<AmqpValue<Value>> {
    let message = serde_amqp::to_vec(&Serializable(scheduled())).expect("it can be encoded");
    let entry = map([("message", Value::Binary(Binary::from(message)))]);
    let properties = Properties::builder()
        .message_id("request-1".to_owned())
        .reply_to(REPLY_TO);
    let operation = ("operation", "com.microsoft:schedule-message");
    Message {
        header: None,
        delivery_annotations: None,
        message_annotations: None,
        properties: Some(properties.build()),
        application_properties: Some(
            ApplicationProperties::builder()
                .insert(operation.0, operation.1)
                .build(),
        ),
        body: AmqpValue(map([("messages", Value::List(vec![entry]))])),
        footer: None,
    }
}

fn scheduled() -> Message<Data> {
    let due = SystemTime::now() + Duration::from_secs(60);
    let due = due.duration_since(UNIX_EPOCH).expect("it is after 1970");
    let due = Timestamp::from(i64::try_from(due.as_millis()).expect("it is before the end"));
    let mut annotations = Annotations::new();
    let name = OwnedKey::from("x-opt-scheduled-enqueue-time");
    annotations.insert(name, Value::Timestamp(due));
    Message {
        message_annotations: Some(MessageAnnotations(annotations)),
        ..message("later")
    }
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    let entries = entries.map(|(key, value)| (Value::from(key), value));
    Value::Map(OrderedMap::from_iter(entries))
}

#[tokio::test]
async fn a_message_scheduled_in_a_transaction_keeps_its_sequence_number() {
    let (servicebus, mut peer) = bus_with(&[]).await;
    let orders = servicebus.queue("orders");
    let mut node = Node::open(&mut peer).await;
    let transaction = peer.declare().await;
    let number = node.schedule(&transaction).await;
    assert_message_count!(orders, scheduled = 0).await;
    commit(transaction).await;
    assert_message_count!(orders, scheduled = 1).await;
    orders.cancel_scheduled(number).await;
    assert_empty!(orders).await;
}

#[tokio::test]
async fn scheduled_messages_are_discarded_by_a_rollback() {
    let (servicebus, mut peer) = bus_with(&[]).await;
    let orders = servicebus.queue("orders");
    let mut node = Node::open(&mut peer).await;
    let transaction = peer.declare().await;
    node.schedule(&transaction).await;
    roll_back(transaction).await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    assert_empty!(orders).await;
}
