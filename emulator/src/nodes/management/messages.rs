//! `peek-message` and `update-disposition`.

use serde_amqp::Value;
use servicebus_broker::{Browsed, Outcome, PropertyChanges, SequenceNumber};

use super::{Management, argument};
use crate::nodes::{Condition, Refusal, Reply, settle_refusal};

/// Most messages and bytes in one reply: "may return fewer than asked" (semantics §10). At least one message
/// is always returned.
const PEEK_MESSAGES: i64 = 1000;
const PEEK_BYTES: usize = 1024 * 1024;

impl Management<'_, '_> {
    /// `{from-sequence-number: long, message-count: int}` → `{messages: [{message: binary}]}`, or 204.
    pub(super) fn peek_message(&mut self) -> Result<Reply, Refusal> {
        let request = self.request;
        let from = request.integer("from-sequence-number");
        let from = from.ok_or_else(|| argument("from-sequence-number", "a long"))?;
        let count = request.integer("message-count").filter(|&count| count > 0);
        let count = count.ok_or_else(|| argument("message-count", "an int above 0"))?;
        let from = SequenceNumber(u64::try_from(from).unwrap_or(0));
        let count = count.min(PEEK_MESSAGES) as usize;
        let seen = self.mailbox.browse(self.cx, self.kind, from, count);
        let messages = self.encode(&seen)?;
        if messages.is_empty() {
            return Ok(Reply::Done {
                status: 204,
                body: vec![0x40],
            });
        }
        Ok(Reply::map(1, |out| {
            out.string("messages");
            let list = out.begin_list();
            for message in &messages {
                let entry = out.begin_map();
                out.string("message");
                out.binary(message);
                out.end(entry, 2);
            }
            out.end(list, messages.len() as u32);
        }))
    }

    fn encode(&self, seen: &[Browsed]) -> Result<Vec<Vec<u8>>, Refusal> {
        let mut messages: Vec<Vec<u8>> = Vec::with_capacity(seen.len());
        let mut bytes = 0;
        for Browsed { stamp, message } in seen {
            let mut encoded = Vec::with_capacity(message.size() as usize + 256);
            let tail = message
                .encode(stamp, self.ahead, &mut encoded)
                .map_err(|error| {
                    Refusal::new(
                        Condition::InternalError,
                        format!("A message cannot be encoded: {error}."),
                    )
                })?;
            encoded.extend_from_slice(&tail);
            bytes += encoded.len();
            if bytes > PEEK_BYTES && !messages.is_empty() {
                break;
            }
            messages.push(encoded);
        }
        Ok(messages)
    }

    /// `{disposition-status, lock-tokens[, deadletter-reason][, deadletter-description][, properties-to-modify]}`
    /// → 200. A second settlement of the same token answers lock lost (semantics §2.4).
    pub(super) fn update_disposition(&mut self) -> Result<Reply, Refusal> {
        let tokens = self.lock_tokens()?;
        let outcome = self.outcome()?;
        self.mailbox
            .settle_all(self.cx, self.kind, &tokens, &outcome)
            .map_err(|error| settle_refusal(&error))?;
        Ok(Reply::done())
    }

    fn outcome(&self) -> Result<Outcome, Refusal> {
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
            Some("defered") => Err(Refusal::new(
                Condition::NotImplemented,
                "Deferral is not supported by this version of the emulator.",
            )),
            _ => Err(argument(
                "disposition-status",
                "'completed', 'abandoned' or 'suspended'",
            )),
        }
    }

    fn changes(&self) -> Result<PropertyChanges, Refusal> {
        let malformed = || argument("properties-to-modify", "a map from strings to AMQP values");
        match self.request.field("properties-to-modify") {
            None | Some(Value::Null) => Ok(PropertyChanges::new()),
            // As encoded: serde_amqp cannot write back every value that it reads.
            Some(Value::Map(_)) => {
                let encoded = self
                    .request
                    .encoded("properties-to-modify")
                    .unwrap_or_default();
                PropertyChanges::from_map(encoded).map_err(|_| malformed())
            }
            Some(_) => Err(malformed()),
        }
    }
}
