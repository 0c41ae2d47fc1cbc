//! `peek-message`, `receive-by-sequence-number`, `batch-delete-messages` and `update-disposition`.
//!
//! `schedule-message` and `cancel-scheduled-message`.

use serde_amqp::Value;
use servicebus_broker::{
    BrokerProperties, CancelError, Delivery, LockToken, Message, MessageError, Outcome,
    PropertyChanges, ReceiveDeferredError, ReceiveMode, RenewError, SequenceNumber, Timestamp,
};

use super::reply_messages::ReplyMessages;
use super::{Management, argument};
use crate::durable::MissingBodies;
use crate::nodes::{
    Condition, Reply, ServiceError, message_refusal, send_refusal, settle_refusal, transact_refusal,
};

/// Maximum messages and bytes in one reply: "may return fewer than asked" (semantics §10). A reply has at least one message.
const PEEK_MESSAGES: i64 = 1000;
const PEEK_BYTES: usize = 1024 * 1024;

impl Management<'_, '_> {
    /// `{from-sequence-number: long, message-count: int[, session-id][, omit-message-body: boolean]}` → `{messages:
    /// [{message: binary}]}`, or 204.
    pub(crate) fn peek_message(&mut self) -> Result<Reply, ServiceError> {
        let request = self.request;
        let from = request.integer("from-sequence-number");
        let from = from.ok_or_else(|| argument("from-sequence-number", "a long"))?;
        let count = request.whole("message-count", 1)?.min(PEEK_MESSAGES) as usize;
        let from = SequenceNumber(u64::try_from(from).unwrap_or(0));
        let session = self.optional_session()?;
        let seen = self
            .entity
            .peek(self.cx, self.kind, from, count, session.as_ref());
        if seen.is_empty() {
            return Ok(Reply::no_content());
        }
        let omits_body = self.request.field("omit-message-body") == Some(&Value::Bool(true));
        let seen = seen.into_iter();
        let seen = seen.map(|seen| (None, seen.broker_properties, seen.message));
        self.show(seen.collect(), omits_body, PEEK_BYTES);
        Ok(Reply::done())
    }

    /// Refuses to take messages that together exceed what a reply may have: they would be lost with the connection.
    fn check_reply_size(&self, numbers: &[SequenceNumber]) -> Result<(), ServiceError> {
        let sizes = numbers.iter().filter_map(|&number| {
            let found = self.entity.inspect_one(self.kind, number)?;
            Some(found.message.size())
        });
        let (size, limit) = (sizes.sum::<u64>(), self.largest_reply);
        if numbers.len() < 2 || size <= limit as u64 {
            return Ok(());
        }
        let text = format!(
            "The messages have {size} bytes; a reply may have {limit}, half of what the connection may hold \
             (--connection-memory). Receive fewer at a time."
        );
        Err(ServiceError::new(Condition::ResourceLimitExceeded, text))
    }

    /// Puts these messages into the reply.
    fn show(
        &mut self,
        messages: Vec<(Option<LockToken>, BrokerProperties, Message)>,
        omits_body: bool,
        most: usize,
    ) {
        let all = messages.iter().map(|(.., message)| message);
        *self.reply_messages = Some(ReplyMessages {
            missing: MissingBodies::of(self.store, all),
            messages,
            ahead: self.ahead,
            omits_body,
            most,
        });
    }

    /// `{sequence-numbers: long[], receiver-settle-mode: uint[, session-id]}` → `{messages: [{lock-token: uuid, message:
    /// binary}]}`; all or none (wire.md §6.2).
    pub(crate) fn receive_by_sequence_number(&mut self) -> Result<Reply, ServiceError> {
        let numbers = self.sequence_numbers()?;
        let mode = match self.request.integer("receiver-settle-mode") {
            Some(0) => ReceiveMode::ReceiveAndDelete,
            Some(1) => ReceiveMode::PeekLock,
            _ => {
                let allowed = "a uint: 0 for receive-and-delete, 1 for peek-lock";
                return Err(argument("receiver-settle-mode", allowed));
            }
        };
        let session = self.optional_held_session()?;
        self.check_reply_size(&numbers)?;
        // The receiver of the request, if named, so that its locks end with its link.
        let holder = self.requested_by.unwrap_or(self.receiver_id);
        let received = self.entity.receive_deferred(
            self.cx,
            self.kind,
            &numbers,
            mode,
            holder,
            session.as_ref(),
        );
        let received = received.map_err(|error| match error {
            ReceiveDeferredError::Disabled => {
                ServiceError::disabled(self.host, self.entity.path().as_str())
            }
            ReceiveDeferredError::SessionLockLost => ServiceError::session_lock_lost(),
            ReceiveDeferredError::NotFound => {
                ServiceError::new(Condition::MessageNotFound, error.to_string())
            }
            ReceiveDeferredError::DifferentPartitions => {
                ServiceError::new(Condition::NotAllowed, error.to_string())
            }
        })?;
        let received = received.into_iter().map(|delivery| {
            let Delivery {
                token,
                broker_properties,
                message,
            } = delivery;
            (Some(token), broker_properties, message)
        });
        self.show(received.collect(), false, usize::MAX);
        Ok(Reply::done())
    }

