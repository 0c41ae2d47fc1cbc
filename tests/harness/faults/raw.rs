//! A client of its own over `fe2o3-amqp`, with a name: what faults do to others than the harness.

use std::time::Duration;

use fe2o3_amqp::{
    Connection, Receiver, Session,
    connection::ConnectionHandle,
    link::{SendError, delivery::DeliveryFut, receiver::CreditMode},
    sasl_profile::SaslProfile,
    session::SessionHandle,
    types::{
        definitions::ReceiverSettleMode,
        messaging::{Data, Message, MessageId, Outcome, Properties},
        primitives::Binary,
    },
};
use servicebus_harness::prelude::ServiceBus;
use tokio::net::TcpStream;

/// How long anything may take.
const DEADLINE: Duration = Duration::from_secs(30);

/// A connection with one session.
#[derive(Debug)]
pub(super) struct Client {
    session: SessionHandle<()>,
    _connection: ConnectionHandle<()>,
    links: u32,
}

/// A link to a queue.
#[derive(Debug)]
pub(super) struct Sender(fe2o3_amqp::Sender);

/// A message on its way.
pub(super) type Sent = DeliveryFut<Result<Outcome, SendError>>;

impl Client {
    pub(super) async fn connect(servicebus: &ServiceBus, name: &str) -> Self {
        let connected = Self::try_connect(servicebus, name).await;
        connected.expect("the connection opens")
    }

    pub(super) async fn try_connect(servicebus: &ServiceBus, name: &str) -> Result<Self, String> {
        let stream = TcpStream::connect(servicebus.endpoints().amqp).await;
        let stream = stream.expect("the namespace listens");
        stream.set_nodelay(true).expect("the socket is open");
        let host = part(servicebus, "Endpoint").trim_start_matches("sb://");
        let opening = Connection::builder()
            .container_id(name)
            .hostname(host.trim_end_matches('/'))
            .sasl_profile(SaslProfile::Plain {
                username: part(servicebus, "SharedAccessKeyName").to_owned(),
                password: part(servicebus, "SharedAccessKey").to_owned(),
            })
            .open_with_stream(stream);
        let mut connection = within(opening).await.map_err(|error| error.to_string())?;
        let session = within(Session::begin(&mut connection)).await;
        Ok(Self {
            session: session.map_err(|error| error.to_string())?,
            _connection: connection,
            links: 0,
        })
    }

    pub(super) async fn sender(&mut self, queue: &str) -> Sender {
        let name = self.link_name();
        let attached = within(fe2o3_amqp::Sender::attach(&mut self.session, name, queue)).await;
        Sender(attached.expect("the link is attached"))
    }

    /// Receives a message over a link of its own and completes it.
    pub(super) async fn completes(&mut self, queue: &str) -> Result<(), String> {
        let attaching = Receiver::builder()
            .name(self.link_name())
            .source(queue)
            .receiver_settle_mode(ReceiverSettleMode::Second)
            .credit_mode(CreditMode::Manual)
            .attach(&mut self.session);
        let attached = within(attaching).await;
        let mut receiver = attached.map_err(|error| format!("{error:?}"))?;
        let given = within(receiver.set_credit(1)).await;
        given.map_err(|error| format!("{error:?}"))?;
        let delivery = within(receiver.recv::<Data>()).await;
        let delivery = delivery.map_err(|error| format!("{error:?}"))?;
        let settled = within(receiver.accept(&delivery)).await;
        settled.map_err(|error| format!("{error:?}"))?;
        let closed = within(receiver.close()).await;
        closed.map_err(|error| format!("{error:?}"))
    }

    fn link_name(&mut self) -> String {
        self.links += 1;
        format!("link-{}", self.links)
    }
}

impl Sender {
    /// Sends a message; the error is the condition of a rejection, or what else went wrong.
    pub(super) async fn send_text(&mut self, text: &str) -> Result<(), String> {
        match within(self.0.send(message(text))).await {
            Ok(Outcome::Accepted(_)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// Puts a message on the wire, to hear of it later.
    pub(super) async fn post(&mut self, text: &str) -> Sent {
        let sent = within(self.0.send_batchable(message(text))).await;
        sent.expect("the link is open")
    }
}

fn message(text: &str) -> Message<Data> {
    let id = MessageId::from(text.to_owned());
    Message {
        properties: Some(Properties::builder().message_id(id).build()),
        ..Message::builder()
            .data(Binary::from(text.as_bytes()))
            .build()
    }
}

fn part<'a>(servicebus: &'a ServiceBus, name: &str) -> &'a str {
    let mut parts = servicebus.connection_string().split(';');
    let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    part.unwrap_or_else(|| panic!("the connection string has no {name}"))
}

pub(super) async fn within<T>(future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(DEADLINE, future).await;
    waited.unwrap_or_else(|_| panic!("no answer within {DEADLINE:?}"))
}
