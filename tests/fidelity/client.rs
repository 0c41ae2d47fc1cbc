//! A plain AMQP client: `fe2o3-amqp`, logged in with the key of the connection string.

use std::net::SocketAddr;
use std::time::Duration;

use fe2o3_amqp::connection::{Connection, ConnectionHandle};
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::types::messaging::message::DecodeIntoMessage;
use fe2o3_amqp::types::messaging::{Body, Outcome};
use fe2o3_amqp::types::primitives::Value;
use fe2o3_amqp::types::{definitions::ReceiverSettleMode, messaging};
use fe2o3_amqp::{Receiver, Sender, Session};
use serde_amqp::read::SliceReader;
use servicebus_harness::prelude::*;
use tokio::net::TcpStream;

/// Long enough for a slow machine, short enough to be told from a hang.
const DEADLINE: Duration = Duration::from_secs(60);

pub(crate) type Message = messaging::Message<Body<Value>>;

/// A connection with a link each way.
pub(crate) struct Client {
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    session: SessionHandle<()>,
    connection: ConnectionHandle<()>,
}

/// The message as this client understands it, and would send it.
pub(crate) fn message(bytes: &[u8]) -> Message {
    Body::<Value>::decode_message_from_reader(SliceReader::new(bytes))
        .expect("the client has a value for every type")
}

/// Where the emulator listens.
pub(crate) fn address(servicebus: &ServiceBus) -> String {
    let host = part(servicebus, "Endpoint").trim_start_matches("sb://");
    let host = host.trim_end_matches('/');
    match host.contains(':') {
        true => host.to_owned(),
        false => format!("{host}:5672"),
    }
}

fn part<'a>(servicebus: &'a ServiceBus, name: &str) -> &'a str {
    let mut parts = servicebus.connection_string().split(';');
    let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    part.unwrap_or_else(|| panic!("the connection string has no {name}"))
}

impl Client {
    /// Connects by way of `address`.
    pub(crate) async fn connect(servicebus: &ServiceBus, address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the tap listens");
        let host = self::address(servicebus);
        let connecting = Connection::builder()
            .container_id("fidelity")
            .hostname(&*host)
            .sasl_profile(SaslProfile::Plain {
                username: part(servicebus, "SharedAccessKeyName").to_owned(),
                password: part(servicebus, "SharedAccessKey").to_owned(),
            })
            .open_with_stream(stream);
        let mut connection = within("the connection", connecting)
            .await
            .expect("it opens");
        let session = within("the session", Session::begin(&mut connection)).await;
        Self {
            sender: None,
            receiver: None,
            session: session.expect("it begins"),
            connection,
        }
    }

    /// Sends a message and waits until it is taken.
    pub(crate) async fn send(&mut self, queue: &str, name: &str, message: Message) {
        if self.sender.is_none() {
            let attaching = Sender::attach(&mut self.session, "sender", queue);
            self.sender = Some(within("the sender", attaching).await.expect("it attaches"));
        }
        let sender = self.sender.as_mut().expect("it is attached");
        let outcome = within(name, sender.send(message)).await;
        let accepted = matches!(outcome, Ok(Outcome::Accepted(_)));
        assert!(accepted, "{name}: {outcome:?}");
    }

    /// Receives and completes the next message.
    pub(crate) async fn receive(&mut self, queue: &str, name: &str) -> Message {
        if self.receiver.is_none() {
            let attaching = Receiver::builder()
                .name("receiver")
                .source(queue)
                .receiver_settle_mode(ReceiverSettleMode::Second)
                .attach(&mut self.session);
            self.receiver = Some(
                within("the receiver", attaching)
                    .await
                    .expect("it attaches"),
            );
        }
        let receiver = self.receiver.as_mut().expect("it is attached");
        let delivery = within(name, receiver.recv::<Body<Value>>()).await;
        let delivery = delivery.unwrap_or_else(|error| panic!("{name}: {error}"));
        let accepted = within(name, receiver.accept(&delivery)).await;
        accepted.unwrap_or_else(|error| panic!("{name}: {error}"));
        delivery.into_message()
    }

    /// Closes everything, so that the last byte has passed.
    pub(crate) async fn close(mut self) {
        if let Some(sender) = self.sender.take() {
            within("the sender's end", sender.close())
                .await
                .expect("it detaches");
        }
        if let Some(receiver) = self.receiver.take() {
            within("the receiver's end", receiver.close())
                .await
                .expect("it detaches");
        }
        within("the session's end", self.session.end())
            .await
            .expect("it ends");
        within("the connection's end", self.connection.close())
            .await
            .expect("it closes");
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

async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    let waiting = tokio::time::timeout(DEADLINE, future).await;
    waiting.unwrap_or_else(|_| panic!("{what} took longer than {DEADLINE:?}"))
}
