//! A client process: one AMQP connection of `fe2o3-amqp`, used as the harness's handles use it, and what can be asked on
//! it. Every exchange has a deadline in simulated time; what fails gives up the whole connection.

use std::time::Duration;

use fe2o3_amqp::connection::{Connection, ConnectionHandle};
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::transaction::OwnedTransaction;
use fe2o3_amqp::types::definitions::{Fields, ReceiverSettleMode, SenderSettleMode};
use fe2o3_amqp::types::messaging::{
    AmqpValue, ApplicationProperties, Body, Message, Outcome, Properties, Source, Target,
};
use fe2o3_amqp::types::primitives::{Array, OrderedMap, SimpleValue, Symbol, Uuid, Value};
use fe2o3_amqp::{Receiver, Sender, Session};
use tokio::time::{sleep, timeout};

use crate::network::{Network, Observed};
use crate::world::World;

/// How long an exchange may take: longer than a client stands still.
const TIMEOUT: Duration = Duration::from_secs(40);
const SESSION_FILTER: &str = "com.microsoft:session-filter";
const SESSION_TIMEOUT: &str = "com.microsoft:timeout";
const SESSION_LOCKED_UNTIL: &str = "com.microsoft:locked-until-utc";
/// Ticks of .NET from the year 1 to the Unix epoch, ten million a second.
const EPOCH_TICKS: i64 = 621_355_968_000_000_000;

/// Why an exchange came to nothing: the connection is of no use any more.
#[derive(Debug)]
pub(crate) struct ExchangeFailed(pub(crate) String);

pub(crate) type Exchange<T> = Result<T, ExchangeFailed>;
pub(crate) type Map = OrderedMap<Value, Value>;

/// A connection with one AMQP session on it.
#[derive(Debug)]
pub(crate) struct Client {
    /// Both until the end.
    handles: Option<(SessionHandle<()>, ConnectionHandle<()>)>,
    pub(crate) observed: Observed,
    network: Network,
    links: u32,
}

/// How a request to `$management` was answered.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: i32,
    pub(crate) condition: String,
    pub(crate) body: Map,
}

impl Client {
    pub(crate) async fn connect(world: &World, name: &str) -> Exchange<Self> {
        Self::connect_as(world, name, Fields::new()).await
    }

    /// The same with these properties of its `open`.
    pub(crate) async fn connect_as(
        world: &World,
        name: &str,
        properties: Fields,
    ) -> Exchange<Self> {
        let (stream, server, from) = world.network.connect();
        let observed = stream.observe();
        world.emulator.accept(server, from);
        let opening = Connection::builder()
            .container_id(name)
            .hostname("localhost")
            .properties(properties)
            .sasl_profile(SaslProfile::Plain {
                username: world.key.0.clone(),
                password: world.key.1.clone(),
            })
            .open_with_stream(stream);
        let network = world.network.clone();
        let mut connection = match within("open", Box::pin(opening)).await {
            Ok(connection) => connection,
            Err(broken) => {
                observed.cut(&network);
                return Err(broken);
            }
        };
        let begun = within("begin", Session::begin(&mut connection)).await;
        let session = match begun {
            Ok(session) => session,
            Err(broken) => {
                observed.cut(&network);
                keep_handles(connection);
                return Err(broken);
            }
        };
        Ok(Self {
            handles: Some((session, connection)),
            observed,
            network,
            links: 0,
        })
    }

    pub(crate) fn session(&mut self) -> &mut SessionHandle<()> {
        let handles = self.handles.as_mut();
        &mut handles.expect("they are there until the end").0
    }

    pub(crate) fn link_name(&mut self) -> String {
        self.links += 1;
        format!("link-{}", self.links)
    }

    pub(crate) async fn sender(&mut self, address: &str) -> Exchange<Sender> {
        let name = self.link_name();
        within("attach", Sender::attach(self.session(), name, address)).await
    }

