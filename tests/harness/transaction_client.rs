//! A client that works in transactions.

use std::time::Duration;

use fe2o3_amqp::{
    Receiver, Sender, Session,
    connection::{Connection, ConnectionHandle},
    link::receiver::CreditMode,
    sasl_profile::SaslProfile,
    session::SessionHandle,
    transaction::{
        OwnedTransaction, TransactionDischarge, TransactionPosting, TransactionRetirement,
    },
    types::{
        definitions::ReceiverSettleMode,
        messaging::{Data, Message, MessageId, Properties},
        primitives::Binary,
    },
};
use servicebus_harness::ServiceBus;
use tokio::net::TcpStream;

/// Long enough for a slow machine, short enough to be told from a hang.
const DEADLINE: Duration = Duration::from_secs(60);

/// A connection with an AMQP session, on which all its links are.
pub(crate) struct TransactionClient {
    // Dropped in this order: the session is ended before its connection.
    session: SessionHandle<()>,
    connection: ConnectionHandle<()>,
    links: u32,
}

/// A transaction with its links, which stay as long as it does.
pub(crate) struct OpenTransaction<'a> {
    transaction: OwnedTransaction,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    transaction_client: &'a mut TransactionClient,
}

impl TransactionClient {
    pub(crate) async fn connect(servicebus: &ServiceBus) -> Self {
        let stream = TcpStream::connect(servicebus.endpoints().amqp);
        let stream = stream.await.expect("the namespace listens");
        stream.set_nodelay(true).expect("the socket is open");
        let host = part(servicebus, "Endpoint").trim_start_matches("sb://");
        let opening = Connection::builder()
            .container_id("the transaction client")
            .hostname(host.trim_end_matches('/'))
            .sasl_profile(SaslProfile::Plain {
                username: part(servicebus, "SharedAccessKeyName").to_owned(),
                password: part(servicebus, "SharedAccessKey").to_owned(),
            })
            .open_with_stream(stream);
        let mut connection = within(opening).await.expect("the connection opens");
        let session = within(Session::begin(&mut connection)).await;
        Self {
            session: session.expect("the session begins"),
            connection,
            links: 0,
        }
    }

    /// Declares a transaction.
    pub(crate) async fn declare(&mut self) -> OpenTransaction<'_> {
        let name = self.link_name();
        let declared = within(OwnedTransaction::declare(&mut self.session, name, None)).await;
        let mut transaction = declared.expect("the transaction is declared");
        // A drop is to leave it as it is.
        transaction.set_rollback_on_drop_trials(0);
        OpenTransaction {
            transaction,
            sender: None,
            receiver: None,
            transaction_client: self,
        }
    }

    /// Declares a transaction and sends in it.
    pub(crate) async fn send(&mut self, address: &str, id: &str) -> OpenTransaction<'_> {
        self.declare().await.send(address, id).await
    }

    fn link_name(&mut self) -> String {
        self.links += 1;
        format!("transaction-{}", self.links)
    }
}

impl OpenTransaction<'_> {
    /// Sends a message with this id.
    pub(crate) async fn send(mut self, address: &str, id: &str) -> Self {
        let name = self.transaction_client.link_name();
        let attached = within(Sender::attach(
            &mut self.transaction_client.session,
            name,
            address,
        ))
        .await;
        let sender = self.sender.insert(attached.expect("the link is attached"));
        let message: Message<Data> = Message {
            properties: Some(
                Properties::builder()
                    .message_id(MessageId::from(id.to_owned()))
                    .build(),
            ),
            ..Message::builder().data(Binary::from(&b"{}"[..])).build()
        };
        let outcome = within(self.transaction.post(sender, message)).await;
        outcome.expect("the message is taken");
        self
    }

    /// Receives a message and completes it.
    pub(crate) async fn complete(mut self, address: &str) -> Self {
        let name = self.transaction_client.link_name();
        let attaching = Receiver::builder()
            .name(name)
            .source(address)
            .receiver_settle_mode(ReceiverSettleMode::Second)
            .credit_mode(CreditMode::Manual)
            .attach(&mut self.transaction_client.session);
        let attached = within(attaching).await.expect("the link is attached");
        let receiver = self.receiver.insert(attached);
        within(receiver.set_credit(1))
            .await
            .expect("the link is open");
        let delivery = within(receiver.recv::<Data>())
            .await
            .expect("a message comes");
        let settled = within(self.transaction.accept(receiver, &delivery)).await;
        settled.expect("the link is open");
        self
    }

    pub(crate) async fn commit(self) {
        within(self.transaction.commit())
            .await
            .expect("it is committed");
    }

    /// Commits, and returns why the connection was closed by that.
    pub(crate) async fn commit_closed(mut self) -> String {
        // The client does not tell the discharge that its connection is gone.
        let closed = tokio::select! {
            discharged = self.transaction.discharge(false) => panic!("an answer came: {discharged:?}"),
            closed = within(self.transaction_client.connection.on_close()) => closed,
        };
        closed.expect_err("it is closed with a reason").to_string()
    }

    pub(crate) async fn roll_back(self) {
        within(self.transaction.rollback())
            .await
            .expect("it is rolled back");
    }

    /// Commits until it is known to have happened, and asserts that no answer comes by the time another has come that
    /// was asked for later.
    pub(crate) async fn commit_unheard(mut self, happened: impl Future<Output = ()>) {
        let discharging = self.transaction.discharge(false);
        let asking = async {
            within(happened).await;
            within(Session::begin(&mut self.transaction_client.connection)).await
        };
        tokio::select! {
            biased;
            discharged = discharging => panic!("an answer came: {discharged:?}"),
            begun = asking => drop(begun.expect("the session begins")),
        }
    }
}

fn part<'a>(servicebus: &'a ServiceBus, name: &str) -> &'a str {
    let mut parts = servicebus.connection_string().split(';');
    let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    part.unwrap_or_else(|| panic!("the connection string has no {name}"))
}

async fn within<T>(future: impl Future<Output = T>) -> T {
    let waited = tokio::time::timeout(DEADLINE, future).await;
    waited.unwrap_or_else(|_| panic!("no answer within {DEADLINE:?}"))
}
