//! Transactions of a peer (declare, work, discharge; wire.md §8), and sessions.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;
use servicebus_test_support::frame::{
    DISPOSITION, Frame, ServiceError, TRANSFER, performative, refusal_of,
};
use servicebus_test_support::message::Message;
use servicebus_test_support::value::{
    binary, composite, described_list, long, map, symbol, text, uint,
};

use super::link::{Attach, Link};
use super::node::{Node, Reply};
use super::peer::Peer;
use super::receiving::{Delivery, accepted};

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

    /// Commits a transaction, which must be refused.
    #[track_caller]
    pub(crate) fn commit_in_vain(&mut self, coordinator: &Link, id: &[u8]) -> ServiceError {
        let committed = self.commit(coordinator, id);
        committed.expect_err("the commit is refused")
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

    /// Sends a message in a transaction.
    pub(crate) fn enlist(&mut self, link: &Link, transaction: &[u8], id: &str) {
        self.send_in(link, transaction, &Message::new(id)).unwrap();
    }

    /// A transaction in which a message is completed and another is sent.
    pub(crate) fn replace_in_transaction(
        &mut self,
        receiver: &Link,
        sender: &Link,
        id: &str,
    ) -> (Link, Transaction) {
        let (coordinator, transaction) = self.transaction();
        let delivery = self.receive_one(receiver);
        self.settle_in(&delivery, &transaction, accepted()).unwrap();
        self.enlist(sender, &transaction, id);
        (coordinator, transaction)
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
        let id = self.transfer_in(link, transaction, format, payload);
        let state = self.state_of(link, id);
        match described_list(&state) {
            (0x25, [error]) => Err(refusal_of(error)),
            _ => {
                assert_eq!(state, in_transaction(transaction, composite(0x24, [])));
                Ok(())
            }
        }
    }

    /// Writes the transfer of a payload in a transaction, and returns its delivery id.
    pub(crate) fn transfer_in(
        &mut self,
        link: &Link,
        transaction: &[u8],
        format: u32,
        payload: &[u8],
    ) -> u32 {
        let state = composite(0x34, [binary(transaction)]);
        self.transfer_with(link, format, false, state, payload)
    }

    /// The delivery id and the frame of such a transfer.
    pub(crate) fn transfer_frame_in(
        &mut self,
        link: &Link,
        transaction: &[u8],
        format: u32,
        payload: &[u8],
    ) -> (u32, Vec<u8>) {
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
        (id, performative(link.channel, TRANSFER, &fields, payload))
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

const FILTER: &str = "com.microsoft:session-filter";
/// What Go and Rust put around the value of the filter.
const DESCRIPTOR: u64 = 0x0000_0013_7000_000c;
/// Ticks of .NET from the year 1 to the Unix epoch.
const EPOCH_TICKS: i64 = 621_355_968_000_000_000;

impl Attach {
    /// A link to receive from a session on, with this value in its filter.
    pub(crate) fn session(address: &str, wanted: Value) -> Self {
        Self::filtered(address, FILTER, wanted)
    }

    /// A link to receive on, with this one filter.
    pub(crate) fn filtered(address: &str, key: &str, filter: Value) -> Self {
        let mut source = vec![text(address)];
        source.resize(7, Value::Null);
        source.push(map([(symbol(key), filter)]));
        Self {
            source: composite(0x28, source),
            ..Self::receiver(address)
        }
    }

    /// Waits so many milliseconds for a session, in whatever type.
    pub(crate) fn waiting_for(self, milliseconds: Value) -> Self {
        Self {
            properties: map([(symbol("com.microsoft:timeout"), milliseconds)]),
            ..self
        }
    }
}

/// As Go and Rust write the value of a filter.
pub(crate) fn described(value: Value) -> Value {
    Value::Described(Box::new(Described {
        descriptor: Descriptor::Code(DESCRIPTOR),
        value,
    }))
}

/// The value of the filter in the answer to an attach.
pub(crate) fn granted(link: &Link) -> Value {
    filter(link, FILTER)
}

/// The value of any filter in the answer to an attach.
pub(crate) fn filter(link: &Link, key: &str) -> Value {
    let Value::Described(source) = link.answer.field(5) else {
        panic!("no source: {link:?}");
    };
    match &source.value {
        Value::List(fields) => match &fields[7] {
            Value::Map(filter) => filter.get(&symbol(key)).cloned().unwrap_or_default(),
            other => panic!("the filter is {other:?}"),
        },
        other => panic!("the source is {other:?}"),
    }
}

/// The end of the session's lock in the answer to an attach, in milliseconds since the Unix epoch: a `long` of ticks.
pub(crate) fn locked_until(link: &Link) -> i64 {
    let Value::Map(properties) = link.answer.field(13) else {
        panic!("no properties: {link:?}");
    };
    match properties.get(&symbol("com.microsoft:locked-until-utc")) {
        Some(Value::Long(ticks)) => (ticks - EPOCH_TICKS) / 10_000,
        other => panic!("the end of the lock is {other:?}"),
    }
}

/// The body of `peek-message` in a session.
pub(crate) fn peek_in(session: &str, from: i64, count: i32) -> Value {
    let from = (text("from-sequence-number"), long(from));
    in_session(session, [from, (text("message-count"), Value::Int(count))])
}

/// A body of a request about a session.
pub(crate) fn in_session(id: &str, entries: impl IntoIterator<Item = (Value, Value)>) -> Value {
    map([(text("session-id"), text(id))].into_iter().chain(entries))
}

/// The ids in a reply to `get-message-sessions`, an array of strings.
pub(crate) fn sessions(reply: &Reply) -> Vec<String> {
    assert_eq!(reply.status(), 200, "{}", reply.text());
    let Value::Array(ids) = reply.field("sessions-ids") else {
        panic!("the ids are an array: {reply:?}");
    };
    let id = |id: &Value| match id {
        Value::String(id) => id.clone(),
        other => panic!("an id is {other:?}"),
    };
    ids.0.iter().map(id).collect()
}

/// Sends messages, each with its id and its session, over one link.
pub(crate) fn send_all(peer: &mut Peer, address: &str, messages: &[(&str, &str)]) {
    let sender = peer.sender(address);
    for (id, session) in messages {
        peer.send(&sender, &Message::new(id).session(session));
    }
    peer.detach(&sender);
}

/// Sends one message to each of these sessions, with the session's id for its own.
pub(crate) fn filling_sessions(peer: &mut Peer, address: &str, ids: impl Iterator<Item = String>) {
    let sender = peer.sender(address);
    peer.send_without_waiting(&sender, ids.map(|id| Message::new(&id).session(&id)));
    peer.detach(&sender);
}

impl Peer {
    /// Accepts a session by its id.
    pub(crate) fn accept(&mut self, address: &str, id: &str) -> Link {
        let name = format!("session-{}", self.next_handle);
        self.attached(&Attach::session(address, text(id)).named(&name))
    }

    /// Accepts the next available session, which must exist; returns its id.
    pub(crate) fn accept_next(&mut self, address: &str) -> (String, Link) {
        let name = format!("next-{}", self.next_handle);
        let attach = Attach::session(address, Value::Null).named(&name);
        let link = self.attached(&attach.waiting_for(uint(0)));
        match granted(&link) {
            Value::String(id) => (id, link),
            other => panic!("granted {other:?}"),
        }
    }
}
