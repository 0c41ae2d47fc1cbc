//! Messages are sent in a transaction: checked at once, buffered, accepted at the commit.
//!
//! SequenceSet, enqueue times and what is a duplicate are found at the commit.

use super::TransactError;
use crate::operation::send::SendError;
use crate::transaction::{Partition, Transaction, Work};
use crate::{Context, Entity, EventKind, Message, SequenceNumber, partition};

impl Entity {
    /// Enlists messages to be sent to this entity, all or none.
    pub fn enlist_send(
        &mut self,
        cx: &mut Context<'_>,
        transaction: &mut Transaction,
        messages: Vec<Message>,
    ) -> Result<(), TransactError> {
        let partition = self.check_sends(cx, transaction, &messages, Self::own_key)?;
        for message in messages {
            self.note_send(cx, transaction, &message, SequenceNumber(0));
            transaction.enlist(cx.now, self, Work::Send { message, partition });
        }
        Ok(())
    }

    /// Whether the messages are welcome beside those that this and other transactions have for this entity; the
    /// partition that they will be in.
    pub(super) fn check_sends(
        &mut self,
        cx: &mut Context<'_>,
        transaction: &mut Transaction,
        messages: &[Message],
        key: impl Fn(&Self, &Message) -> Result<Option<String>, SendError>,
    ) -> Result<u8, TransactError> {
        self.begin(cx);
        transaction.check(cx.now, &self.path, messages.len())?;
        self.check_quota(messages.iter().map(Message::size).sum())?;
        let keys = messages.iter().map(|message| key(self, message));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let key = partition::key_of_batch(&keys)?;
        if !self.description.enable_partitioning {
            return Ok(0);
        }
        let number = match (key, transaction.partition()) {
            // Messages without a key go where the others go.
            (None, Some(own)) => own.number,
            (key, _) => self.partition(key),
        };
        let key = key.map(str::to_owned);
        let own = transaction.partition().cloned();
        transaction.set_partition(Partition::join(own, Partition { number, key })?);
        Ok(number)
    }

    /// The partition key of a message that stays here, if it may.
    pub(super) fn own_key(&self, message: &Message) -> Result<Option<String>, SendError> {
        self.check_session(message)?;
        self.partition_key(message)
    }

    pub(super) fn note_send(
        &self,
        cx: &mut Context<'_>,
        transaction: &Transaction,
        message: &Message,
        number: SequenceNumber,
    ) {
        let kind = EventKind::SendEnlisted {
            message_id: cx.events.text(&message.id()),
            transaction: transaction.id(),
        };
        self.active.record_as(cx, number, kind);
    }
}