    /// `{message-count: int, enqueued-time-utc: timestamp[, session-id]}` → `{message-count: int}`, 0 included
    /// (spec/observed.md 56).
    pub(crate) fn batch_delete_messages(&mut self) -> Result<Reply, ServiceError> {
        let limit = i64::from(self.entity.tier().max_batch_delete());
        let count = self.request.integer("message-count");
        let count = count.ok_or_else(|| argument("message-count", "an int above 0"))?;
        if !(1..=limit).contains(&count) {
            let text = format!(
                "Invalid Message Count : requested {count}. Message count should be between 1 and {limit}."
            );
            return Err(ServiceError::new(Condition::ArgumentOutOfRange, text));
        }
        let Some(Value::Timestamp(before)) = self.request.field("enqueued-time-utc") else {
            return Err(argument("enqueued-time-utc", "a timestamp"));
        };
        let before = before.clone().into_inner().saturating_add(self.ahead);
        let description = self.entity.description();
        if description.enable_partitioning {
            return Err(ServiceError::partitioned());
        }
        if !description.status.can_receive() {
            let path = self.entity.path().as_str();
            return Err(ServiceError::disabled(self.host, path));
        }
        let before = Timestamp::from_millis(before);
        let session = self.optional_session()?;
        let deleted = self.entity.delete_messages(
            self.cx,
            self.kind,
            count as usize,
            before,
            session.as_ref(),
        );
        Ok(Reply::map(1, |out| {
            out.string("message-count");
            out.int(deleted as i32);
        }))
    }

    /// `{disposition-status, lock-tokens[, deadletter-reason][, deadletter-description][, properties-to-modify]}` → 200. A
    /// second settlement of the same token answers lock lost (semantics §2.4). A `session-id` is ignored, because the tokens
    /// suffice.
    pub(crate) fn update_disposition(&mut self) -> Result<Reply, ServiceError> {
        self.optional_held_session()?;
        let tokens = self.lock_tokens()?;
        let outcome = self.outcome()?;
        let path = self.entity.path().clone();
        if let Some(transaction) = &mut self.transaction {
            let enlisted =
                self.entity
                    .enlist_settlement(self.cx, transaction, self.kind, &tokens, &outcome);
            enlisted.map_err(|error| transact_refusal(&error, self.host, &path))?;
            return Ok(Reply::done());
        }
        self.entity
            .settle_all(self.cx, self.kind, &tokens, &outcome)
            .map_err(|error| settle_refusal(&error, self.host, &path))?;
        Ok(Reply::done())
    }

    fn outcome(&self) -> Result<Outcome, ServiceError> {
        let text = |name| self.request.text(name).filter(|text| !text.is_empty());
        match self.request.text("disposition-status") {
            Some("completed") => Ok(Outcome::Complete),
            Some("abandoned") => Ok(Outcome::Abandon {
                changes: self.changes()?,
            }),
            Some("suspended") => Ok(Outcome::DeadLetter {
                reason: text("deadletter-reason").map(str::to_owned),
                description: text("deadletter-description").map(str::to_owned),
                changes: self.changes()?,
            }),
            // The protocol's own spelling (semantics §19).
            Some("defered") => Ok(Outcome::Defer {
                changes: self.changes()?,
            }),
            _ => Err(argument(
                "disposition-status",
                "'completed', 'abandoned', 'defered' or 'suspended'",
            )),
        }
    }

    fn changes(&self) -> Result<PropertyChanges, ServiceError> {
        // Read encoded: serde_amqp can neither read nor write back every value.
        let encoded = self.request.encoded("properties-to-modify");
        let encoded = encoded.filter(|encoded| *encoded != [0x40]);
        let changes = encoded.map_or_else(|| Ok(PropertyChanges::new()), PropertyChanges::from_map);
        let allowed = "a map from strings to values of primitive types";
        changes.map_err(|_| argument("properties-to-modify", allowed))
    }
}

