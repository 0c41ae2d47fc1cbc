//! Messages of a reply, which are written after their entity was unlocked.

use servicebus_broker::{BrokerProperties, LockToken, Message};
use servicebus_codec::DecodeError;

use crate::durable::MissingBodies;
use crate::nodes::{Condition, Reply, ServiceError};

/// The messages of a reply to a peek or receive.
pub(crate) struct ReplyMessages {
    /// With their lock tokens if they are received.
    pub(crate) messages: Vec<(Option<LockToken>, BrokerProperties, Message)>,
    pub(crate) missing: MissingBodies,
    /// How many milliseconds the namespace's clock is ahead of the client's.
    pub(crate) ahead: i64,
    pub(crate) omits_body: bool,
    /// Maximum bytes of the reply, which has at least one message.
    pub(crate) most: usize,
}

impl ReplyMessages {
    /// `{messages: [{[lock-token: uuid, ]message: binary}]}`, or 204.
    pub(crate) fn reply(mut self) -> Result<Reply, ServiceError> {
        let messages = self.encode().map_err(|error| {
            let text = format!("A message cannot be encoded: {error}.");
            ServiceError::new(Condition::InternalError, text)
        })?;
        if messages.is_empty() {
            return Ok(Reply::no_content());
        }
        Ok(Reply::map(1, |out| {
            out.string("messages");
            let list = out.begin_list();
            for ((token, ..), message) in self.messages.iter().zip(&messages) {
                let entry = out.begin_map();
                if let Some(token) = token {
                    out.string("lock-token");
                    out.uuid(token.uuid());
                }
                out.string("message");
                out.binary(message);
                out.end(entry, if token.is_some() { 4 } else { 2 });
            }
            out.end(list, messages.len() as u32);
        }))
    }

    fn encode(&mut self) -> Result<Vec<Vec<u8>>, DecodeError> {
        if !self.omits_body {
            self.fill();
        }
        let mut all: Vec<Vec<u8>> = Vec::with_capacity(self.messages.len());
        let mut bytes = 0;
        for (_, broker_properties, message) in &self.messages {
            let mut encoded = Vec::new();
            if self.omits_body {
                message.encode_without_body(broker_properties, self.ahead, &mut encoded)?;
            } else {
                encoded.reserve_exact(message.size() as usize + 256);
                let tail = message.encode(broker_properties, self.ahead, &mut encoded)?;
                encoded.extend_from_slice(&tail);
            }
            bytes += encoded.len();
            if bytes > self.most && !all.is_empty() {
                break;
            }
            all.push(encoded);
        }
        Ok(all)
    }

    /// Keeps as many complete messages as there is room for.
    fn fill(&mut self) {
        let mut bytes = 0;
        let fits = |(.., message): &&(_, _, Message)| {
            let is_first = bytes == 0;
            bytes += message.size();
            is_first || bytes <= self.most as u64
        };
        let fitting = self.messages.iter().take_while(fits).count();
        self.messages.truncate(fitting);
        let messages = self.messages.iter_mut();
        self.missing.fill(messages.map(|(.., message)| message));
    }
}
