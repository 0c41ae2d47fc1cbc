//! `$management` of a store: maps requests to calls and results to replies (wire.md §6).
//!
//! This file selects the operation of a request, and parses the fields that operations share.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `any other` is what is meant"
)]

use serde_amqp::Value;
use servicebus_broker::{
    Context, Entity, EntityPath, LockToken, ReceiverId, SequenceNumber, SubQueue, Transaction,
};
use uuid::Uuid;

use super::condition::{Condition, ServiceError};
use super::request::{Reply, Request};
use crate::durable::NamespaceStore;

mod messages;
mod reply_messages;
mod rules;
mod sessions;

pub(crate) use reply_messages::ReplyMessages;
pub(crate) use rules::{
    change_refusal, enumerate_rules, is_about_rules, is_batch_delete, rule_change,
};

/// One request with its context.
pub(crate) struct Management<'a, 'b> {
    pub(crate) request: &'a Request,
    pub(crate) entity: &'a mut Entity,
    pub(crate) cx: &'a mut Context<'b>,
    pub(crate) kind: SubQueue,
    /// How many milliseconds the namespace's clock is ahead of the client's (decision D20).
    pub(crate) ahead: i64,
    /// The client's name of the namespace.
    pub(crate) host: &'a str,
    /// The receiver that holds the locks of messages in the reply.
    pub(crate) receiver_id: ReceiverId,
    /// The receiver for which the request is made, if it names one.
    pub(crate) requested_by: Option<ReceiverId>,
    /// Whether that receiver only browses the session in the request.
    pub(crate) browses: bool,
    /// The target to which scheduled messages are forwarded when they are due.
    pub(crate) destination: Option<&'a EntityPath>,
    /// The request's transaction, if any.
    pub(crate) transaction: Option<&'a mut Transaction>,
    /// The data directory, which has the bodies that are not in memory.
    pub(crate) store: Option<&'a NamespaceStore>,
    /// Maximum bytes of messages that a reply takes from the entity, if it is more than one.
    pub(crate) largest_reply: usize,
    /// Messages of [the reply](ReplyMessages::reply), which replaces the operation's result.
    pub(crate) reply_messages: &'a mut Option<ReplyMessages>,
}

impl Management<'_, '_> {
    pub(crate) fn perform(mut self) -> Result<Reply, ServiceError> {
        let operation = self.request.property("operation");
        if self.browses && !operation.is_some_and(is_browsing) {
            return Err(ServiceError::session_lock_lost());
        }
        match operation {
            Some("com.microsoft:renew-lock") => self.renew_lock(),
            Some("com.microsoft:peek-message") => self.peek_message(),
            Some("com.microsoft:update-disposition") => self.update_disposition(),
            Some("com.microsoft:schedule-message") => self.schedule_message(),
            Some("com.microsoft:cancel-scheduled-message") => self.cancel_scheduled_message(),
            Some("com.microsoft:receive-by-sequence-number") => self.receive_by_sequence_number(),
            Some("com.microsoft:batch-delete-messages") => self.batch_delete_messages(),
            Some("com.microsoft:renew-session-lock") => self.renew_session_lock(),
            Some("com.microsoft:get-session-state") => self.get_session_state(),
            Some("com.microsoft:set-session-state") => self.set_session_state(),
            Some("com.microsoft:get-message-sessions") => self.get_message_sessions(),
            Some(other) => Err(ServiceError::new(
                Condition::NotImplemented,
                format!(
                    "The operation '{other}' is not supported by this version of the emulator."
                ),
            )),
            None => Err(argument("the application property 'operation'", "a string")),
        }
    }

    /// Returns `lock-tokens`: an array or list of uuids.
    pub(crate) fn lock_tokens(&self) -> Result<Vec<LockToken>, ServiceError> {
        self.array("lock-tokens", "uuid", |token| match token {
            Value::Uuid(uuid) => Some(Uuid::from_bytes(uuid.clone().into_inner()).into()),
            _ => None,
        })
    }

    /// Returns `sequence-numbers`: an array or list of longs.
    pub(crate) fn sequence_numbers(&self) -> Result<Vec<SequenceNumber>, ServiceError> {
        self.array("sequence-numbers", "long", |number| match *number {
            Value::Long(number) => Some(SequenceNumber(number.cast_unsigned())),
            _ => None,
        })
    }

    /// Returns the elements of a field, of which there must be one at least.
    fn array<T>(
        &self,
        name: &str,
        kind: &str,
        read: impl Fn(&Value) -> Option<T>,
    ) -> Result<Vec<T>, ServiceError> {
        let elements = self.request.elements(name).unwrap_or_default();
        let read = elements.iter().map(read).collect::<Option<Vec<T>>>();
        read.filter(|read| !read.is_empty()).ok_or_else(|| {
            argument(
                name,
                &format!("an array of {kind} with at least one element"),
            )
        })
    }
}

/// Returns whether an operation is one of a receiver that only browses a session (spec/observed.md 62).
fn is_browsing(operation: &str) -> bool {
    let browsing = [
        "com.microsoft:peek-message",
        "com.microsoft:get-session-state",
    ];
    browsing.contains(&operation)
}

/// Returns the error for a missing or invalid field.
pub(crate) fn argument(name: &str, allowed: &str) -> ServiceError {
    let text = format!("{name} is missing or not allowed; it must be {allowed}.");
    ServiceError::new(Condition::ArgumentError, text)
}
