//! The harness's own AMQP connection to a namespace.
//!
//! Each namespace has one connection, which is opened on first use and again after the emulator has ended it. Each operation
//! has a session of its own, so that the refusal of one does not end the links of another. To the emulator the harness is an
//! ordinary client, with the container id [`CONTAINER`] and a key.

mod connection_end;
mod management;
mod message;
mod receiver_link;
mod session;

use std::{
    io,
    net::SocketAddr,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use fe2o3_amqp::{
    Receiver, Sender, Session,
    connection::{Connection, ConnectionHandle},
    link::receiver::CreditMode,
    sasl_profile::SaslProfile,
    session::SessionHandle,
    types::{
        definitions::{ReceiverSettleMode, SenderSettleMode},
        messaging::{Message, Outcome, SerializableBody},
        primitives::{Symbol, Value},
    },
};
use servicebus_config::auth::ConnectionString;
use tokio::{net::TcpStream, sync::Mutex};

use crate::{
    endpoints::Secret,
    error::amqp::{AmqpError, Condition},
    liveness::{Liveness, NamespaceEnd},
    stream::{Secure, Stream},
};

pub(crate) use connection_end::{ConnectionEnd, OpenSession};
pub(crate) use management::{LockToken, decode, encode};
pub(crate) use message::to_amqp;
pub(crate) use receiver_link::{IncomingMessage, Outcome as SettleAs, ReceiverLink};
pub(crate) use session::AcceptedSession;

/// The container id of the harness, which the timeline shows: "delivered to the test".
pub(crate) const CONTAINER: &str = servicebus_assertions::TEST_CLIENT;

/// The largest number of operations and unsettled messages of a test at a time.
const CHANNELS: u16 = 4095;

/// How long the emulator may take for one exchange.
pub(crate) const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// What a login needs.
#[derive(Debug, Clone)]
pub(crate) struct Login {
    pub(crate) address: SocketAddr,
    pub(crate) hostname: String,
    pub(crate) key_name: String,
    pub(crate) key: Secret,
    pub(crate) liveness: Liveness,
    pub(crate) end: NamespaceEnd,
    /// The TLS configuration, where the namespace requires TLS.
    pub(crate) secure: Option<Secure>,
}

impl Login {
    /// Uses the key of a connection string. One that cannot be parsed gives an empty key, which the emulator refuses.
    pub(crate) fn new(
        address: SocketAddr,
        connection_string: &str,
        liveness: Liveness,
        end: NamespaceEnd,
        secure: Option<Secure>,
    ) -> Self {
        let read = connection_string.parse::<ConnectionString>().ok();
        let (hostname, key_name, key) = read.map_or_else(Default::default, |read| {
            (read.host, read.key_name, read.key)
        });
        Self {
            address,
            hostname,
            key_name: key_name.unwrap_or_default(),
            key: key.unwrap_or_default().into(),
            liveness,
            end,
            secure,
        }
    }
}

/// A connection that is opened on first use.
#[derive(Debug)]
pub(crate) struct Amqp {
    login: Login,
    connection: Mutex<Option<(ConnectionHandle<()>, ConnectionEnd)>>,
    links: AtomicU64,
}

/// Whether the emulator locks or deletes received messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReceiveMode {
    PeekLock,
    ReceiveAndDelete,
}

impl Amqp {
    pub(crate) fn key_name(&self) -> &str {
        &self.login.key_name
    }

    pub(crate) fn new(login: Login) -> Self {
        Self {
            login,
            connection: Mutex::new(None),
            links: AtomicU64::new(0),
        }
    }

    /// Drops the connection, which ended with the emulator; the next operation opens another one.
    pub(crate) async fn reset(&self) {
        drop(self.connection.lock().await.take());
    }

    /// Sends messages one after the other, and waits for each to be accepted.
    pub(crate) async fn send<B: SerializableBody>(
        &self,
        address: &str,
        messages: Vec<Message<B>>,
    ) -> Result<(), AmqpError> {
        let OpenSession {
            mut handle,
            connection_end,
        } = within(self.session()).await?;
        let attach = async { Ok(Sender::attach(&mut handle, self.link_name(), address).await?) };
        let mut sender = connection_end.within(attach).await?;
        for message in messages {
            let send = async { Ok(sender.send(message).await?) };
            accepted(connection_end.within(send).await?)?;
        }
        match connection_end
            .within(async { Ok(sender.close().await?) })
            .await
        {
            // The emulator accepted all messages, and then closed the link.
            Err(AmqpError::Refused(_)) => Ok(()),
            closed => closed,
        }
    }

