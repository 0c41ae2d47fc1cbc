//! Somebody clears away messages without receiving them.

use crate::{Context, Entity, EventKind, SequenceNumber, SessionName, SubQueue, Timestamp};

impl Entity {
    /// Removes up to `max` messages that were enqueued before `before`, the first first, and returns how many; of
    /// `session` only if it is given.
    /// Messages that somebody has, deferred and scheduled ones are passed over (semantics §17.3).
    pub fn delete_messages(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        max: usize,
        before: Timestamp,
        session: Option<&SessionName>,
    ) -> usize {
        self.begin(cx);
        let store = self.store(kind);
        let is_older = |number: &SequenceNumber| {
            let entry = store.entries.get(number.0);
            entry.is_some_and(|entry| entry.enqueued_at < before)
        };
        // A dead letter keeps the time of its arrival in the queue, so that older ones may stand behind younger.
        let numbers = store.ready_of(session).filter(is_older);
        let numbers: Vec<SequenceNumber> = numbers.take(max).collect();
        let store = self.store_mut(kind);
        for &number in &numbers {
            store.record(cx, number, EventKind::Deleted);
            store.remove(number);
        }
        self.reserve(cx);
        numbers.len()
    }
}
