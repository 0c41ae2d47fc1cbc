//! A test wants a queue as it was declared.

use crate::{Context, Entity, EventKind, SequenceNumber, SubQueue};

impl Entity {
    /// Removes every message, locked ones and dead letters included, and forgets the ids that duplicate detection
    /// knows, and all sessions with their states. Receivers and their credit stay, but who held a session has lost it.
    pub fn reset(&mut self, cx: &mut Context<'_>) {
        self.begin(cx);
        self.forget_sessions(cx);
        for kind in SubQueue::ALL {
            let store = self.store_mut(kind);
            let numbers: Vec<u64> = store.entries.iter().map(|(number, _)| number).collect();
            for number in numbers.into_iter().map(SequenceNumber) {
                store.record(cx, number, EventKind::Removed);
                store.remove(number);
            }
        }
        if let Some(history) = &mut self.history {
            history.clear();
        }
        self.reserve(cx);
    }
}
