//! What can be received from: a store, its dead-letter store, and the moves between them.

use crate::store::MessageStore;
use crate::{
    ConsumerId, Context, EntityId, NamespaceSettings, QueueDescription, StoreKind, StorePolicy,
    Timestamp,
};

/// A queue's messages and its dead letters. The verbs are in `operation/`.
#[derive(Debug)]
pub struct Mailbox {
    pub(crate) active: MessageStore,
    pub(crate) dead_letters: MessageStore,
}

/// How many messages there are, by what the service counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages of the store itself, locked ones included.
    pub active: usize,
    /// Messages in the dead-letter store.
    pub dead_letter: usize,
    /// Messages under a lock, part of `active`.
    pub locked: usize,
    /// Size of everything held, dead letters included, in bytes.
    pub size: u64,
}

impl Mailbox {
    /// Empty stores under the rules of a description.
    pub fn new(entity: EntityId, queue: &QueueDescription, settings: &NamespaceSettings) -> Self {
        let store = |kind| MessageStore::new(entity, StorePolicy::new(kind, queue, settings));
        Self {
            active: store(StoreKind::Active),
            dead_letters: store(StoreKind::DeadLetters),
        }
    }

    /// One of the stores.
    pub fn store(&self, kind: StoreKind) -> &MessageStore {
        match kind {
            StoreKind::Active => &self.active,
            StoreKind::DeadLetters => &self.dead_letters,
        }
    }

    pub(crate) fn store_mut(&mut self, kind: StoreKind) -> &mut MessageStore {
        match kind {
            StoreKind::Active => &mut self.active,
            StoreKind::DeadLetters => &mut self.dead_letters,
        }
    }

    /// Hands what is ready to those who wait; the last thing that every verb does.
    pub(crate) fn assign(&mut self, cx: &mut Context<'_>) {
        self.active.assign(cx);
        self.dead_letters.assign(cx);
    }

    /// Counts as seen from one of the stores.
    pub fn counts(&self, kind: StoreKind) -> Counts {
        let store = self.store(kind);
        let dead_letters = match kind {
            StoreKind::Active => self.dead_letters.len(),
            StoreKind::DeadLetters => 0,
        };
        Counts {
            active: store.len(),
            dead_letter: dead_letters,
            locked: store.locked(),
            size: match kind {
                StoreKind::Active => self.active.size() + self.dead_letters.size(),
                StoreKind::DeadLetters => store.size(),
            },
        }
    }

    /// Whether something is assigned to a consumer that has yet to take it.
    pub fn has_assigned(&self) -> bool {
        let stores = [&self.active, &self.dead_letters];
        stores.iter().any(|store| store.consumers.has_assigned())
    }

    /// Who holds the locks of a store, a consumer for each locked message.
    pub fn lock_holders(&self, kind: StoreKind) -> impl Iterator<Item = ConsumerId> {
        let store = self.store(kind);
        let numbers = store.locks.iter().map(|&(_, number)| number);
        let locks = numbers.filter_map(|number| store.entries.get(number.0)?.lock());
        locks.map(|lock| lock.consumer)
    }

    /// When time will next bring something about.
    pub fn next_deadline(&self) -> Option<Timestamp> {
        let stores = [&self.active, &self.dead_letters];
        let due = stores.into_iter().filter_map(MessageStore::next_due);
        due.map(|due| due.at()).min()
    }
}
