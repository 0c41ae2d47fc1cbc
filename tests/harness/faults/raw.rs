//! A client beside those of the harness, with a name: what faults do to it.

use fe2o3_amqp::{
    link::{SendError, delivery::DeliveryFut},
    types::messaging::{Data, Outcome},
};
use servicebus_harness::prelude::ServiceBus;
use servicebus_test_support::client::{self, message_with_id, within};

/// A connection with one session.
#[derive(Debug)]
pub(super) struct Client(client::Client);

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
        let string = servicebus.connection_string();
        let connecting = client::Client::connect(servicebus.endpoints().amqp, string, name);
        connecting.await.map(Self)
    }

    pub(super) async fn sender(&mut self, queue: &str) -> Sender {
        Sender(self.0.sender(queue).await)
    }

    /// Receives a message over a link of its own and completes it.
    pub(super) async fn completes(&mut self, queue: &str) -> Result<(), String> {
        let error = |error: &dyn std::fmt::Debug| format!("{error:?}");
        let attached = self.0.try_receiver(queue).await;
        let mut receiver = attached.map_err(|why| error(&why))?;
        let given = within("the credit", receiver.set_credit(1)).await;
        given.map_err(|why| error(&why))?;
        let delivery = within("a message", receiver.recv::<Data>()).await;
        let delivery = delivery.map_err(|why| error(&why))?;
        let settled = within("the settlement", receiver.accept(&delivery)).await;
        settled.map_err(|why| error(&why))?;
        let closed = within("the detach", receiver.close()).await;
        closed.map_err(|why| error(&why))
    }
}

impl Sender {
    /// Sends a message; the error is the condition of a rejection, or what else went wrong.
    pub(super) async fn send_text(&mut self, text: &str) -> Result<(), String> {
        match within("a send", self.0.send(message_with_id(text, text))).await {
            Ok(Outcome::Accepted(_)) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    }

    /// Puts a message on the wire, to hear of it later.
    pub(super) async fn post(&mut self, text: &str) -> Sent {
        let sending = self.0.send_batchable(message_with_id(text, text));
        within("a send", sending).await.expect("the link is open")
    }
}
