//! A raw AMQP client: `fe2o3-amqp` over TCP, which logs in with the key of a connection string.
//!
//! All links are on one AMQP session, unless a test begins another, so that operations arrive in order.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use fe2o3_amqp::connection::{Connection, ConnectionHandle};
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::link::{ReceiverAttachError, SenderAttachError};
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::transaction::OwnedTransaction;
use fe2o3_amqp::types::definitions::{Fields, ReceiverSettleMode};
use fe2o3_amqp::types::messaging::{Data, Message, MessageId, Properties, Source, Target};
use fe2o3_amqp::types::primitives::{Binary, Value};
use fe2o3_amqp::{Receiver, Sender, Session};
use tokio::net::{TcpStream, ToSocketAddrs};

/// Long enough for a slow machine, short enough to detect a hang.
const DEADLINE: Duration = Duration::from_secs(60);
/// The filter that makes a receiver one of sessions.
const SESSION_FILTER: &str = "com.microsoft:session-filter";

/// A connection with its AMQP sessions; new links use the last session.
#[derive(Debug)]
pub struct Client {
    // Dropped in this order: sessions end before their connection.
    sessions: Vec<SessionHandle<()>>,
    /// The connection of the sessions.
    pub connection: ConnectionHandle<()>,
    links: AtomicU32,
}

impl Client {
    /// Connects to `address` with the key of the connection string and this container id.
    pub async fn connect(
        address: impl ToSocketAddrs,
        connection_string: &str,
        name: &str,
    ) -> Result<Self, String> {
        let stream = TcpStream::connect(address).await;
        let stream = stream.expect("the address listens");
        stream.set_nodelay(true).expect("the socket is open");
        let host = part(connection_string, "Endpoint").trim_start_matches("sb://");
        let opening = Connection::builder()
            .container_id(name)
            .hostname(host.trim_end_matches('/'))
            .sasl_profile(SaslProfile::Plain {
                username: part(connection_string, "SharedAccessKeyName").to_owned(),
                password: part(connection_string, "SharedAccessKey").to_owned(),
            })
            .open_with_stream(stream);
        let connection = within("the connection", opening).await;
        let mut client = Self {
            sessions: Vec::new(),
            connection: connection.map_err(|error| error.to_string())?,
            links: AtomicU32::new(0),
        };
        client.begin().await?;
        Ok(client)
    }

    /// Begins another AMQP session, which later links use.
    pub async fn begin(&mut self) -> Result<(), String> {
        let session = within("the session", Session::begin(&mut self.connection)).await;
        self.sessions
            .push(session.map_err(|error| error.to_string())?);
        Ok(())
    }

    /// Attaches a sender.
    pub async fn sender(&mut self, address: &str) -> Sender {
        self.sender_with(address, Fields::new()).await
    }

    /// Attaches a sender with link properties.
    pub async fn sender_with(&mut self, address: &str, properties: Fields) -> Sender {
        let sender = self.try_sender(address, properties).await;
        sender.expect("the sender attaches")
    }

    /// Attaches a sender, which may be refused.
    pub async fn try_sender(
        &mut self,
        address: &str,
        properties: Fields,
    ) -> Result<Sender, SenderAttachError> {
        let attaching = Sender::builder()
            .name(self.link_name())
            .target(address)
            .properties(properties)
            .attach(self.session());
        within("the sender", attaching).await
    }

    /// Attaches a receiver in peek-lock mode, without credit.
    pub async fn receiver(&mut self, address: &str) -> Receiver {
        let receiver = self.try_receiver(address).await;
        receiver.expect("the receiver attaches")
    }

    /// Attaches a receiver, which may be refused.
    pub async fn try_receiver(&mut self, address: &str) -> Result<Receiver, ReceiverAttachError> {
        let source = Source::builder().address(address).build();
        self.receiver_between(source, Target::default()).await
    }

    /// Attaches a receiver of this session.
    pub async fn session_receiver(&mut self, address: &str, session: &str) -> Receiver {
        let source = Source::builder()
            .address(address)
            .add_to_filter_using_legacy_format(SESSION_FILTER, Value::from(session))
            .build();
        let receiver = self.receiver_between(source, Target::default()).await;
        receiver.expect("the receiver attaches")
    }

    /// Attaches a receiver with a target address, as receivers of replies have.
    pub async fn receiver_between(
        &mut self,
        source: Source,
        target: Target,
    ) -> Result<Receiver, ReceiverAttachError> {
        let attaching = Receiver::builder()
            .name(self.link_name())
            .source(source)
            .target(target)
            .receiver_settle_mode(ReceiverSettleMode::Second)
            .credit_mode(CreditMode::Manual)
            .attach(self.session());
        within("the receiver", attaching).await
    }

    /// Declares a transaction on a coordinator link of its own.
    pub async fn declare(&mut self) -> OwnedTransaction {
        let name = self.link_name();
        let declaring = OwnedTransaction::declare(self.session(), name, None);
        let transaction = within("the transaction", declaring).await;
        transaction.expect("the transaction is declared")
    }

    /// Ends the sessions and closes the connection, so that the last byte has been sent.
    pub async fn close(mut self) {
        for mut session in self.sessions {
            let ended = within("the session's end", session.end()).await;
            ended.expect("the session ends");
        }
        let closed = within("the connection's end", self.connection.close()).await;
        closed.expect("the connection closes");
    }

    fn session(&mut self) -> &mut SessionHandle<()> {
        self.sessions.last_mut().expect("one has begun")
    }

    fn link_name(&self) -> String {
        format!("link-{}", self.links.fetch_add(1, Ordering::Relaxed))
    }
}

/// Returns a message with this body.
pub fn message(body: &str) -> Message<Data> {
    Message::builder()
        .data(Binary::from(body.as_bytes()))
        .build()
}

/// Returns a message with this message id and body.
pub fn message_with_id(id: &str, body: &str) -> Message<Data> {
    let id = MessageId::from(id.to_owned());
    Message {
        properties: Some(Properties::builder().message_id(id).build()),
        ..message(body)
    }
}

/// Returns a part of a connection string.
pub fn part<'a>(connection_string: &'a str, name: &str) -> &'a str {
    let mut parts = connection_string.split(';');
    let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    part.unwrap_or_else(|| panic!("the connection string has no {name}"))
}

/// Awaits a future up to a deadline; the failure names `what` did not come.
pub fn within<F: Future>(what: &str, future: F) -> impl Future<Output = F::Output> {
    // The futures of the SDKs are too large for the stack of a test in unoptimized builds.
    let future = Box::pin(future);
    async move {
        tokio::time::timeout(DEADLINE, future)
            .await
            .unwrap_or_else(|_| panic!("{what} did not come within {DEADLINE:?}"))
    }
}
