//! Transactions in timelines: what belonged to them, and how they ended.
//!
//! A client that works in transactions.

use std::time::Duration;

use fe2o3_amqp::transaction::{
    OwnedTransaction, TransactionDischarge, TransactionPosting, TransactionRetirement,
};
use fe2o3_amqp::types::messaging::Data;
use fe2o3_amqp::{Receiver, Sender};
use servicebus_harness::prelude::*;
use servicebus_harness::{ServiceBus, Timeline};
use servicebus_test_support::client::{Client, message_with_id, within};
use servicebus_test_support::normalised::normalised;

use crate::harness::namespace_with_orders;

/// A timeline in which transactions are called T1, T2… in the order in which they turn up.
fn shown(timeline: &Timeline) -> String {
    let mut ids: Vec<String> = Vec::new();
    let text = normalised(&timeline.to_string());
    let lines = text.lines().map(|line| {
        let Some((before, id)) = line.rsplit_once(", transaction ") else {
            return line.to_owned();
        };
        let known = ids.iter().position(|known| known == id);
        let number = known.unwrap_or_else(|| {
            ids.push(id.to_owned());
            ids.len() - 1
        });
        format!("{before}, transaction T{}", number + 1)
    });
    Vec::from_iter(lines).join("\n")
}

#[tokio::test]
async fn timelines_show_transactions_and_their_ends() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send(Message::from("{}").message_id("o-1")).await;
    let mut transaction_client = TransactionClient::connect(&servicebus).await;
    let transaction = transaction_client.declare().await.complete("orders").await;
    transaction.send("orders", "o-2").await.commit().await;
    let transaction = transaction_client.declare().await.complete("orders").await;
    transaction.send("orders", "o-3").await.roll_back().await;
    servicebus.clock().advance(Duration::from_secs(61)).await;
    let timeline = servicebus.timeline(&orders).await;
    assert_eq!(
        shown(&timeline),
        "\
timeline of orders                                            (virtual time)
  +… sent                    o-1, by the test, 25 bytes
  +… delivered               o-1, to the transaction client (lock 60 s, delivery 1 of 3)
  +… settlement enlisted     o-1, by the transaction client, transaction T1
  +… send enlisted           o-2, by the transaction client, transaction T1
  +… transaction committed   by the transaction client, transaction T1
  +… completed               o-1, by the transaction client
  +… sent                    o-2, by the transaction client, 18 bytes
  +… delivered               o-2, to the transaction client (lock 60 s, delivery 1 of 3)
  +… settlement enlisted     o-2, by the transaction client, transaction T2
  +… send enlisted           o-3, by the transaction client, transaction T2
  +… transaction rolled back by the transaction client, transaction T2
            clock advanced          by the test, 61 s
  +… lock expired            o-2, delivery 1 counted"
    );
}

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
    pub(crate) async fn commit_without_reply(mut self, happened: impl Future<Output = ()>) {
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
