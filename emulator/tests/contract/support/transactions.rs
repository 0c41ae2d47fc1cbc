//! Transactions of a peer: declared, worked in, discharged (wire.md §8).

use serde_amqp::Value;

use super::link::{Attach, Link};
use super::node::{Node, Reply};
use super::peer::Peer;
use super::receiving::Delivery;
use servicebus_test_support::frame::{
    DISPOSITION, Frame, ServiceError, TRANSFER, performative, refusal_of,
};
use servicebus_test_support::message::Message;
use servicebus_test_support::value::{binary, composite, described_list, map, symbol, text, uint};

/// The id of a transaction, as the emulator gave it.
pub(crate) type Transaction = Vec<u8>;

impl Attach {
    /// A link to the coordinator, as .NET asks for it.
    pub(crate) fn coordinator() -> Self {
        Self {
            snd_settle_mode: 2,
            rcv_settle_mode: 0,
            target: composite(0x30, []),
            ..Self::sender("coordinator")
        }
    }

    /// A link to send to `destination` by way of `address`.
    pub(crate) fn via(address: &str, destination: &str) -> Self {
        let name = symbol("com.microsoft:transfer-destination-address");
        Self {
            properties: map([(name, text(destination))]),
            ..Self::sender(address).named(&format!("{address}-{destination}"))
        }
    }
}

impl Peer {
    /// A coordinator link, and a transaction that was declared on it.
    pub(crate) fn transaction(&mut self) -> (Link, Transaction) {
        let coordinator = self.attached(&Attach::coordinator());
        let transaction = self.declare(&coordinator);
        (coordinator, transaction)
    }

    /// The id of a new transaction.
    pub(crate) fn declare(&mut self, coordinator: &Link) -> Transaction {
        let id = self.demand(coordinator, composite(0x31, []));
        let state = self.state_of(coordinator, id);
        match described_list(&state) {
            (0x33, [Value::Binary(id)]) => id.to_vec(),
            other => panic!("not declared: {other:?}"),
        }
    }

    pub(crate) fn commit(
        &mut self,
        coordinator: &Link,
        transaction: &[u8],
    ) -> Result<(), ServiceError> {
        self.discharge(coordinator, transaction, false)
    }

    pub(crate) fn roll_back(&mut self, coordinator: &Link, transaction: &[u8]) {
        let rolled_back = self.discharge(coordinator, transaction, true);
        assert_eq!(rolled_back, Ok(()));
    }

    fn discharge(
        &mut self,
        coordinator: &Link,
        transaction: &[u8],
        fail: bool,
    ) -> Result<(), ServiceError> {
        let id = self.demand(coordinator, discharge(transaction, fail));
        self.outcome(coordinator, id)
    }

    /// Sends a body to the coordinator and returns the delivery id.
    pub(crate) fn demand(&mut self, coordinator: &Link, body: Value) -> u32 {
        let message = Message::request(Value::Null, Value::Null, body);
        self.transfer(coordinator, 0, false, &message.encode())
    }

    /// Sends a message in a transaction; nothing, or why not.
    pub(crate) fn send_in(
        &mut self,
        link: &Link,
        transaction: &[u8],
        message: &Message,
    ) -> Result<(), ServiceError> {
        self.post_in(link, transaction, 0, &message.encode())
    }

    /// The same with any payload.
    pub(crate) fn post_in(
        &mut self,
        link: &Link,
        transaction: &[u8],
        format: u32,
        payload: &[u8],
    ) -> Result<(), ServiceError> {
        let id = self.next_delivery_id();
        let fields = [
            uint(link.handle),
            uint(id),
            binary(&id.to_be_bytes()),
            uint(format),
            Value::Bool(false),
            Value::Bool(false),
            Value::Null,
            composite(0x34, [binary(transaction)]),
        ];
        self.write(&performative(link.channel, TRANSFER, &fields, payload));
        let state = self.state_of(link, id);
        match described_list(&state) {
            (0x25, [error]) => Err(refusal_of(error)),
            _ => {
                assert_eq!(state, in_transaction(transaction, composite(0x24, [])));
                Ok(())
            }
        }
    }

    /// Settles a delivery in a transaction; nothing, or why not.
    pub(crate) fn settle_in(
        &mut self,
        delivery: &Delivery,
        transaction: &[u8],
        outcome: Value,
    ) -> Result<(), ServiceError> {
        let (code, _) = described_list(&outcome);
        let (id, channel) = (delivery.id, delivery.channel);
        self.dispose(channel, id, id, false, in_transaction(transaction, outcome));
        let answer = self.answer_in_transaction(delivery);
        match described_list(answer.field(4)) {
            (0x25, [error]) => {
                assert!(answer.flag(3), "a refusal is settled: {answer:?}");
                Err(refusal_of(error))
            }
            (0x34, [id, outcome]) => {
                assert!(!answer.flag(3), "it is settled before the discharge");
                assert_eq!(id, &binary(transaction));
                assert_eq!(described_list(outcome).0, code);
                Ok(())
            }
            other => panic!("a settlement is answered {other:?}"),
        }
    }

    /// Waits for the second answer to a settlement in a transaction, which must have come before that of the discharge.
    pub(crate) fn settled_with_commit(&mut self, delivery: &Delivery) -> Value {
        let id = delivery.id;
        let answers = |frame: &Frame| {
            frame.code == DISPOSITION && frame.is_about(id) && !frame.flag(0) && frame.flag(3)
        };
        assert!(self.has(answers), "the delivery is not settled");
        self.settled(delivery)
    }

    fn answer_in_transaction(&mut self, delivery: &Delivery) -> Frame {
        let (id, channel) = (delivery.id, delivery.channel);
        let covers =
            |frame: &Frame| frame.is_about(id) && frame.channel == channel && !frame.flag(0);
        self.disposition("the answer to a settlement", covers)
    }

    /// Sends a request of `$management` in a transaction and waits for the reply.
    pub(crate) fn call_in(
        &mut self,
        node: &Node,
        transaction: &[u8],
        operation: &str,
        body: Value,
    ) -> Reply {
        let request = Message::request(text("request-1"), text(&node.reply_to), body)
            .application("operation", text(&format!("com.microsoft:{operation}")));
        let sent = self.send_in(&node.requests, transaction, &request);
        assert_eq!(sent, Ok(()));
        Reply::new(self.receive(&node.replies))
    }

    /// The state of the answer to a transfer.
    pub(crate) fn state_of(&mut self, link: &Link, id: u32) -> Value {
        let covers =
            |frame: &Frame| frame.is_about(id) && frame.channel == link.channel && frame.flag(0);
        let found = self.disposition("the outcome of a transfer", covers);
        assert!(found.flag(3), "outcomes are settled: {found:?}");
        found.field(4).clone()
    }
}

/// What ends a transaction.
pub(crate) fn discharge(transaction: &[u8], fail: bool) -> Value {
    composite(0x32, [binary(transaction), Value::Bool(fail)])
}

/// An outcome in a transaction.
pub(crate) fn in_transaction(transaction: &[u8], outcome: Value) -> Value {
    composite(0x34, [binary(transaction), outcome])
}
