//! A scheduled message becomes active, or is cancelled before.

use thiserror::Error;

use crate::context::Context;
use crate::duplicates;
use crate::entity::Entity;
use crate::event::EventKind;
use crate::ids::{Offset, SequenceNumber};

/// Why messages were not cancelled; none of them was.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CancelError {
    /// These are not scheduled: unknown, active by now, or cancelled before (semantics §20.2).
    #[error("Messages not found. Missing sequence numbers: {}", list(.0))]
    NotFound(Vec<SequenceNumber>),
}

impl Entity {
    /// Takes scheduled messages away before they become active; all or none. Their ids stay known to duplicate
    /// detection for a window from when they were accepted.
    pub fn cancel_scheduled(
        &mut self,
        cx: &mut Context<'_>,
        numbers: &[SequenceNumber],
    ) -> Result<(), CancelError> {
        self.verb(cx, |entity, cx| {
            let store = &mut entity.active;
            let is_scheduled = |number: &SequenceNumber| {
                let entry = store.get(number.offset());
                entry.is_some_and(|entry| {
                    entry.activates_at().is_some() && entry.number(number.offset()) == *number
                })
            };
            let missing = numbers.iter().copied().filter(|n| !is_scheduled(n));
            let missing: Vec<_> = missing.collect();
            if !missing.is_empty() {
                return Err(CancelError::NotFound(missing));
            }
            for &number in numbers {
                let Some(entry) = store.remove(number.offset()) else {
                    // Named twice.
                    continue;
                };
                store.record_as(cx, number, EventKind::Cancelled);
                if let Some(history) = &mut entity.history {
                    let partitioned = entity.description.enable_partitioning;
                    let id = duplicates::key(entry.message(), partitioned);
                    history.restart(&id, entry.enqueued_at());
                }
            }
            Ok(())
        })
    }

    /// A message becomes active under a new number; its time to live begins (semantics §8).
    pub(crate) fn activate(&mut self, cx: &mut Context<'_>, offset: Offset) {
        let destination = self.active.take_destination(offset);
        let Some(entry) = self.active.remove(offset) else {
            return;
        };
        let next = self.active.next_offset();
        let moved_to = entry.number(next);
        self.active
            .record_as(cx, entry.number(offset), EventKind::Activated { moved_to });
        // Until now it has kept the entity from being idle (semantics §5); its time begins to count here.
        self.used_at = self.used_at.max(cx.now);
        // What came from elsewhere keeps the number of its origin.
        let enqueued_number = entry.number_of_origin().unwrap_or(moved_to);
        let entry = entry.into_active(cx.now, enqueued_number);
        let session = match destination {
            Some(destination) => {
                self.active.address(next, destination);
                None
            }
            None => self.active.session_of(entry.message()),
        };
        self.enqueue(cx, entry, session);
    }
}

fn list(numbers: &[SequenceNumber]) -> String {
    let numbers: Vec<String> = numbers.iter().map(SequenceNumber::to_string).collect();
    numbers.join(",")
}