    /// Opens a receiving link at an address, without credit.
    pub(crate) async fn receiver_link(
        &self,
        address: &str,
        mode: ReceiveMode,
    ) -> Result<ReceiverLink, AmqpError> {
        let mut session = within(self.session()).await?;
        let attach = self.attach_receiver(&mut session.handle, address, mode);
        let receiver = session.connection_end.within(attach).await?;
        Ok(ReceiverLink::new(session, receiver))
    }

    async fn attach_receiver(
        &self,
        session: &mut SessionHandle<()>,
        address: &str,
        mode: ReceiveMode,
    ) -> Result<Receiver, AmqpError> {
        let (sender_mode, receiver_mode) = match mode {
            ReceiveMode::PeekLock => (SenderSettleMode::Mixed, ReceiverSettleMode::Second),
            ReceiveMode::ReceiveAndDelete => (SenderSettleMode::Settled, ReceiverSettleMode::First),
        };
        let receiver = Receiver::builder()
            .name(self.link_name())
            .source(address)
            .sender_settle_mode(sender_mode)
            .receiver_settle_mode(receiver_mode)
            .credit_mode(CreditMode::Manual)
            .attach(session);
        Ok(receiver.await?)
    }

    fn link_name(&self) -> String {
        let number = self.links.fetch_add(1, Ordering::Relaxed);
        format!("harness-{number}")
    }

    async fn session(&self) -> Result<OpenSession, AmqpError> {
        self.login.end.check()?;
        let mut connection = self.connection.lock().await;
        let open = match connection.take() {
            Some(open) if !open.0.is_closed() => open,
            _ => self.login.connect().await?,
        };
        let (open, connection_end) = connection.insert(open);
        let begin = async { Ok(Session::begin(open).await?) };
        Ok(OpenSession {
            handle: connection_end.within(begin).await?,
            connection_end: connection_end.clone(),
        })
    }
}

impl Login {
    async fn connect(&self) -> Result<(ConnectionHandle<()>, ConnectionEnd), AmqpError> {
        let stream = match TcpStream::connect(self.address).await {
            Ok(stream) => stream,
            Err(source) => {
                return Err(self.unreachable(self.liveness.explain(source).await));
            }
        };
        // With Nagle's algorithm a small frame may wait for the acknowledgement of the previous one.
        let _ = stream.set_nodelay(true);
        let product = [
            (Symbol::from("product"), "servicebus-harness"),
            (Symbol::from("version"), env!("CARGO_PKG_VERSION")),
        ];
        let connection = Connection::builder()
            .container_id(CONTAINER)
            .hostname(self.hostname.as_str())
            .channel_max(CHANNELS)
            .session_max(CHANNELS)
            .sasl_profile(SaslProfile::Plain {
                username: self.key_name.clone(),
                password: self.key.clone().into(),
            })
            .properties(
                product
                    .into_iter()
                    .map(|(key, value)| (key, Value::from(value)))
                    .collect(),
            );
        let stream: Box<dyn Stream> = match &self.secure {
            None => Box::new(stream),
            Some(secure) => {
                // Boxed, because otherwise the future of every operation would have the size of a handshake.
                let stream = Box::pin(secure.wrap(stream)).await;
                stream.map_err(|source| self.unreachable(source))?
            }
        };
        let (stream, connection_end) = ConnectionEnd::of(stream, self.end.clone());
        let open = Box::pin(connection.open_with_stream(stream)).await?;
        Ok((open, connection_end))
    }

    fn unreachable(&self, source: io::Error) -> AmqpError {
        AmqpError::Unreachable {
            address: self.address,
            source,
        }
    }
}

pub(crate) async fn within<T>(
    exchange: impl Future<Output = Result<T, AmqpError>>,
) -> Result<T, AmqpError> {
    tokio::time::timeout(RESPONSE_TIMEOUT, exchange)
        .await
        .unwrap_or(Err(AmqpError::TimedOut {
            within: RESPONSE_TIMEOUT,
        }))
}

fn accepted(outcome: Outcome) -> Result<(), AmqpError> {
    match outcome {
        Outcome::Accepted(_) => Ok(()),
        Outcome::Rejected(rejected) => {
            Err(AmqpError::Rejected(rejected.error.map(Condition::from)))
        }
        other => Err(AmqpError::Protocol(format!(
            "the outcome of a send was {other:?}"
        ))),
    }
}
