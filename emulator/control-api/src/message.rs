//! Messages as they are held: found, read, sent again, acted on.
//!
//! A message as JSON says the type of every AMQP value, so that the same message can be made of it. Texts, booleans and
//! null stand for themselves; every other value is an object with one member, which is named by its type: `{"int":5}`,
//! `{"ulong":"18446744073709551615"}`, `{"timestamp":1700000000000}`, `{"uuid":"…"}`, `{"binary":"<base64>"}`,
//! `{"symbol":"…"}`, `{"list":[…]}`, `{"map":[[key,value],…]}`, `{"described":[descriptor,value]}`, and
//! `{"encoded":"<base64>"}` for what has no other form. A number that is read without its type is a long or a double.

use std::time::SystemTime;

use bytes::Bytes;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(feature = "schema")]
use crate::encoding::{Base64, DateTime};
use crate::encoding::{instant, optional_base64, optional_instant};

/// A part of what a queue, a subscription or a dead-letter queue holds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct Messages {
    /// In the order that was asked for.
    pub messages: Vec<MessageSummary>,
    /// How many messages are there in all, in any state; of one state where one was asked for.
    pub total: u64,
    /// Where there may be more: ask for those `from` this number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// What a list shows of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct MessageSummary {
    /// Its number where it is.
    pub sequence_number: u64,
    /// `active`, `locked`, `deferred`, `scheduled`, or `transfer` while it waits to be forwarded.
    pub state: String,
    /// Its id.
    pub message_id: String,
    /// The session that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// Its subject, which older SDKs call label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// The media type of its body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content_type: Option<String>,
    /// Its correlation id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub correlation_id: Option<String>,
    /// When it was enqueued.
    #[serde(with = "instant")]
    #[cfg_attr(feature = "schema", schemars(with = "DateTime"))]
    pub enqueued_at: SystemTime,
    /// When its time to live ends.
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
    /// How many deliveries have failed.
    pub delivery_count: u32,
    /// How many bytes it has.
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
    /// Why it is a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_reason: Option<String>,
    /// The same in more words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_description: Option<String>,
    /// Where a dead letter that was forwarded comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dead_letter_source: Option<String>,
    /// How its body begins, where that is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preview: Option<String>,
}

/// A message with everything that is known of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct HeldMessage {
    /// What the broker knows of it.
    pub summary: MessageSummary,
    /// The message as it can be sent again.
    pub message: AmqpMessage,
}

/// A message by its sections. What is left out is not there.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct AmqpMessage {
    /// `durable`, `priority`, `time_to_live` in milliseconds, `first_acquirer`, `delivery_count`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<Value>,
    /// By names. Keys that are no symbols, or come twice, make it an array of pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_annotations: Option<Value>,
    /// The same; `x-opt-scheduled-enqueue-time` is the time of the namespace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_annotations: Option<Value>,
    /// `message_id`, `user_id`, `to`, `subject`, `reply_to`, `correlation_id`, `content_type`, `content_encoding`,
    /// `absolute_expiry_time`, `creation_time`, `group_id`, `group_sequence`, `reply_to_group_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub properties: Option<Value>,
    /// By names. Keys that are no strings, or come twice, make it an array of pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub application_properties: Option<Value>,
    /// `{"text":"…"}`, `{"data":["<base64>",…]}`, `{"value":…}` or `{"sequences":[[…],…]}`; `{"omitted":1234}` where a message
    /// of so many bytes is too large to be shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// As annotations.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer: Option<Value>,
    /// The message as it is encoded. Where it is sent along, sections that were not changed keep their encoding.
    #[serde(with = "optional_base64", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<Base64>"))]
    pub amqp: Option<Bytes>,
}

/// Messages to send: one, or several, of which all or none are accepted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub enum SendMessages {
    /// One.
    One(Box<AmqpMessage>),
    /// Several.
    Several(Vec<AmqpMessage>),
}

/// What was sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct SentMessages {
    /// The numbers of the messages; null for one that was dropped as a duplicate.
    pub sequence_numbers: Vec<Option<u64>>,
}

/// Sends messages again that are held somewhere, each as a whole or not at all.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Resubmit {
    /// Where they are: an address as clients write it.
    pub entity: String,
    /// Their numbers; up to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<u64>>,
    /// Instead of numbers a filter in SQL: the messages that match it, up to 1,000.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// Where they go; the entity whose dead letters they are unless set. A subscription, which no client can send to, gets
    /// them alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// What is changed: sections and members of them replace those of the message, null removes (RFC 7386).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edit: Option<Value>,
    /// Whether they stay where they are.
    #[serde(default)]
    pub keep_original: bool,
    /// Whether they get new ids.
    #[serde(default)]
    pub new_message_id: bool,
}

/// Does something to messages.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ActOnMessages {
    /// Where they are: an address as clients write it.
    pub entity: String,
    /// Their numbers; up to 1,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub numbers: Option<Vec<u64>>,
    /// Instead of numbers a filter in SQL: the messages that match it, up to 1,000.
    #[serde(default, rename = "where", skip_serializing_if = "Option::is_none")]
    pub filter: Option<String>,
    /// `delete`, `dead-letter`, `lose-lock`, or `activate`, which lets scheduled and deferred messages be received.
    pub act: String,
    /// Of a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Of a dead letter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What was done to messages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct ActedOn {
    /// The numbers of those to which it was done.
    pub done: Vec<u64>,
    /// Those to which it was not.
    pub failed: Vec<FailedMessage>,
    /// Whether messages are left that were not looked at: ask again.
    pub more: bool,
}

/// A message to which something was not done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema), schemars(deny_unknown_fields))]
pub struct FailedMessage {
    /// Its number.
    pub sequence_number: u64,
    /// Why.
    pub message: String,
}
