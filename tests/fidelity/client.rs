//! The raw client with a link each way, on which whole messages pass.

use std::net::SocketAddr;

use fe2o3_amqp::types::messaging::message::DecodeIntoMessage;
use fe2o3_amqp::types::messaging::{self, Body, Outcome};
use fe2o3_amqp::types::primitives::Value;
use fe2o3_amqp::{Receiver, Sender};
use serde_amqp::read::SliceReader;
use servicebus_harness::prelude::*;
use servicebus_test_support::client::{self, within};

pub(crate) type Message = messaging::Message<Body<Value>>;

/// A connection with a link each way.
pub(crate) struct Client {
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    client: client::Client,
}

/// The message as this client understands it, and would send it.
pub(crate) fn message(bytes: &[u8]) -> Message {
    Body::<Value>::decode_message_from_reader(SliceReader::new(bytes))
        .expect("the client has a value for every type")
}

/// Where the emulator listens.
pub(crate) fn address(servicebus: &ServiceBus) -> String {
    let endpoint = client::part(servicebus.connection_string(), "Endpoint");
    let host = endpoint.trim_start_matches("sb://").trim_end_matches('/');
    match host.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:5672"),
    }
}

impl Client {
    /// Connects by way of `address`.
    pub(crate) async fn connect(servicebus: &ServiceBus, address: SocketAddr) -> Self {
        let string = servicebus.connection_string();
        let client = client::Client::connect(address, string, "fidelity").await;
        Self {
            sender: None,
            receiver: None,
            client: client.expect("the connection opens"),
        }
    }

    /// Sends a message and waits until it is taken.
    pub(crate) async fn send(&mut self, queue: &str, name: &str, message: Message) {
        if self.sender.is_none() {
            self.sender = Some(self.client.sender(queue).await);
        }
        let sender = self.sender.as_mut().expect("it is attached");
        let outcome = within(name, sender.send(message)).await;
        let accepted = matches!(outcome, Ok(Outcome::Accepted(_)));
        assert!(accepted, "{name}: {outcome:?}");
    }

    /// Receives and completes the next message.
    pub(crate) async fn receive(&mut self, queue: &str, name: &str) -> Message {
        if self.receiver.is_none() {
            self.receiver = Some(self.client.receiver(queue).await);
        }
        let receiver = self.receiver.as_mut().expect("it is attached");
        let granted = within(name, receiver.set_credit(1)).await;
        granted.unwrap_or_else(|error| panic!("{name}: {error}"));
        let delivery = within(name, receiver.recv::<Body<Value>>()).await;
        let delivery = delivery.unwrap_or_else(|error| panic!("{name}: {error}"));
        let accepted = within(name, receiver.accept(&delivery)).await;
        accepted.unwrap_or_else(|error| panic!("{name}: {error}"));
        delivery.into_message()
    }

    /// Closes everything, so that the last byte has passed.
    pub(crate) async fn close(self) {
        if let Some(sender) = self.sender {
            let closed = within("the sender's end", sender.close()).await;
            closed.expect("it detaches");
        }
        if let Some(receiver) = self.receiver {
            let closed = within("the receiver's end", receiver.close()).await;
            closed.expect("it detaches");
        }
        self.client.close().await;
    }
}

/// Asserts that the client shows what it was given, where the broker adds nothing.
pub(crate) fn assert_same(name: &str, sent: &Message, received: &Message) {
    assert_eq!(received.body, sent.body, "{name}");
    assert_eq!(
        received.application_properties, sent.application_properties,
        "{name}"
    );
    assert_eq!(received.footer, sent.footer, "{name}");
    let annotations = |message: &Message| {
        let annotations = message.message_annotations.clone().unwrap_or_default();
        annotations.0.into_iter().collect::<Vec<_>>()
    };
    let received = annotations(received);
    for entry in annotations(sent) {
        assert!(
            entry.1 == Value::Null || received.contains(&entry),
            "{name}: {entry:?}"
        );
    }
}
