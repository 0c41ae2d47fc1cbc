//! A client that works in transactions.

use fe2o3_amqp::{
    Receiver, Sender,
    transaction::{
        OwnedTransaction, TransactionDischarge, TransactionPosting, TransactionRetirement,
    },
    types::messaging::Data,
};
use servicebus_harness::ServiceBus;
use servicebus_test_support::client::{Client, message_with_id, within};

/// A raw client on which transactions are declared.
pub(crate) struct TransactionClient(Client);

/// A transaction with its links, which stay as long as it does.
pub(crate) struct OpenTransaction<'a> {
    transaction: OwnedTransaction,
    sender: Option<Sender>,
    receiver: Option<Receiver>,
    client: &'a mut Client,
}

impl TransactionClient {
    pub(crate) async fn connect(servicebus: &ServiceBus) -> Self {
        let string = servicebus.connection_string();
        let name = "the transaction client";
        let client = Client::connect(servicebus.endpoints().amqp, string, name).await;
        Self(client.expect("the connection opens"))
    }

    /// Declares a transaction.
    pub(crate) async fn declare(&mut self) -> OpenTransaction<'_> {
        let mut transaction = self.0.declare().await;
        // A drop is to leave it as it is.
        transaction.set_rollback_on_drop_trials(0);
        OpenTransaction {
            transaction,
            sender: None,
            receiver: None,
            client: &mut self.0,
        }
    }

    /// Declares a transaction and sends in it.
    pub(crate) async fn send(&mut self, address: &str, id: &str) -> OpenTransaction<'_> {
        self.declare().await.send(address, id).await
    }
}

impl OpenTransaction<'_> {
    /// Sends a message with this id.
    pub(crate) async fn send(mut self, address: &str, id: &str) -> Self {
        let sender = self.sender.insert(self.client.sender(address).await);
        let posting = self.transaction.post(sender, message_with_id(id, "{}"));
        within("a send", posting).await.expect("it is taken");
        self
    }

    /// Receives a message and completes it.
    pub(crate) async fn complete(mut self, address: &str) -> Self {
        let receiver = self.receiver.insert(self.client.receiver(address).await);
        let granted = within("the credit", receiver.set_credit(1)).await;
        granted.expect("the link is open");
        let delivery = within("a message", receiver.recv::<Data>()).await;
        let delivery = delivery.expect("a message comes");
        let settling = self.transaction.accept(receiver, &delivery);
        within("the settlement", settling)
            .await
            .expect("the link is open");
        self
    }

    pub(crate) async fn commit(self) {
        within("the commit", self.transaction.commit())
            .await
            .expect("it is committed");
    }

    /// Commits, and returns why the connection was closed by that.
    pub(crate) async fn commit_closed(mut self) -> String {
        // The client does not tell the discharge that its connection is gone.
        let closed = tokio::select! {
            discharged = self.transaction.discharge(false) => panic!("an answer came: {discharged:?}"),
            closed = within("the close", self.client.connection.on_close()) => closed,
        };
        closed.expect_err("it is closed with a reason").to_string()
    }

    pub(crate) async fn roll_back(self) {
        within("the rollback", self.transaction.rollback())
            .await
            .expect("it is rolled back");
    }

    /// Commits until it is known to have happened, and asserts that no answer comes by the time another has come that
    /// was asked for later.
    pub(crate) async fn commit_unheard(mut self, happened: impl Future<Output = ()>) {
        let discharging = self.transaction.discharge(false);
        let asking = async {
            within("the commit", happened).await;
            self.client.begin().await
        };
        tokio::select! {
            biased;
            discharged = discharging => panic!("an answer came: {discharged:?}"),
            begun = asking => begun.expect("the session begins"),
        }
    }
}
