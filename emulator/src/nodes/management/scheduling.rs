//! `schedule-message` and `cancel-scheduled-message`.

use serde_amqp::Value;
use servicebus_broker::{Message, MessageError, SequenceNumber};

use super::call::{Management, argument};
use crate::nodes::{
    Condition, Reply, ServiceError, message_refusal, send_refusal, transact_refusal,
};

const MESSAGES: &str = "a list of maps, each with an encoded 'message' as binary";

impl Management<'_, '_> {
    /// `{messages: [{message: binary, …}]}` → `{sequence-numbers: long[]}`, in order; all or none. What the maps
    /// say besides stands in the messages too.
    pub(crate) fn schedule_message(&mut self) -> Result<Reply, ServiceError> {
        self.check_is_queue()?;
        let messages = self.request.elements("messages");
        let messages = messages.filter(|messages| !messages.is_empty());
        let messages = messages.ok_or_else(|| argument("messages", MESSAGES))?;
        let limit = self.entity.tier().max_message_size();
        let mut parsed = Vec::with_capacity(messages.len());
        // All of them together, as in a batch that is sent.
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
            message.enter(self.ahead);
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
        // A duplicate has none, which clients are told as 0.
        let number = |number: &Option<SequenceNumber>| number.map_or(0, |number| number.0 as i64);
        Ok(Reply::map(1, |out| {
            out.string("sequence-numbers");
            out.long_array(numbers.iter().map(number));
        }))
    }

    /// `{sequence-numbers: long[]}` → 200; all or none.
    pub(crate) fn cancel_scheduled_message(&mut self) -> Result<Reply, ServiceError> {
        self.check_is_queue()?;
        if self.transaction.is_some() {
            let text = "Scheduled messages cannot be cancelled in a transaction.";
            return Err(ServiceError::new(Condition::NotAllowed, text));
        }
        let numbers = self.sequence_numbers()?;
        let cancelled = self.entity.cancel_scheduled(self.cx, &numbers);
        cancelled
            .map_err(|error| ServiceError::new(Condition::MessageNotFound, error.to_string()))?;
        Ok(Reply::done())
    }

    /// Nothing is sent to a dead-letter queue, now or later (semantics §3.3).
    fn check_is_queue(&self) -> Result<(), ServiceError> {
        if self.kind == servicebus_broker::SubQueue::Active {
            return Ok(());
        }
        let text = format!(
            "Messages cannot be scheduled at '{}{}': a dead-letter queue is filled by the broker alone.",
            self.entity.path(),
            self.kind.suffix()
        );
        Err(ServiceError::new(Condition::NotAllowed, text))
    }
}

/// The encoded message of an entry.
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
