//! Requests to an entity's `$management` node.
//!
//! A pair of links per request: it costs two round trips on a loopback and leaves no state to be stale.

use fe2o3_amqp::{
    Receiver, Sender,
    session::SessionHandle,
    types::{
        messaging::{
            AmqpValue, ApplicationProperties, Body, Message, Properties, Source, Target,
            message::DecodeIntoMessage,
        },
        primitives::{OrderedMap, SimpleValue, Value},
    },
};
use serde_amqp::read::SliceReader;

use super::{Amqp, AmqpError, Condition, accepted, within};
use crate::peeked::PeekedMessage;

/// How many messages one request asks for.
const PAGE: i32 = 100;

type Map = OrderedMap<Value, Value>;

impl Amqp {
    /// Looks at every message of a store, in order of sequence number, without touching any.
    pub(crate) async fn peek(&self, address: &str) -> Result<Vec<PeekedMessage>, AmqpError> {
        let mut node = Node::open(self, address).await?;
        let mut messages: Vec<PeekedMessage> = Vec::new();
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
}

struct Node {
    // Dropped in this order: the links are closed before their session.
    sender: Sender,
    receiver: Receiver,
    _session: SessionHandle<()>,
    reply_to: String,
}

impl Node {
    async fn open(amqp: &Amqp, entity: &str) -> Result<Self, AmqpError> {
        let address = format!("{entity}/$management");
        let reply_to = format!("reply-{}", amqp.link_name());
        let mut session = within(amqp.session()).await?;
        let attach = async {
            let receiver = Receiver::builder()
                .name(amqp.link_name())
                .source(Source::builder().address(address.clone()).build())
                .target(Target::builder().address(reply_to.clone()).build())
                .attach(&mut session)
                .await?;
            let sender = Sender::attach(&mut session, amqp.link_name(), address.as_str()).await?;
            Ok((sender, receiver))
        };
        let (sender, receiver) = within(attach).await?;
        Ok(Self {
            sender,
            receiver,
            _session: session,
            reply_to,
        })
    }

    async fn peek(&mut self, from: i64) -> Result<Vec<PeekedMessage>, AmqpError> {
        let mut body = Map::new();
        body.insert("from-sequence-number".into(), Value::Long(from));
        body.insert("message-count".into(), Value::Int(PAGE));
        let Some(mut answer) = self.request("com.microsoft:peek-message", body).await? else {
            return Ok(Vec::new());
        };
        match answer.swap_remove(&Value::from("messages")) {
            Some(Value::List(entries)) => entries.into_iter().map(peeked).collect(),
            other => Err(unexpected("messages", other.as_ref())),
        }
    }

    /// Returns the answer's body, or nothing when the answer is that there is nothing.
    async fn request(&mut self, operation: &str, body: Map) -> Result<Option<Map>, AmqpError> {
        let request = Message {
            header: None,
            delivery_annotations: None,
            message_annotations: None,
            properties: Some(
                Properties::builder()
                    .message_id(operation.to_owned())
                    .reply_to(self.reply_to.clone())
                    .build(),
            ),
            application_properties: Some(
                ApplicationProperties::builder()
                    .insert("operation", operation)
                    .build(),
            ),
            body: AmqpValue(Value::Map(body)),
            footer: None,
        };
        let answer = async {
            accepted(self.sender.send(request).await?)?;
            let delivery = self.receiver.recv::<Body<Value>>().await?;
            self.receiver.accept(&delivery).await?;
            Ok(delivery.into_message())
        };
        read(within(answer).await?)
    }

    async fn close(self) -> Result<(), AmqpError> {
        within(async {
            self.sender.close().await?;
            Ok(self.receiver.close().await?)
        })
        .await
    }
}

fn read(answer: Message<Body<Value>>) -> Result<Option<Map>, AmqpError> {
    let properties = answer.application_properties.unwrap_or_default().0;
    let status = match properties.get("statusCode") {
        Some(SimpleValue::Int(status)) => *status,
        other => {
            return Err(AmqpError::Protocol(format!(
                "a management answer has the status {other:?}"
            )));
        }
    };
    match (status, answer.body) {
        (200, Body::Value(AmqpValue(Value::Map(map)))) => Ok(Some(map)),
        (204, _) => Ok(None),
        (200, _) => Err(unexpected("body", None)),
        (status, _) => Err(AmqpError::Management {
            status,
            condition: Condition {
                condition: word(properties.get("errorCondition")),
                description: word(properties.get("statusDescription")),
            },
        }),
    }
}

fn word(value: Option<&SimpleValue>) -> String {
    match value {
        Some(SimpleValue::String(text)) => text.clone(),
        Some(SimpleValue::Symbol(symbol)) => symbol.0.clone(),
        _ => String::new(),
    }
}

fn peeked(entry: Value) -> Result<PeekedMessage, AmqpError> {
    let message = match entry {
        Value::Map(mut map) => map.swap_remove(&Value::from("message")),
        other => Some(other),
    };
    let Some(Value::Binary(bytes)) = message else {
        return Err(unexpected("message", message.as_ref()));
    };
    Body::<Value>::decode_message_from_reader(SliceReader::new(&bytes))
        .map(PeekedMessage::from_amqp)
        .map_err(|error| AmqpError::Protocol(format!("a peeked message is malformed: {error}")))
}

fn unexpected(what: &str, found: Option<&Value>) -> AmqpError {
    AmqpError::Protocol(format!("a management answer's {what} is {found:?}"))
}
