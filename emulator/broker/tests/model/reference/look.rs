//! What somebody sees of a message, and how many there are.

use servicebus_broker::{Counts, StoreKind};

use super::queue::{Letter, Queue, State};
use crate::history::Seen;

impl Queue {
    /// What is received shows how long it lives whenever that is limited; not in a dead-letter queue.
    pub(super) fn received(
        &self,
        kind: StoreKind,
        letter: &Letter,
        locked_until: Option<i64>,
    ) -> Seen {
        let own = letter.draft.time_to_live.map(u64::from);
        let active = kind == StoreKind::Active;
        let lifetime = self.lifetime(&letter.draft).filter(|_| active);
        Seen {
            number: letter.shown(),
            enqueued_number: letter.is_moved.then_some(letter.enqueued_number),
            id: letter.draft.id,
            size: letter.size,
            delivery_count: letter.count,
            enqueued_at: letter.enqueued_at,
            time_to_live: if active {
                lifetime.map(|lifetime| lifetime as u64)
            } else {
                own
            },
            locked_until,
            state: match letter.is_deferred() {
                true => Some(1),
                false => letter.was_scheduled.then_some(2),
            },
            source: letter.source,
            properties: letter.properties.clone(),
        }
    }

    /// What is browsed shows it only if it brought a time to live of its own.
    pub(crate) fn browsed(&self, kind: StoreKind, letter: &Letter) -> Seen {
        let own = letter.draft.time_to_live;
        let seen = self.received(kind, letter, None);
        Seen {
            time_to_live: own.and(seen.time_to_live),
            state: Some(match (letter.is_scheduled(), letter.is_deferred()) {
                (true, _) => 2,
                (false, deferred) => deferred.into(),
            }),
            source: None,
            ..seen
        }
    }

    pub(crate) fn counts(&self, kind: StoreKind) -> Counts {
        let store = self.store(kind);
        let scheduled = store.count(|state| matches!(state, State::Scheduled(_)));
        let whole = kind == StoreKind::Active;
        let beside = |kind| whole as usize * self.store(kind).letters.len();
        Counts {
            active: store.letters.len() - scheduled,
            dead_letter: beside(StoreKind::DeadLetters),
            transfer_dead_letter: beside(StoreKind::TransferDeadLetters),
            scheduled,
            // Whatever goes on has gone before a step is over.
            transfer: 0,
            locked: store.count(|state| matches!(state, State::Locked { .. })),
            deferred: store.letters.iter().filter(|l| l.is_deferred()).count(),
            size: match whole {
                true => self.size(),
                false => store.letters.iter().map(|letter| letter.size).sum(),
            },
        }
    }
}
