//! Sends and schedules messages in a transaction, and sends to one entity via another (send via, semantics §12).
//!
//! Messages are checked at once, buffered, and accepted at the commit, which assigns sequence numbers and enqueue times and
//! detects duplicates. A client that schedules gets sequence numbers at once, to cancel by, so they are reserved. After a
//! rollback, or for a duplicate, a reserved number belongs to no message.
//!
//! The via entity accepts messages together with the rest of the transaction there, and forwards them in order, into its
//! transfer dead-letter queue where that fails (decision D3). They bypass its duplicate detection and its own forwarding,
//! and passing it is not a hop.

use super::{Partition, TransactError, Transaction, Work};
use crate::context::Context;
use crate::entity::Entity;
use crate::entity::operation::send::SendError;
use crate::entity::partition::{check_keys, key_of_batch};
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

    /// Checks whether the entity accepts the messages beside those that open transactions have for it; returns their
    /// partition.
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
            // Messages without a key go to the partition of the others.
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

    /// Enlists messages to be scheduled, all or none, and returns their sequence numbers until they become active. With a
    /// destination they are forwarded there then (observed 61).
    pub fn enlist_schedule(
        &mut self,
        cx: &mut Context<'_>,
        transaction: &mut Transaction,
        messages: Vec<Message>,
        destination: Option<&EntityPath>,
    ) -> Result<Vec<SequenceNumber>, TransactError> {
        let key = |entity: &Self, message: &Message| match destination {
            Some(_) => entity.via_key(message),
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

    /// Schedules messages that are forwarded to `destination` when they are due, all or none, and returns their sequence
    /// numbers until then (observed 61).
    pub fn schedule_via(
        &mut self,
        cx: &mut Context<'_>,
        destination: &EntityPath,
        messages: Vec<Message>,
    ) -> Result<Vec<SequenceNumber>, SendError> {
        self.client_operation(cx, |entity, cx| {
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

    /// Stores a message at its reserved offset. One that is due by now becomes active at once.
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

    /// Enlists messages to be sent to `destination` via this entity, all or none.
    pub fn enlist_transfer(
        &mut self,
        cx: &mut Context<'_>,
        transaction: &mut Transaction,
        destination: &EntityPath,
        messages: Vec<Message>,
    ) -> Result<(), TransactError> {
        let partition = self.check_sends(cx, transaction, &messages, Self::via_key)?;
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

    /// Sends messages to `destination` via this entity without a transaction, all or none.
    pub fn send_via(
        &mut self,
        cx: &mut Context<'_>,
        destination: &EntityPath,
        messages: Vec<Message>,
    ) -> Result<(), SendError> {
        self.client_operation(cx, |entity, cx| {
            let partition = entity.check_via(cx, &messages)?;
            for message in messages {
                entity.accept_send_via(cx, message, partition, destination.clone());
            }
            Ok(())
        })
    }

    /// Checks whether messages may be sent via this entity; returns the partition.
    pub(crate) fn check_via(
        &mut self,
        cx: &Context<'_>,
        messages: &[Message],
    ) -> Result<u8, SendError> {
        self.check_quota(messages.iter().map(Message::size).sum())?;
        self.check_room(cx)?;
        let keys = messages.iter().map(|message| self.via_key(message));
        let keys = keys.collect::<Result<Vec<_>, _>>()?;
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
    pub(crate) fn via_key(&self, message: &Message) -> Result<Option<String>, SendError> {
        check_keys(message)?;
        let key = message.via_partition_key();
        let key = key.filter(|_| self.description.enable_partitioning);
        Ok(key.map(|key| key.into_owned()))
    }
}
