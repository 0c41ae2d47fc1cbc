//! The client's view of a message, and counts.

use servicebus_broker::{Counts, SubQueue};

use super::queue::{ModelMessage, Queue, State};
use crate::history::ObservedMessage;

impl Queue {
    /// A received message shows its lifetime if it has a limit; not in a dead-letter queue.
    pub(crate) fn received(
        &self,
        kind: SubQueue,
        message: &ModelMessage,
        locked_until: Option<i64>,
    ) -> ObservedMessage {
        let own = message.draft.time_to_live.map(u64::from);
        let active = kind == SubQueue::Active;
        let expires_at = message.expires_at.filter(|_| active);
        let lifetime = expires_at.map(|at| at - message.lives_since());
        ObservedMessage {
            number: message.shown(),
            enqueued_number: message.is_moved.then_some(message.enqueued_number),
            id: message.draft.id,
            size: message.size,
            delivery_count: message.count,
            enqueued_at: message.enqueued_at,
            time_to_live: if active {
                lifetime.map(|lifetime| lifetime as u64)
            } else {
                own
            },
            locked_until,
            state: match message.is_deferred() {
                true => Some(1),
                false => message.was_scheduled.then_some(2),
            },
            source: message.source,
            properties: message.properties.clone(),
        }
    }

    /// A browsed message shows it only if it has a time to live of its own.
    pub(crate) fn browsed(&self, kind: SubQueue, message: &ModelMessage) -> ObservedMessage {
        let own = message.draft.time_to_live;
        let seen = self.received(kind, message, None);
        ObservedMessage {
            time_to_live: own.and(seen.time_to_live),
            state: Some(match (message.is_scheduled(), message.is_deferred()) {
                (true, _) => 2,
                (false, deferred) => deferred.into(),
            }),
            source: None,
            ..seen
        }
    }

    pub(crate) fn counts(&self, kind: SubQueue) -> Counts {
        let store = self.store(kind);
        let scheduled = store.count(|state| matches!(state, State::Scheduled(_)));
        let whole = kind == SubQueue::Active;
        let beside = |kind| whole as usize * self.store(kind).messages.len();
        Counts {
            active: store.messages.len() - scheduled,
            dead_letter: beside(SubQueue::DeadLetter),
            transfer_dead_letter: beside(SubQueue::TransferDeadLetter),
            scheduled,
            // Forwarded messages have gone before a step ends.
            transfer: 0,
            locked: store.count(|state| matches!(state, State::Locked { .. })),
            deferred: store.messages.iter().filter(|l| l.is_deferred()).count(),
            size: match whole {
                true => self.size(),
                false => store.messages.iter().map(|message| message.size).sum(),
            },
        }
    }
}
