//! Messages are sent to one entity by way of another (send-via, semantics §12).
//!
//! The entity between takes them in with whatever else a transaction does there, and they are carried on like
//! forwarded ones: in order, and into its transfer dead letters where that fails (decision D3). They take no part in
//! its duplicate detection and in its own forwarding, and pass it without a hop.

use super::TransactError;
use crate::operation::send::SendError;
use crate::store::entry::Entry;
use crate::transaction::{Transaction, Work};
use crate::{Context, Entity, EntityPath, Message, SequenceNumber, partition};

impl Entity {
    /// Enlists messages to be sent to `destination` by way of this entity, all or none.
    pub fn enlist_transfer(
        &mut self,
        cx: &mut Context<'_>,
        transaction: &mut Transaction,
        destination: &EntityPath,
        messages: Vec<Message>,
    ) -> Result<(), TransactError> {
        let key = |entity: &Self, message: &Message| Ok(entity.via_key(message));
        let partition = self.check_sends(cx, transaction, &messages, key)?;
        for message in messages {
            self.note_send(cx, transaction, &message, SequenceNumber(0));
            let work = Work::Transfer {
                message,
                partition,
                destination: destination.clone(),
            };
            transaction.enlist(cx.now, self, work);
        }
        Ok(())
    }

    /// Sends messages to `destination` by way of this entity without a transaction, all or none.
    pub fn send_via(
        &mut self,
        cx: &mut Context<'_>,
        destination: &EntityPath,
        messages: Vec<Message>,
    ) -> Result<(), SendError> {
        self.begin(cx);
        let partition = self.check_via(&messages)?;
        for message in messages {
            self.accept_send_via(cx, message, partition, destination.clone());
        }
        self.reserve(cx);
        Ok(())
    }

    /// Whether messages may go by way of this entity, and in which of its partitions.
    pub(super) fn check_via(&mut self, messages: &[Message]) -> Result<u8, SendError> {
        self.check_quota(messages.iter().map(Message::size).sum())?;
        let keys: Vec<_> = messages
            .iter()
            .map(|message| self.via_key(message))
            .collect();
        let key = partition::key_of_batch(&keys)?;
        Ok(self.partition(key))
    }

    pub(super) fn accept_send_via(
        &mut self,
        cx: &mut Context<'_>,
        message: Message,
        partition: u8,
        destination: EntityPath,
    ) {
        let number = self.active.next_number();
        self.active.address(number, destination);
        let entry = Entry {
            enqueued_number: number.in_partition(partition),
            partition,
            ..Entry::new(message, cx.now, number)
        };
        // Its session is one of its destination.
        self.enqueue(cx, entry, None);
    }

    /// What decides about the partition here; the partition key of a message does at its destination.
    pub(super) fn via_key(&self, message: &Message) -> Option<String> {
        let key = message.via_partition_key();
        let key = key.filter(|_| self.description.enable_partitioning);
        key.map(|key| key.into_owned())
    }
}