    /// A link that receives, without credit.
    pub(crate) async fn receiver(&mut self, address: &str, locks: bool) -> Exchange<Receiver> {
        let source = Source::builder().address(address).build();
        self.receiver_from(source, Fields::new(), locks).await
    }

    /// The same from a session, or the next one; and until when it is locked. None when there is no session.
    pub(crate) async fn session_receiver(
        &mut self,
        address: &str,
        session: Option<&str>,
        max_wait: Duration,
        locks: bool,
    ) -> Exchange<Option<(Receiver, String, i64)>> {
        let wanted = session.map_or(Value::Null, Value::from);
        let source = Source::builder()
            .address(address)
            .add_to_filter_using_legacy_format(SESSION_FILTER, wanted)
            .build();
        let mut properties = Fields::new();
        let milliseconds = max_wait.as_millis() as u32;
        properties.insert(Symbol::from(SESSION_TIMEOUT), Value::Uint(milliseconds));
        let receiver = match self.receiver_from(source, properties, locks).await {
            Ok(receiver) => receiver,
            Err(ExchangeFailed(text)) if is_refused(&text) => return Ok(None),
            Err(broken) => return Err(broken),
        };
        let filter = receiver.source().as_ref().and_then(|s| s.filter.as_ref());
        let session = match filter.and_then(|filter| filter.get(&Symbol::from(SESSION_FILTER))) {
            Some(Value::String(session)) => session.clone(),
            other => {
                return Err(ExchangeFailed(format!(
                    "a session receiver has the filter {other:?}"
                )));
            }
        };
        let until = receiver.properties(|properties| {
            let until = properties
                .as_ref()?
                .get(&Symbol::from(SESSION_LOCKED_UNTIL))?;
            let Value::Long(ticks) = until else {
                return None;
            };
            Some((ticks - EPOCH_TICKS) / 10_000)
        });
        Ok(Some((receiver, session, until.unwrap_or(0))))
    }

    pub(crate) async fn receiver_from(
        &mut self,
        source: Source,
        properties: Fields,
        locks: bool,
    ) -> Exchange<Receiver> {
        let name = self.link_name();
        self.receiver_named(name, source, properties, locks).await
    }

    /// The same under this name.
    pub(crate) async fn receiver_named(
        &mut self,
        name: String,
        source: Source,
        properties: Fields,
        locks: bool,
    ) -> Exchange<Receiver> {
        let (sends, receives) = match locks {
            true => (SenderSettleMode::Mixed, ReceiverSettleMode::Second),
            false => (SenderSettleMode::Settled, ReceiverSettleMode::First),
        };
        let attaching = Receiver::builder()
            .name(name)
            .source(source)
            .properties(properties)
            .sender_settle_mode(sends)
            .receiver_settle_mode(receives)
            .credit_mode(CreditMode::Manual)
            .attach(self.session());
        within("attach", Box::pin(attaching)).await
    }

    pub(crate) async fn declare(&mut self) -> Exchange<OwnedTransaction> {
        let name = self.link_name();
        let declaring = OwnedTransaction::declare(self.session(), name, None);
        within("declare", Box::pin(declaring)).await
    }

    /// Asks an entity's `$management`.
    pub(crate) async fn ask(
        &mut self,
        entity: &str,
        operation: &str,
        body: Map,
    ) -> Exchange<Answer> {
        let address = format!("{entity}/$management");
        let reply_to = format!("reply-{}", self.link_name());
        let attaching = Receiver::builder()
            .name(self.link_name())
            .source(Source::builder().address(address.clone()).build())
            .target(Target::builder().address(reply_to.clone()).build())
            .attach(self.session());
        let mut receiver = within("attach", Box::pin(attaching)).await?;
        let mut sender = self.sender(&address).await?;
        let request = Message {
            header: None,
            delivery_annotations: None,
            message_annotations: None,
            properties: Some(
                Properties::builder()
                    .message_id(operation.to_owned())
                    .reply_to(reply_to)
                    .build(),
            ),
            application_properties: Some(
                ApplicationProperties::builder()
                    .insert("operation", format!("com.microsoft:{operation}"))
                    .build(),
            ),
            body: AmqpValue(Value::Map(body)),
            footer: None,
        };
        let outcome = within("request", sender.send(request)).await?;
        if !matches!(outcome, Outcome::Accepted(_)) {
            return Err(ExchangeFailed(format!("a request is answered {outcome:?}")));
        }
        let delivery = within("answer", receiver.recv::<Body<Value>>()).await?;
        within("accept", receiver.accept(&delivery)).await?;
        let answer = Answer::read(delivery.into_message());
        within("detach", sender.close()).await?;
        within("detach", receiver.close()).await?;
        answer
    }

