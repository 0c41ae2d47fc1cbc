//! Messages are scheduled in a transaction.
//!
//! Whoever schedules is told numbers at once, to cancel by; so they are reserved. If the transaction is rolled back,
//! or a message turns out to be a duplicate, its number belongs to no message.

use super::TransactError;
use crate::operation::send::SendError;
use crate::store::entry::Entry;
use crate::transaction::{Transaction, Work};
use crate::{Context, Entity, EntityPath, Message, SequenceNumber};

impl Entity {
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
            let number = self.active.reserve_number();
            let shown = number.in_partition(partition);
            self.note_send(cx, transaction, &message, shown);
            numbers.push(shown);
            let work = Work::Schedule {
                message,
                partition,
                number,
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
        self.begin(cx);
        let partition = self.check_via(&messages)?;
        let mut numbers = Vec::with_capacity(messages.len());
        for message in messages {
            let number = self.active.reserve_number();
            numbers.push(number.in_partition(partition));
            self.accept_scheduled(cx, message, partition, number, Some(destination.clone()));
        }
        self.reserve(cx);
        Ok(numbers)
    }

    /// Takes in a message under its reserved number. One whose time has come meanwhile becomes active at once.
    pub(super) fn accept_scheduled(
        &mut self,
        cx: &mut Context<'_>,
        message: Message,
        partition: u8,
        number: SequenceNumber,
        destination: Option<EntityPath>,
    ) {
        let at = message.scheduled_at().unwrap_or(cx.now).max(cx.now);
        if destination.is_none() && self.is_duplicate(cx, &message, at) {
            return;
        }
        let entry = Entry {
            enqueued_number: number.in_partition(partition),
            partition,
            ..Entry::new(message, cx.now, number)
        };
        let session = match destination {
            // Its session is one of its destination.
            Some(destination) => {
                self.active.address(number, destination);
                None
            }
            None => self.active.session_of(&entry.message),
        };
        self.schedule_as(cx, number, entry, at, session);
        if at == cx.now {
            self.activate(cx, number);
        }
    }
}
