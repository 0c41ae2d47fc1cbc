//! Requests to an entity's `$management` node.
//!
//! Each operation opens a pair of links: that costs two round trips on loopback and leaves no state that can become stale.

mod encoded;
mod requests;

use fe2o3_amqp::{
    Receiver, Sender,
    types::{
        messaging::{AmqpValue, ApplicationProperties, Body, Message, Properties, Source, Target},
        primitives::{OrderedMap, SimpleValue, Value},
    },
};

use super::{Amqp, AmqpError, Condition, OpenSession, accepted, within};

pub(crate) use encoded::{read as decode, write as encode};
pub(crate) use requests::LockToken;
pub(crate) use requests::{field, instant, map};

pub(crate) type Map = OrderedMap<Value, Value>;

struct ManagementNode {
    // Fields drop in this order: the links close before their session.
    sender: Sender,
    receiver: Receiver,
    session: OpenSession,
    reply_to: String,
}

impl ManagementNode {
    async fn open(amqp: &Amqp, entity: &str) -> Result<Self, AmqpError> {
        let address = format!("{entity}/$management");
        let reply_to = format!("reply-{}", amqp.link_name());
        let mut session = within(amqp.session()).await?;
        let attach = async {
            let receiver = Receiver::builder()
                .name(amqp.link_name())
                .source(Source::builder().address(address.clone()).build())
                .target(Target::builder().address(reply_to.clone()).build())
                .attach(&mut session.handle)
                .await?;
            let sender =
                Sender::attach(&mut session.handle, amqp.link_name(), address.as_str()).await?;
            Ok((sender, receiver))
        };
        let connection_end = session.connection_end.clone();
        let (sender, receiver) = connection_end.within(attach).await?;
        Ok(Self {
            sender,
            receiver,
            session,
            reply_to,
        })
    }

    /// Returns the body of the answer; `None` if the answer is only a success status.
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
        let connection_end = self.session.connection_end.clone();
        let answer = async {
            accepted(self.sender.send(request).await?)?;
            let delivery = self.receiver.recv::<Body<Value>>().await?;
            self.receiver.accept(&delivery).await?;
            Ok(delivery.into_message())
        };
        read(connection_end.within(answer).await?)
    }

    async fn close(self) -> Result<(), AmqpError> {
        let Self {
            sender,
            receiver,
            session,
            ..
        } = self;
        let close = async {
            sender.close().await?;
            Ok(receiver.close().await?)
        };
        session.connection_end.within(close).await
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
        (200 | 204, _) => Ok(None),
        (status, _) => Err(AmqpError::Management {
            status,
            condition: Condition {
                condition: text(properties.get("errorCondition")),
                description: text(properties.get("statusDescription")),
            },
        }),
    }
}

fn text(value: Option<&SimpleValue>) -> String {
    match value {
        Some(SimpleValue::String(text)) => text.clone(),
        Some(SimpleValue::Symbol(symbol)) => symbol.0.clone(),
        _ => String::new(),
    }
}

pub(crate) fn unexpected(what: &str, found: Option<&Value>) -> AmqpError {
    AmqpError::Protocol(format!("a management answer's {what} is {found:?}"))
}
