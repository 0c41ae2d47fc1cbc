//! Messages in entities: listed, read, sent again, acted on.
//!
//! A message as JSON includes the type of every AMQP value, so that the same message can be created from it. Strings,
//! booleans and null stand for themselves; every other value is an object with one member, named by its type: `{"int":5}`,
//! `{"ulong":"18446744073709551615"}`, `{"timestamp":1700000000000}`, `{"uuid":"…"}`, `{"binary":"<base64>"}`,
//! `{"symbol":"…"}`, `{"list":[…]}`, `{"map":[[key,value],…]}`, `{"described":[descriptor,value]}`, and
//! `{"encoded":"<base64>"}` for a value without another form. A number without a type is read as a long or a double.

use std::time::SystemTime;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "schema")]
use crate::encoding::{Base64, DateTime};
use crate::encoding::{instant, optional_base64, optional_instant};

/// Messages of a queue, a subscription or a dead-letter queue.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Messages {
    /// The messages, in the requested order.
    pub messages: Vec<MessageSummary>,
    /// The total number of messages, in any state or in the requested one.
    pub total: u64,
    /// If there may be more: request those `from` this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A listed message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MessageSummary {
    /// Its sequence number in the queue.
    pub sequence_number: u64,
    /// `active`, `locked`, `deferred`, `scheduled`, or `transfer` while it waits to be forwarded.
    pub state: String,
    /// Its id.
    pub message_id: String,
    /// The id of its session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its subject, which older SDKs call label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The content type of its body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Its correlation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// When it was enqueued.
    #[serde(with = "instant")]
    #[cfg_attr(feature = "schema", schemars(with = "DateTime"))]
    pub enqueued_at: SystemTime,
    /// When it expires.
    #[serde(
        default,
        with = "optional_instant",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<DateTime>"))]
    pub expires_at: Option<SystemTime>,
    /// When it becomes active.
    #[serde(
        default,
        with = "optional_instant",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<DateTime>"))]
    pub activates_at: Option<SystemTime>,
    /// The number of failed deliveries.
    pub delivery_count: u32,
    /// Its size in bytes.
    pub size: u64,
    /// The client that holds its lock, as in the timeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub locked_by: Option<String>,
    /// When its lock ends.
    #[serde(
        default,
        with = "optional_instant",
        skip_serializing_if = "Option::is_none"
    )]
    #[cfg_attr(feature = "schema", schemars(with = "Option<DateTime>"))]
    pub locked_until: Option<SystemTime>,
    /// The reason of a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_reason: Option<String>,
    /// The description of a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_description: Option<String>,
    /// The entity from which a dead letter was forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_source: Option<String>,
    /// The start of its body, if that is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// A message with all details.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HeldMessage {
    /// The broker's properties of it.
    pub summary: MessageSummary,
    /// The message, in the form in which it can be sent again.
    pub message: AmqpMessage,
}

/// A message by its sections, all of which are optional.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AmqpMessage {
    /// `durable`, `priority`, `time_to_live` in milliseconds, `first_acquirer`, `delivery_count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Value>,
    /// An object; an array of pairs if keys are not symbols or occur twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_annotations: Option<Value>,
    /// Likewise; `x-opt-scheduled-enqueue-time` is by the clock of the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_annotations: Option<Value>,
    /// `message_id`, `user_id`, `to`, `subject`, `reply_to`, `correlation_id`, `content_type`, `content_encoding`,
    /// `absolute_expiry_time`, `creation_time`, `group_id`, `group_sequence`, `reply_to_group_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<Value>,
    /// An object; an array of pairs if keys are not strings or occur twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_properties: Option<Value>,
    /// `{"text":"…"}`, `{"data":["<base64>",…]}`, `{"value":…}` or `{"sequences":[[…],…]}`; `{"omitted":1234}` if a message
    /// of this many bytes is too large to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Like annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer: Option<Value>,
    /// The encoded message. If a request includes it, unchanged sections keep their encoding.
    #[serde(with = "optional_base64", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Base64>"))]
    pub amqp: Option<Bytes>,
}

/// Messages to send: one, or several, which the emulator accepts all or none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum SendMessages {
    /// One message.
    One(Box<AmqpMessage>),
    /// Several messages.
    Several(Vec<AmqpMessage>),
}

/// The result of a send.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SentMessages {
    /// The sequence numbers of the messages; null for a duplicate that was dropped.
    pub sequence_numbers: Vec<Option<u64>>,
}

/// Sends existing messages again, each entirely or not at all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Resubmit {
    /// Their entity: an address as clients write it.
    pub entity: String,
    /// Their sequence numbers; up to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<u64>>,
    /// A SQL filter instead of sequence numbers: up to 1,000 messages that match it.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The smallest sequence number that the filter is applied to: `next` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// The target entity; unless set the owner of the dead-letter queue. For a subscription, to which no client can send,
    /// only the subscription gets the messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// Changes: sections and their members replace those of the message, null removes (RFC 7386).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Value>,
    /// Whether the original messages remain.
    #[serde(default)]
    pub keep_original: bool,
    /// Whether the messages get new ids.
    #[serde(default)]
    pub new_message_id: bool,
}

/// Performs an action on messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActOnMessages {
    /// Their entity: an address as clients write it.
    pub entity: String,
    /// Their sequence numbers; up to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<u64>>,
    /// A SQL filter instead of sequence numbers: up to 1,000 messages that match it.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// The smallest sequence number that the filter is applied to: `next` of the answer before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<u64>,
    /// `delete`, `dead-letter`, `lose-lock`, or `activate`, which makes scheduled and deferred messages available.
    pub act: String,
    /// The reason of a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The description of a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// The result of an action on messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ActedOn {
    /// The sequence numbers of the messages for which it succeeded.
    pub done: Vec<u64>,
    /// The messages for which it failed.
    pub failed: Vec<FailedMessage>,
    /// Whether messages may remain that were not tried: repeat the request with `next` as `from`.
    pub more: bool,
    /// The sequence number at which they begin.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A message for which an action failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FailedMessage {
    /// Its sequence number.
    pub sequence_number: u64,
    /// The reason.
    pub message: String,
}