impl Management<'_, '_> {
    /// `{lock-tokens: uuid[]}` → `{expirations: timestamp[]}`, in the client's time.
    pub(crate) fn renew_lock(&mut self) -> Result<Reply, ServiceError> {
        let tokens = self.lock_tokens()?;
        let renewed = self.entity.renew_locks(self.cx, self.kind, &tokens);
        let ends = renewed.map_err(|error| match error {
            RenewError::LockLost(_) => ServiceError::lock_lost(),
            RenewError::UnderSession(_) => {
                ServiceError::locked_by_session(self.entity.path().as_str())
            }
            RenewError::Disabled => ServiceError::disabled(self.host, self.entity.path().as_str()),
        })?;
        let ends = ends
            .iter()
            .map(|end| end.as_millis().saturating_sub(self.ahead));
        Ok(Reply::map(1, |out| {
            out.string("expirations");
            out.timestamp_array(ends);
        }))
    }
}

const MESSAGES: &str = "a list of maps, each with an encoded 'message' as binary";

impl Management<'_, '_> {
    /// `{messages: [{message: binary, …}]}` → `{sequence-numbers: long[]}`, in order; all or none. The messages repeat the
    /// other fields of the maps.
    pub(crate) fn schedule_message(&mut self) -> Result<Reply, ServiceError> {
        let messages = self.request.elements("messages");
        let messages = messages.filter(|messages| !messages.is_empty());
        let messages = messages.ok_or_else(|| argument("messages", MESSAGES))?;
        let limit = self.entity.tier().max_message_size();
        let mut parsed = Vec::with_capacity(messages.len());
        // All of them together, as in a sent batch.
        let mut size = 0;
        for message in messages {
            let encoded = encoded(message).ok_or_else(|| argument("messages", MESSAGES))?;
            size += encoded.len() as u64;
            if size > limit {
                return Err(ServiceError::message_too_large(0, size, limit));
            }
            let refused = |error: MessageError| message_refusal(&error);
            let mut message =
                Message::parse(encoded.to_vec().into(), self.cx.ids).map_err(refused)?;
            if message.scheduled_at().is_none() {
                let wanted = "set to a timestamp in each message to schedule";
                return Err(argument("x-opt-scheduled-enqueue-time", wanted));
            }
            message.shift_to_namespace_time(self.ahead);
            parsed.push(message);
        }
        let numbers: Vec<_> = match &mut self.transaction {
            Some(transaction) => {
                let (cx, destination) = (&mut *self.cx, self.destination);
                let numbers = self
                    .entity
                    .enlist_schedule(cx, transaction, parsed, destination);
                let path = self.entity.path();
                let numbers = numbers.map_err(|error| transact_refusal(&error, self.host, path))?;
                numbers.into_iter().map(Some).collect()
            }
            None => {
                let numbers = match self.destination {
                    Some(destination) => {
                        let numbers = self.entity.schedule_via(self.cx, destination, parsed);
                        numbers.map(|numbers| numbers.into_iter().map(Some).collect())
                    }
                    None => self.entity.send_batch(self.cx, parsed),
                };
                numbers.map_err(|error| send_refusal(&error, self.host))?
            }
        };
        // A duplicate has none, which clients get as 0.
        let number = |number: &Option<SequenceNumber>| number.map_or(0, |number| number.0 as i64);
        Ok(Reply::map(1, |out| {
            out.string("sequence-numbers");
            out.long_array(numbers.iter().map(number));
        }))
    }

    /// `{sequence-numbers: long[]}` → 200; all or none.
    pub(crate) fn cancel_scheduled_message(&mut self) -> Result<Reply, ServiceError> {
        if self.transaction.is_some() {
            let text = "Scheduled messages cannot be cancelled in a transaction.";
            return Err(ServiceError::new(Condition::NotAllowed, text));
        }
        let numbers = self.sequence_numbers()?;
        let cancelled = self.entity.cancel_scheduled(self.cx, &numbers);
        cancelled.map_err(|error| {
            let condition = match error {
                CancelError::NotFound(_) => Condition::MessageNotFound,
                CancelError::Twice(_) => Condition::NotAllowed,
            };
            ServiceError::new(condition, error.to_string())
        })?;
        Ok(Reply::done())
    }
}

/// Returns the encoded message of an entry.
fn encoded(entry: &Value) -> Option<&[u8]> {
    let Value::Map(map) = entry else {
        return None;
    };
    map.iter().find_map(|(key, value)| match (key, value) {
        (Value::String(key), Value::Binary(bytes)) if key == "message" => Some(bytes.as_slice()),
        (Value::Symbol(key), Value::Binary(bytes)) if key.as_str() == "message" => {
            Some(bytes.as_slice())
        }
        _ => None,
    })
}
