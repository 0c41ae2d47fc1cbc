//! Messages are sent or scheduled in a transaction, and to one entity by way of another (send-via, semantics §12).
//!
//! They are checked at once, buffered, and accepted at the commit: numbers, enqueue times and what is a duplicate are found
//! there. A client that schedules is told numbers at once, to cancel by; so they are reserved. If the transaction is rolled
//! back, or a message turns out to be a duplicate, its number belongs to no message.
//!
//! The entity between takes messages for another one in with all else that a transaction does there, and forwards them: in
//! order, and into its transfer dead letters where that fails (decision D3). They take no part in its duplicate detection and
//! in its own forwarding, and pass it without a hop.

use super::{Partition, TransactError, Transaction, Work};
use crate::context::Context;
use crate::entity::Entity;
use crate::entity::operation::send::SendError;
use crate::entity::partition::key_of_batch;
use crate::event::EventKind;
use crate::ids::{EntityPath, Offset, SequenceNumber};
use crate::message::Message;
use crate::store::Entry;

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
            self.record_send(cx, transaction, &message, None);
            transaction.enlist(cx.now, self, Work::Send { message, partition });
        }
        Ok(())
    }

    /// Whether the messages are welcome beside those that this and other transactions have for this entity; the
    /// partition that they will be in.
    pub(crate) fn check_sends(
        &mut self,
        cx: &mut Context<'_>,
        transaction: &mut Transaction,
        messages: &[Message],
        key: impl Fn(&Self, &Message) -> Result<Option<String>, SendError>,
    ) -> Result<u8, TransactError> {
        self.touch(cx);
        transaction.check(cx.now, &self.path, messages.len())?;
        self.check_quota(messages.iter().map(Message::size).sum())?;
        self.check_room(cx)?;
        let keys = messages.iter().map(|message| key(self, message));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
        let key = key_of_batch(&keys)?;
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

    pub(crate) fn record_send(
        &self,
        cx: &mut Context<'_>,
        transaction: &Transaction,
        message: &Message,
        number: Option<SequenceNumber>,
    ) {
        let kind = EventKind::SendEnlisted {
            message_id: cx.events.text(&message.id()),
            transaction: transaction.id(),
        };
        self.active.record_as(cx, number, kind);
    }

    /// Enlists messages to be scheduled, all or none, and returns the numbers that they will have until they become
    /// active. With a destination they go on there then (observed 61).
    pub fn enlist_schedule(
        &mut self,
        cx: &mut Context<'_>,
        transaction: &mut Transaction,
        messages: Vec<Message>,
        destination: Option<&EntityPath>,
    ) -> Result<Vec<SequenceNumber>, TransactError> {
        let key = |entity: &Self, message: &Message| match destination {
            Some(_) => Ok(entity.via_key(message)),
            None => entity.own_key(message),
        };
        let partition = self.check_sends(cx, transaction, &messages, key)?;
        let mut numbers = Vec::with_capacity(messages.len());
        for message in messages {
            let offset = self.active.reserve_offset();
            let number = offset.in_partition(partition);
            self.record_send(cx, transaction, &message, Some(number));
            numbers.push(number);
            let work = Work::Schedule {
                message,
                partition,
                offset,
                destination: destination.cloned(),
            };
            transaction.enlist(cx.now, self, work);
        }
        Ok(numbers)
    }

    /// Schedules messages that go on to `destination` when they are due, all or none, and returns their numbers until
    /// then (observed 61).
    pub fn schedule_via(
        &mut self,
        cx: &mut Context<'_>,
        destination: &EntityPath,
        messages: Vec<Message>,
    ) -> Result<Vec<SequenceNumber>, SendError> {
        self.verb(cx, |entity, cx| {
            let partition = entity.check_via(cx, &messages)?;
            let mut numbers = Vec::with_capacity(messages.len());
            for message in messages {
                let offset = entity.active.reserve_offset();
                numbers.push(offset.in_partition(partition));
                let destination = Some(destination.clone());
                entity.accept_scheduled(cx, message, partition, offset, destination);
            }
            Ok(numbers)
        })
    }

    /// Takes in a message at its reserved place. One whose time has come meanwhile becomes active at once.
    pub(crate) fn accept_scheduled(
        &mut self,
        cx: &mut Context<'_>,
        message: Message,
        partition: u8,
        offset: Offset,
        destination: Option<EntityPath>,
    ) {
        let at = message.scheduled_at().unwrap_or(cx.now).max(cx.now);
        if destination.is_none() && self.is_duplicate(cx, &message, at) {
            return;
        }
        let entry = Entry::new(message, cx.now, offset.in_partition(partition));
        let entry = entry.in_partition(partition);
        let session = match destination {
            // Its session is one of its destination.
            Some(destination) => {
                self.active.address(offset, destination);
                None
            }
            None => self.active.session_of(entry.message()),
        };
        self.schedule_as(cx, offset, entry, at, session);
        if at == cx.now {
            self.activate(cx, offset);
        }
    }

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
            self.record_send(cx, transaction, &message, None);
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
        self.verb(cx, |entity, cx| {
            let partition = entity.check_via(cx, &messages)?;
            for message in messages {
                entity.accept_send_via(cx, message, partition, destination.clone());
            }
            Ok(())
        })
    }

    /// Whether messages may go by way of this entity, and in which of its partitions.
    pub(crate) fn check_via(
        &mut self,
        cx: &Context<'_>,
        messages: &[Message],
    ) -> Result<u8, SendError> {
        self.check_quota(messages.iter().map(Message::size).sum())?;
        self.check_room(cx)?;
        let keys: Vec<_> = messages
            .iter()
            .map(|message| self.via_key(message))
            .collect();
        self.partition_of_batch(&keys)
    }

    pub(crate) fn accept_send_via(
        &mut self,
        cx: &mut Context<'_>,
        message: Message,
        partition: u8,
        destination: EntityPath,
    ) {
        let offset = self.active.next_offset();
        self.active.address(offset, destination);
        let entry = Entry::new(message, cx.now, offset.in_partition(partition));
        let entry = entry.in_partition(partition);
        // Its session is one of its destination.
        self.enqueue(cx, entry, None);
    }

    /// What decides about the partition here; the partition key of a message does at its destination.
    pub(crate) fn via_key(&self, message: &Message) -> Option<String> {
        let key = message.via_partition_key();
        let key = key.filter(|_| self.description.enable_partitioning);
        key.map(|key| key.into_owned())
    }
}
