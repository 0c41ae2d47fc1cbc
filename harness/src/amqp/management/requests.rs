//! Requests to a sub-queue's management node: peek, schedule, cancel, receive by sequence number, delete, settle, renew.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fe2o3_amqp::types::{
    messaging::{Data, Message},
    primitives::{Array, Binary, Timestamp, Uuid, Value},
};

use super::{ManagementNode, Map, encoded, unexpected};
use crate::{
    amqp::{Amqp, AmqpError, ReceiveMode, SettleAs},
    received_message::ReceivedMessage,
};

/// The number of messages that one peek requests.
const PAGE: i32 = 100;

/// The lock token of a received message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LockToken([u8; 16]);

impl LockToken {
    /// Reads a delivery tag, whose first three parts are little-endian, as in .NET's `Guid`.
    pub(crate) fn of_tag(tag: &[u8]) -> Option<Self> {
        let mut bytes = <[u8; 16]>::try_from(tag).ok()?;
        bytes[..4].reverse();
        bytes[4..6].reverse();
        bytes[6..8].reverse();
        Some(Self(bytes))
    }

    fn array(self) -> Value {
        Value::Array(Array::from(vec![Value::Uuid(Uuid::from(self.0))]))
    }
}

impl Amqp {
    /// Peeks every message of a sub-queue, in order of sequence number.
    pub(crate) async fn peek(&self, address: &str) -> Result<Vec<ReceivedMessage>, AmqpError> {
        let mut node = ManagementNode::open(self, address).await?;
        let mut messages: Vec<ReceivedMessage> = Vec::new();
        loop {
            let from = messages
                .last()
                .map_or(1, |message| message.sequence_number.saturating_add(1));
            let page = node.peek(from).await?;
            if page.is_empty() {
                break;
            }
            messages.extend(page);
        }
        node.close().await?;
        Ok(messages)
    }

    /// Schedules messages, all or none, and returns their sequence numbers in order.
    pub(crate) async fn schedule(
        &self,
        address: &str,
        messages: Vec<Message<Data>>,
    ) -> Result<Vec<i64>, AmqpError> {
        let entries = messages.into_iter().map(|message| {
            let message = Value::Binary(Binary::from(encoded::write(message)?));
            Ok(Value::Map(map([("message", message)])))
        });
        let entries = entries.collect::<Result<Vec<_>, AmqpError>>()?;
        let body = map([("messages", Value::List(entries))]);
        let answer = self.ask(address, "schedule-message", body).await?;
        let numbers = elements(field(answer, "sequence-numbers")?)?;
        let number = |value| match value {
            Value::Long(number) => Ok(number),
            other => Err(unexpected("sequence number", Some(&other))),
        };
        numbers.into_iter().map(number).collect()
    }

    /// Cancels a scheduled message.
    pub(crate) async fn cancel_scheduled(
        &self,
        address: &str,
        number: i64,
    ) -> Result<(), AmqpError> {
        let body = map([("sequence-numbers", long_array(number))]);
        let answer = self.ask(address, "cancel-scheduled-message", body).await;
        answer.map(|_nothing| ())
    }

    /// Receives a deferred message; one of a session needs the id of the session, which the test holds. In
    /// receive-and-delete mode the returned lock token has no meaning.
    pub(crate) async fn receive_deferred(
        &self,
        address: &str,
        number: i64,
        mode: ReceiveMode,
        session: Option<String>,
    ) -> Result<(LockToken, ReceivedMessage), AmqpError> {
        let mode = match mode {
            ReceiveMode::ReceiveAndDelete => 0,
            ReceiveMode::PeekLock => 1,
        };
        let mut body = map([
            ("sequence-numbers", long_array(number)),
            ("receiver-settle-mode", Value::Uint(mode)),
        ]);
        if let Some(session) = session {
            body.insert("session-id".into(), session.into());
        }
        let answer = self
            .ask(address, "receive-by-sequence-number", body)
            .await?;
        let mut messages = elements(field(answer, "messages")?)?.into_iter();
        match (messages.next(), messages.next()) {
            (Some(Value::Map(entry)), None) => deferred(entry),
            (other, _) => Err(unexpected("message", other.as_ref())),
        }
    }

