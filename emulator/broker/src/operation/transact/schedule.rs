//! Messages are scheduled in a transaction.
//!
//! Whoever schedules is told numbers at once, to cancel by; so they are reserved. If the transaction is rolled back,
//! or a message turns out to be a duplicate, its number belongs to no message.

use super::TransactError;
use crate::store::entry::Entry;
use crate::transaction::{Transaction, Work};
use crate::{Context, Mailbox, Message, SequenceNumber};

impl Mailbox {
    /// Enlists messages to be scheduled, all or none, and returns the numbers that they will have until they become
    /// active.
    pub fn enlist_schedule(
        &mut self,
        cx: &mut Context<'_>,
        transaction: &mut Transaction,
        messages: Vec<Message>,
    ) -> Result<Vec<SequenceNumber>, TransactError> {
        let partition = self.check_sends(cx, transaction, &messages, Self::own_key)?;
        let mut numbers = Vec::with_capacity(messages.len());
        for message in messages {
            let number = self.active.reserve();
            let shown = number.in_partition(partition);
            self.note_send(cx, transaction, &message, shown);
            numbers.push(shown);
            let work = Work::Schedule {
                message,
                partition,
                number,
            };
            transaction.enlist(cx.now, self, work);
        }
        Ok(numbers)
    }

    /// Takes in a message under its reserved number. One whose time has come meanwhile becomes active at once.
    pub(super) fn accept_scheduled(
        &mut self,
        cx: &mut Context<'_>,
        message: Message,
        partition: u8,
        number: SequenceNumber,
    ) {
        let at = message.scheduled_at().unwrap_or(cx.now).max(cx.now);
        if self.is_duplicate(cx, &message, at) {
            return;
        }
        let entry = Entry {
            enqueued_number: number.in_partition(partition),
            partition,
            ..Entry::new(message, cx.now, number)
        };
        let session = self.active.session_of(&entry.message);
        self.schedule_as(cx, number, entry, at, session);
        if at == cx.now {
            self.activate(cx, number);
        }
    }
}
