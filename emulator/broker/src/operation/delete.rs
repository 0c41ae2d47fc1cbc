//! Somebody clears away messages without receiving them.

use crate::{Context, FactKind, Mailbox, SequenceNumber, StoreKind, Timestamp};

impl Mailbox {
    /// Removes up to `max` messages that were enqueued before `before`, the first first, and returns how many.
    /// Messages that somebody has, deferred and scheduled ones are passed over (semantics §17.3).
    pub fn delete_messages(
        &mut self,
        cx: &mut Context<'_>,
        kind: StoreKind,
        max: usize,
        before: Timestamp,
    ) -> usize {
        self.begin(cx);
        let store = self.store_mut(kind);
        let is_older = |number: &SequenceNumber| {
            let entry = store.entries.get(number.0);
            entry.is_some_and(|entry| entry.enqueued_at < before)
        };
        // A dead letter keeps the time of its arrival in the queue, so that older ones may stand behind younger.
        let numbers = store.ready.iter().copied().filter(is_older);
        let numbers: Vec<SequenceNumber> = numbers.take(max).collect();
        for &number in &numbers {
            store.remove(number);
            store.note(cx, number, FactKind::Deleted);
        }
        self.assign(cx);
        numbers.len()
    }
}