    /// Deletes up to `count` messages that were enqueued before an instant, and returns the number of deleted messages.
    pub(crate) async fn delete_messages(
        &self,
        address: &str,
        count: u32,
        before: SystemTime,
    ) -> Result<usize, AmqpError> {
        let count = i32::try_from(count).unwrap_or(i32::MAX);
        let body = map([
            ("message-count", Value::Int(count)),
            ("enqueued-time-utc", timestamp(before)),
        ]);
        let Some(answer) = self.ask(address, "batch-delete-messages", body).await? else {
            return Ok(0);
        };
        match field(Some(answer), "message-count")? {
            Value::Int(deleted) => Ok(usize::try_from(deleted).unwrap_or(0)),
            other => Err(unexpected("message-count", Some(&other))),
        }
    }

    /// Settles a message by its lock token. The management node cannot release a message.
    pub(crate) async fn settle(
        &self,
        address: &str,
        token: LockToken,
        outcome: SettleAs,
    ) -> Result<(), AmqpError> {
        let mut body = map([("lock-tokens", token.array())]);
        let status = match outcome {
            SettleAs::Complete => "completed",
            SettleAs::Abandon => "abandoned",
            // Spelled as the protocol has it.
            SettleAs::Defer => "defered",
            SettleAs::DeadLetter {
                reason,
                description,
            } => {
                let texts = [
                    ("deadletter-reason", reason),
                    ("deadletter-description", description),
                ];
                for (key, text) in texts {
                    if let Some(text) = text {
                        body.insert(key.into(), text.into());
                    }
                }
                "suspended"
            }
            SettleAs::Release => {
                let text = "a message that was received by its sequence number cannot be released";
                return Err(AmqpError::Protocol(text.to_owned()));
            }
        };
        body.insert("disposition-status".into(), status.into());
        let answer = self.ask(address, "update-disposition", body).await;
        answer.map(|_nothing| ())
    }

    /// Renews a lock and returns its new end, by the client's clock.
    pub(crate) async fn renew_lock(
        &self,
        address: &str,
        token: LockToken,
    ) -> Result<SystemTime, AmqpError> {
        let body = map([("lock-tokens", token.array())]);
        let answer = self.ask(address, "renew-lock", body).await?;
        match elements(field(answer, "expirations")?)?.pop() {
            Some(Value::Timestamp(end)) => Ok(instant(end.milliseconds())),
            other => Err(unexpected("expirations", other.as_ref())),
        }
    }

    pub(crate) async fn ask(
        &self,
        address: &str,
        operation: &str,
        body: Map,
    ) -> Result<Option<Map>, AmqpError> {
        let mut node = ManagementNode::open(self, address).await?;
        let operation = format!("com.microsoft:{operation}");
        let answer = node.request(&operation, body).await?;
        node.close().await?;
        Ok(answer)
    }
}

impl ManagementNode {
    async fn peek(&mut self, from: i64) -> Result<Vec<ReceivedMessage>, AmqpError> {
        let body = map([
            ("from-sequence-number", Value::Long(from)),
            ("message-count", Value::Int(PAGE)),
        ]);
        let Some(answer) = self.request("com.microsoft:peek-message", body).await? else {
            return Ok(Vec::new());
        };
        let entries = elements(field(Some(answer), "messages")?)?;
        entries.into_iter().map(peeked).collect()
    }
}

pub(crate) fn map<const N: usize>(entries: [(&str, Value); N]) -> Map {
    Map::from_iter(entries.map(|(key, value)| (key.into(), value)))
}

fn long_array(number: i64) -> Value {
    Value::Array(Array::from(vec![Value::Long(number)]))
}

fn timestamp(instant: SystemTime) -> Value {
    let since = instant.duration_since(UNIX_EPOCH).unwrap_or_default();
    Value::Timestamp(Timestamp::from(
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
    ))
}