    /// Closes the connection. Its AMQP session ends with its connection, see [`keep_handles`].
    pub(crate) async fn close(mut self) {
        if let Some((session, mut connection)) = self.handles.take() {
            if within("close", connection.close()).await.is_err() {
                self.observed.cut(&self.network);
            }
            keep_handles((session, connection));
        }
    }
}

/// A client that does not close was killed.
impl Drop for Client {
    fn drop(&mut self) {
        if let Some(handles) = self.handles.take() {
            self.observed.cut(&self.network);
            keep_handles(handles);
        }
    }
}

/// Keeps the handles of a connection until its tasks have noticed that it is over: from when it has said that it ends
/// until it hears the same from the peer, the client library's task of a session asks without pause (fe2o3-amqp 0.18.4,
/// `session/engine.rs`: `outgoing_link_frames` is closed by then), and simulated time would stand still.
fn keep_handles(handles: impl Send + 'static) {
    tokio::spawn(async move {
        sleep(TIMEOUT).await;
        drop(handles);
    });
}

impl Answer {
    fn read(message: Message<Body<Value>>) -> Exchange<Self> {
        let properties = message.application_properties.unwrap_or_default().0;
        let Some(SimpleValue::Int(status)) = properties.get("statusCode") else {
            return Err(ExchangeFailed("a management answer has no status".into()));
        };
        let condition = properties.get("errorCondition");
        let condition = condition.map_or_else(String::new, |condition| format!("{condition:?}"));
        let mut map = Map::new();
        if let Body::Value(AmqpValue(Value::Map(body))) = message.body {
            map = body;
        }
        Ok(Self {
            status: *status,
            condition,
            body: map,
        })
    }

    pub(crate) fn take(&mut self, name: &str) -> Option<Value> {
        self.body.swap_remove(&Value::from(name))
    }
}

/// Gives an exchange the time it may take.
pub(crate) async fn within<T, E: std::fmt::Debug>(
    what: &str,
    exchange: impl Future<Output = Result<T, E>>,
) -> Exchange<T> {
    match timeout(TIMEOUT, exchange).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(ExchangeFailed(format!("{what}: {error:?}"))),
        Err(_) => Err(ExchangeFailed(format!("{what}: no answer"))),
    }
}

/// Whether a session was refused in the ways that clients know.
fn is_refused(text: &str) -> bool {
    text.contains("com.microsoft:timeout") || text.contains("session-cannot-be-locked")
}

pub(crate) fn map<const N: usize>(entries: [(&str, Value); N]) -> Map {
    let mut map = Map::new();
    for (key, value) in entries {
        map.insert(key.into(), value);
    }
    map
}

/// The token of a lock, as management names it: the first three parts of a delivery tag are little-endian.
pub(crate) fn token(tag: &[u8]) -> Option<[u8; 16]> {
    let mut bytes = <[u8; 16]>::try_from(tag).ok()?;
    bytes[..4].reverse();
    bytes[4..6].reverse();
    bytes[6..8].reverse();
    Some(bytes)
}

pub(crate) fn tokens(token: [u8; 16]) -> Value {
    Value::Array(Array::from(vec![Value::Uuid(Uuid::from(token))]))
}

pub(crate) fn numbers(number: i64) -> Value {
    Value::Array(Array::from(vec![Value::Long(number)]))
}
