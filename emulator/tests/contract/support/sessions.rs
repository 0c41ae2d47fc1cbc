//! Sessions: asked for, granted, filled.

use serde_amqp::Value;
use serde_amqp::described::Described;
use serde_amqp::descriptor::Descriptor;

use super::link::{Attach, Link};
use super::peer::Peer;
use servicebus_test_support::message::Message;
use servicebus_test_support::value::{composite, long, map, symbol, text, uint};

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
    pub(crate) fn patient(self, milliseconds: Value) -> Self {
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
pub(crate) fn sessions(reply: &super::Reply) -> Vec<String> {
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
    let sent: Vec<u32> = ids
        .map(|id| {
            let message = Message::new(&id).session(&id);
            peer.transfer(&sender, 0, false, &message.encode())
        })
        .collect();
    for id in sent {
        assert_eq!(peer.outcome(&sender, id), Ok(()));
    }
    peer.detach(&sender);
}

impl Peer {
    /// Accepts a session by its id.
    pub(crate) fn accept(&mut self, address: &str, id: &str) -> Link {
        let name = format!("session-{}", self.next_handle);
        self.attached(&Attach::session(address, text(id)).named(&name))
    }

    /// Accepts the next available session, which there must be, and says which it is.
    pub(crate) fn accept_next(&mut self, address: &str) -> (String, Link) {
        let name = format!("next-{}", self.next_handle);
        let attach = Attach::session(address, Value::Null).named(&name);
        let link = self.attached(&attach.patient(uint(0)));
        match granted(&link) {
            Value::String(id) => (id, link),
            other => panic!("granted {other:?}"),
        }
    }
}
