//! A plain AMQP client that works in transactions: `fe2o3-amqp`, logged in with the key of the connection string.
//!
//! All links of a peer are on one AMQP session, unless a test begins another, so that what it does arrives in the order
//! in which it is done.

use std::sync::atomic::{AtomicU32, Ordering};

use fe2o3_amqp::connection::{Connection, ConnectionHandle};
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::link::{DispositionError, delivery::Delivery};
use fe2o3_amqp::sasl_profile::SaslProfile;
use fe2o3_amqp::session::SessionHandle;
use fe2o3_amqp::transaction::{
    ControllerSendError, OwnedDischargeError, OwnedTransaction, TransactionBase,
    TransactionDischarge, TransactionPosting, TransactionRetirement,
};
use fe2o3_amqp::types::definitions::{ErrorCondition, Fields, ReceiverSettleMode};
use fe2o3_amqp::types::messaging::{Data, Message, Outcome, Source, Target};
use fe2o3_amqp::types::primitives::{Binary, Value};
use fe2o3_amqp::types::transaction::{TransactionError, TransactionId};
use fe2o3_amqp::{Receiver, Sender, Session};
use servicebus_harness::{Event, EventKind, prelude::*};
use tokio::net::TcpStream;

use crate::conformance::client::within;

/// What makes a receiver one of sessions.
const SESSION_FILTER: &str = "com.microsoft:session-filter";

/// A connection with its AMQP sessions; links are made on the last of them.
pub(super) struct Peer {
    sessions: Vec<SessionHandle<()>>,
    connection: ConnectionHandle<()>,
    links: AtomicU32,
}

/// A transaction of which nothing is known but its id.
pub(super) struct Named(pub(super) TransactionId);

/// A message as this peer receives it.
pub(super) type Letter = Delivery<Data>;

impl Peer {
    pub(super) async fn connect(servicebus: &ServiceBus) -> Self {
        crate::conformance::client::assert_plain(servicebus);
        let address = servicebus.endpoints().amqp;
        let stream = TcpStream::connect(address).await.expect("the bus listens");
        stream.set_nodelay(true).expect("the socket is open");
        let host = part(servicebus, "Endpoint").trim_start_matches("sb://");
        let opening = Connection::builder()
            .container_id("the peer")
            .hostname(host.trim_end_matches('/'))
            .sasl_profile(SaslProfile::Plain {
                username: part(servicebus, "SharedAccessKeyName").to_owned(),
                password: part(servicebus, "SharedAccessKey").to_owned(),
            })
            .open_with_stream(stream);
        let connection = within("the connection", opening).await;
        let mut peer = Self {
            sessions: Vec::new(),
            connection: connection.expect("it opens"),
            links: AtomicU32::new(0),
        };
        peer.begin().await;
        peer
    }

    /// Begins another AMQP session, on which the links are made that follow.
    pub(super) async fn begin(&mut self) {
        let session = within("the session", Session::begin(&mut self.connection)).await;
        self.sessions.push(session.expect("it begins"));
    }

    pub(super) async fn sender(&mut self, address: &str) -> Sender {
        self.sender_with(address, Fields::new()).await
    }

    /// A sender whose link has properties.
    pub(super) async fn sender_with(&mut self, address: &str, properties: Fields) -> Sender {
        let name = self.link_name();
        let attaching = Sender::builder()
            .name(name)
            .target(address)
            .properties(properties)
            .attach(self.session());
        let sender = within("the sender", attaching).await;
        sender.expect("it attaches")
    }

    pub(super) async fn receiver(&mut self, address: &str) -> Receiver {
        let source = Source::builder().address(address).build();
        self.receiver_between(source, Target::default()).await
    }

    pub(super) async fn session_receiver(&mut self, address: &str, session: &str) -> Receiver {
        let source = Source::builder()
            .address(address)
            .add_to_filter_using_legacy_format(SESSION_FILTER, Value::from(session))
            .build();
        self.receiver_between(source, Target::default()).await
    }

    /// Why a receiver is refused.
    pub(super) async fn receiver_in_vain(&mut self, address: &str) -> String {
        let attaching = Receiver::builder()
            .name(self.link_name())
            .source(Source::builder().address(address).build())
            .attach(self.session());
        let refused = within("the refusal", attaching).await;
        format!("{:?}", refused.expect_err("it is refused"))
    }

    /// A receiver that names where it is itself, as those of replies do.
    pub(super) async fn receiver_between(&mut self, source: Source, target: Target) -> Receiver {
        let name = self.link_name();
        let attaching = Receiver::builder()
            .name(name)
            .source(source)
            .target(target)
            .receiver_settle_mode(ReceiverSettleMode::Second)
            .credit_mode(CreditMode::Manual)
            .attach(self.session());
        let receiver = within("the receiver", attaching).await;
        receiver.expect("it attaches")
    }

