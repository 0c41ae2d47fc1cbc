//! What a raw client does in transactions.

use fe2o3_amqp::link::{DispositionError, delivery::Delivery};
use fe2o3_amqp::transaction::{
    ControllerSendError, OwnedDischargeError, OwnedTransaction, TransactionBase,
    TransactionDischarge, TransactionPosting, TransactionRetirement,
};
use fe2o3_amqp::types::definitions::ErrorCondition;
use fe2o3_amqp::types::messaging::{Data, Message, Outcome};
use fe2o3_amqp::types::transaction::{TransactionError, TransactionId};
use fe2o3_amqp::{Receiver, Sender};
use servicebus_harness::{Event, EventKind, prelude::*};
use servicebus_test_support::client::{Client, within};

use crate::conformance::client::assert_plain;

/// A transaction of which nothing is known but its id.
pub(super) struct Named(pub(super) TransactionId);

/// A message as this peer receives it.
pub(super) type Received = Delivery<Data>;

/// A client of this namespace.
pub(super) async fn connect(servicebus: &ServiceBus) -> Client {
    assert_plain(servicebus);
    let string = servicebus.connection_string();
    let connecting = Client::connect(servicebus.endpoints().amqp, string, "the peer");
    connecting.await.expect("the connection opens")
}

/// Why a receiver is refused.
pub(super) async fn receiver_in_vain(peer: &mut Client, address: &str) -> String {
    let refused = peer.try_receiver(address).await;
    format!("{:?}", refused.expect_err("it is refused"))
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

pub(super) fn body(message: &Received) -> String {
    String::from_utf8_lossy(&message.body().0).into_owned()
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
pub(super) async fn receive(receiver: &mut Receiver) -> Received {
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
    message: &Received,
) {
    let settling = transaction.accept(receiver, message);
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

/// Waits until a transaction was rolled back that had work in a queue, though no client is told.
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