pub(crate) fn field(answer: Option<Map>, name: &str) -> Result<Value, AmqpError> {
    let mut answer = answer.unwrap_or_default();
    let value = answer.swap_remove(&Value::from(name));
    value.ok_or_else(|| unexpected(name, None))
}

/// Returns the instant, by the client's clock.
pub(crate) fn instant(millis: i64) -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(u64::try_from(millis).unwrap_or(0))
}

fn elements(value: Value) -> Result<Vec<Value>, AmqpError> {
    match value {
        Value::List(values) => Ok(values),
        Value::Array(values) => Ok(values.0),
        other => Err(unexpected("list", Some(&other))),
    }
}

fn peeked(entry: Value) -> Result<ReceivedMessage, AmqpError> {
    match entry {
        Value::Map(entry) => message(entry),
        other => Err(unexpected("message", Some(&other))),
    }
}

fn deferred(mut entry: Map) -> Result<(LockToken, ReceivedMessage), AmqpError> {
    match entry.swap_remove(&Value::from("lock-token")) {
        Some(Value::Uuid(token)) => Ok((LockToken(token.into_inner()), message(entry)?)),
        other => Err(unexpected("lock token", other.as_ref())),
    }
}

fn message(mut entry: Map) -> Result<ReceivedMessage, AmqpError> {
    match entry.swap_remove(&Value::from("message")) {
        Some(Value::Binary(bytes)) => encoded::read(&bytes),
        other => Err(unexpected("message", other.as_ref())),
    }
}

// These tests use an emulator.
#[cfg(all(test, feature = "in-process"))]
mod tests {
    use std::sync::Arc;

    use servicebus_codec::Writer;

    use super::*;
    use crate::{
        address::ListenAddress, amqp::Login, background::Background, endpoints::HttpPorts,
        in_process,
    };

    /// Returns a message that was due long ago, with a property as .NET encodes a `TimeSpan`.
    fn from_dotnet() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut out = Writer::new(&mut bytes);
        out.descriptor(0x72);
        let annotations = out.begin_map();
        out.symbol("x-opt-scheduled-enqueue-time");
        out.timestamp(0);
        out.end(annotations, 2);
        out.descriptor(0x74);
        let properties = out.begin_map();
        out.string("timeout");
        out.raw(&[0x00]);
        out.symbol("com.microsoft:timespan");
        out.long(36_000_000_000);
        out.string("priority");
        out.int(3);
        out.end(properties, 4);
        out.descriptor(0x75);
        out.binary(b"hello");
        bytes
    }

    #[tokio::test]
    async fn a_message_from_dotnet_is_peeked_and_received() {
        // A separate runtime, because another test observes how the shared one ends.
        let background = Arc::new(Background::start().unwrap());
        let started = in_process::start(
            &background,
            None,
            None,
            HttpPorts::default(),
            ListenAddress::Random,
            None,
        )
        .await
        .unwrap();
        let string = &started.namespaces[0].connection_string;
        let address = started.endpoints.amqp;
        let (liveness, end) = Default::default();
        let amqp = Amqp::new(Login::new(address, string, liveness, end, None));
        let message = Value::Binary(Binary::from(from_dotnet()));
        let entry = Value::Map(map([("message", message)]));
        let body = map([("messages", Value::List(vec![entry]))]);
        amqp.ask("queue.1", "schedule-message", body).await.unwrap();

        let peeked = amqp.peek("queue.1").await.unwrap().remove(0);
        assert_eq!(peeked.body_text(), "hello");
        let properties = &peeked.application_properties;
        let timeout = "com.microsoft:timespan(36000000000)";
        assert_eq!(properties["timeout"].to_string(), timeout);
        assert_eq!(properties["priority"].to_string(), "3");

        let receiver = amqp
            .receiver_link("queue.1", ReceiveMode::ReceiveAndDelete)
            .await;
        let taken = receiver
            .unwrap()
            .receive_available(&amqp, "queue.1", 1)
            .await;
        let received = taken.unwrap().remove(0).message;
        assert_eq!(received.application_properties, *properties);
    }
}
