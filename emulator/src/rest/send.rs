//! `POST {entity}/messages`: sends a message or a batch.

use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use servicebus_broker::{Message, MessageError};

use super::batch;
use super::broker_properties::BrokerPropertiesHeader;
use super::context::{Rejection, RequestContext, Target};
use super::headers::{BROKER_PROPERTIES, Content, ReadError, application_properties};
use super::outgoing::OutgoingMessage;
use crate::nodes::{Condition, ServiceError, message_refusal, send_refusal};
use crate::service_http::XML;

/// How much longer a batch in JSON may be than its messages: an escape has six characters for one.
const JSON_EXPANSION: u64 = 6;

/// The messages of a request as they are stored, with their bytes and the limit.
struct EncodedMessages {
    messages: Vec<Message>,
    size: u64,
    limit: u64,
}

impl EncodedMessages {
    fn new(target: &Target) -> Self {
        Self {
            messages: Vec::new(),
            size: 0,
            limit: max_size(target),
        }
    }
}

impl RequestContext {
    /// Sends the request's messages: 201 when they are stored, all or none.
    pub(crate) async fn send(
        &mut self,
        target: &Target,
        parts: &Parts,
        content: &mut Content,
    ) -> Result<Response, Rejection> {
        // Whether the entity accepts messages now is checked by the send itself.
        target.entity.check_is_sent_to(target.kind)?;
        let content_type = content_type(parts)?;
        let mut encoded = EncodedMessages::new(target);
        if batch::is_batch(content_type.as_deref()) {
            let batch = read_batch(target, content).await?;
            batch::parse(&batch, |message| {
                self.encode(target, &message, &mut encoded)
            })?;
        } else {
            let mut properties = broker_properties(parts)?;
            properties.content_type = content_type.or(properties.content_type);
            let message = OutgoingMessage {
                properties,
                application: application_properties(&parts.headers, &self.names)?,
                body: read_message(target, content).await?,
            };
            self.encode(target, &message, &mut encoded)?;
        }
        self.store(target, encoded.messages)?;
        let content_type = HeaderValue::from_static(XML);
        Ok((StatusCode::CREATED, [(CONTENT_TYPE, content_type)]).into_response())
    }

    /// Adds a message to those of the request, unless they are too large together.
    fn encode(
        &mut self,
        target: &Target,
        message: &OutgoingMessage,
        encoded: &mut EncodedMessages,
    ) -> Result<(), Rejection> {
        let (now, ahead) = (self.shared.real.now().as_millis(), target.ahead());
        let message = Message::parse(message.encode(now), self.caller.ids());
        let mut message = message.map_err(|error| message_rejection(&error))?;
        encoded.size += message.size();
        if encoded.size > encoded.limit {
            return Err(too_large(encoded.size, encoded.limit));
        }
        message.shift_to_namespace_time(ahead);
        encoded.messages.push(message);
        Ok(())
    }

    fn store(&mut self, target: &Target, mut messages: Vec<Message>) -> Result<(), Rejection> {
        let entity = &target.entity;
        let stored = target
            .namespace
            .operate(entity, &mut self.caller, |entity, cx| {
                match (messages.pop(), messages.is_empty()) {
                    (Some(only), true) => entity.send(cx, only).map(drop),
                    (last, _) => {
                        messages.extend(last);
                        entity.send_batch(cx, messages).map(drop)
                    }
                }
            });
        stored.map_err(|error| match entity.is_deleted() {
            true => self.not_found(entity),
            false => send_refusal(&error, &self.host).into(),
        })
    }
}

/// Returns the maximum bytes of the messages of a request: an entity's own limit is for AMQP only (semantics §17.2).
fn max_size(target: &Target) -> u64 {
    let namespace = &target.namespace;
    namespace.read(&target.entity, |entity| entity.tier().max_message_size())
}

async fn read_message(target: &Target, content: &mut Content) -> Result<bytes::Bytes, Rejection> {
    let limit = max_size(target);
    content.read(limit).await.map_err(|error| match error {
        ReadError::TooLong(size) => too_large(size, limit),
        ReadError::Refused(rejection) => rejection,
    })
}

async fn read_batch(target: &Target, content: &mut Content) -> Result<bytes::Bytes, Rejection> {
    let limit = max_size(target) * JSON_EXPANSION;
    content.read(limit).await.map_err(|error| match error {
        ReadError::TooLong(size) => {
            let text = format!("The batch has {size} bytes or more; at most {limit} are read.");
            let condition = Condition::MessageSizeExceeded;
            Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, condition, text)
        }
        ReadError::Refused(rejection) => rejection,
    })
}

fn content_type(parts: &Parts) -> Result<Option<String>, Rejection> {
    let value = parts.headers.get(CONTENT_TYPE);
    let text = value.map(|value| value.to_str().map(str::to_owned));
    text.transpose().map_err(|_| {
        Rejection::bad_request("The value of the HTTP header 'Content-Type' is not ASCII text.")
    })
}

fn broker_properties(parts: &Parts) -> Result<BrokerPropertiesHeader, Rejection> {
    let Some(value) = parts.headers.get(BROKER_PROPERTIES) else {
        return Ok(BrokerPropertiesHeader::default());
    };
    let text = std::str::from_utf8(value.as_bytes()).map_err(|_| {
        Rejection::bad_request("The value of the HTTP header 'BrokerProperties' is not UTF-8.")
    })?;
    BrokerPropertiesHeader::parse(text)
}

fn too_large(size: u64, limit: u64) -> Rejection {
    ServiceError::message_too_large(0, size, limit).into()
}

/// Some of these errors look like the broker's over AMQP; here the request is at fault.
fn message_rejection(error: &MessageError) -> Rejection {
    let refusal = message_refusal(error);
    if refusal.condition == Condition::InternalError {
        return Rejection::bad_request(format!("The message was refused: {error}."));
    }
    refusal.into()
}