    /// Declares a transaction, on a coordinator link of its own.
    pub(super) async fn declare(&mut self) -> OwnedTransaction {
        let name = self.link_name();
        let declaring = OwnedTransaction::declare(self.session(), name, None);
        let transaction = within("the transaction", declaring).await;
        transaction.expect("it is declared")
    }

    fn session(&mut self) -> &mut SessionHandle<()> {
        self.sessions.last_mut().expect("one has begun")
    }

    fn link_name(&self) -> String {
        format!("link-{}", self.links.fetch_add(1, Ordering::Relaxed))
    }
}

impl TransactionBase for Named {
    fn txn_id(&self) -> &TransactionId {
        &self.0
    }
}

impl TransactionPosting for Named {}

impl TransactionRetirement for Named {
    type RetireError = DispositionError;
}

/// A message with this body.
pub(super) fn letter(body: &str) -> Message<Data> {
    Message::builder()
        .data(Binary::from(body.as_bytes()))
        .build()
}

pub(super) fn body(letter: &Letter) -> String {
    String::from_utf8_lossy(&letter.body().0).into_owned()
}

/// Sends in a transaction, and the broker says that it will take it.
pub(super) async fn post(
    transaction: &(impl TransactionPosting + Sync),
    sender: &mut Sender,
    message: Message<Data>,
) {
    let outcome = within("a send", transaction.post(sender, message)).await;
    assert!(matches!(outcome, Ok(Outcome::Accepted(_))), "{outcome:?}");
}

/// Sends in a transaction and is refused. This client takes only answers in transactional state, and does not show what
/// others say; the timeline does.
pub(super) async fn post_in_vain(
    transaction: &(impl TransactionPosting + Sync),
    sender: &mut Sender,
    message: Message<Data>,
) {
    let outcome = within("a refusal", transaction.post(sender, message)).await;
    assert!(outcome.is_err(), "{outcome:?}");
}

/// Receives one message, that is locked from then on.
pub(super) async fn receive(receiver: &mut Receiver) -> Letter {
    within("the credit", receiver.set_credit(1))
        .await
        .expect("the link is open");
    let received = within("a message", receiver.recv::<Data>()).await;
    received.expect("it is received")
}

/// Completes a message in a transaction. Nothing is waited for: what is sent later on the session arrives later.
pub(super) async fn complete(
    transaction: &(impl TransactionRetirement<RetireError = DispositionError> + Sync),
    receiver: &mut Receiver,
    letter: &Letter,
) {
    let settling = transaction.accept(receiver, letter);
    within("the settlement", settling)
        .await
        .expect("the link is open");
}

pub(super) async fn commit(transaction: OwnedTransaction) {
    let committed = within("the commit", transaction.commit()).await;
    committed.unwrap_or_else(|error| panic!("not committed: {error}"));
}

pub(super) async fn roll_back(transaction: OwnedTransaction) {
    let rolled_back = within("the rollback", transaction.rollback()).await;
    rolled_back.unwrap_or_else(|error| panic!("not rolled back: {error}"));
}

/// Tries to commit and returns why that is refused, the tracking id left out.
pub(super) async fn commit_in_vain(
    transaction: &mut OwnedTransaction,
) -> (TransactionError, String) {
    let discharged = within("the refusal", transaction.discharge(false)).await;
    let rejected = match discharged {
        Err(OwnedDischargeError::ControllerSendError(ControllerSendError::Rejected(rejected))) => {
            rejected
        }
        other => panic!("the commit is not refused: {other:?}"),
    };
    let error = rejected.error.expect("a refusal has an error");
    let ErrorCondition::TransactionError(condition) = error.condition else {
        panic!("not an error of transactions: {error}");
    };
    let text = error.description.unwrap_or_default();
    let words = text.split(" TrackingId:").next().unwrap_or_default();
    (condition, words.to_owned())
}

/// Waits until a transaction was rolled back that had work in a queue, though nobody is told.
pub(super) async fn rolled_back(queue: &QueueClient) {
    let waiting = async {
        loop {
            let timeline = queue.timeline().result().await.expect("the queue is there");
            if timeline.count(&EventKind::TransactionRolledBack) > 0 {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    within("the rollback", waiting).await;
}

/// What was refused in a queue so far, as condition and text.
pub(super) async fn refusals(servicebus: &ServiceBus, queue: &QueueClient) -> Vec<String> {
    let timeline = servicebus.timeline(queue).await;
    let refused = timeline.events().iter();
    let refused = refused.filter(|event| event.kind == EventKind::Refused);
    let words = |event: &Event| {
        let reason = event.reason.as_deref().unwrap_or_default();
        format!("{reason}: {}", event.detail.as_deref().unwrap_or_default())
    };
    refused.map(words).collect()
}

fn part<'a>(servicebus: &'a ServiceBus, name: &str) -> &'a str {
    let mut parts = servicebus.connection_string().split(';');
    let part = parts.find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
    part.unwrap_or_else(|| panic!("the connection string has no {name}"))
}
