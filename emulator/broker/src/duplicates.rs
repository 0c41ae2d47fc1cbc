//! Duplicate detection: the message ids that were seen within the window (semantics §9).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::description::EntityDescription;
use crate::message::Message;
use crate::time::Timestamp;

/// Maximum number of ids that one call forgets, since the windows of many may end at once.
const FORGOTTEN: usize = 64;

/// Ids with the instants at which their windows began, kept even after their messages are gone.
#[derive(Debug)]
pub(crate) struct History {
    window: Duration,
    since: BTreeMap<Arc<str>, Timestamp>,
    order: BTreeSet<(Timestamp, Arc<str>)>,
    /// Ids whose entries changed, if changes are stored.
    #[expect(
        clippy::box_collection,
        reason = "few entities have any, and each pays for the place"
    )]
    touched: Option<Box<BTreeSet<Arc<str>>>>,
}

impl History {
    /// Creates an empty history; `None` without duplicate detection.
    pub(crate) fn of(description: &EntityDescription) -> Option<Self> {
        description.requires_duplicate_detection.then(|| Self {
            window: description.duplicate_detection_history_time_window,
            since: BTreeMap::new(),
            order: BTreeSet::new(),
            touched: None,
        })
    }

    /// Changes the window at `now`, also for ids that are remembered; windows that have ended stay ended.
    pub(crate) fn set_window(&mut self, now: Timestamp, window: Duration) {
        self.forget_old(now, usize::MAX);
        self.window = window;
    }

    /// Remembers an id that is seen at `now`, with a window that begins at `since`; returns false and changes nothing if the
    /// id is remembered already.
    pub(crate) fn admit(&mut self, id: &str, now: Timestamp, since: Timestamp) -> bool {
        self.forget_old(now, FORGOTTEN);
        match self.since.get(id).copied() {
            None => self.insert(id.into(), since),
            Some(before) if before + self.window <= now => self.restart(id, since),
            Some(_) => return false,
        }
        true
    }

    /// Returns whether an id is in its window.
    pub(crate) fn contains(&self, id: &str, now: Timestamp) -> bool {
        let since = self.since.get(id);
        since.is_some_and(|&since| since + self.window > now)
    }

    /// Restarts the window of an id whose message will not arrive.
    pub(crate) fn restart(&mut self, id: &str, since: Timestamp) {
        if let Some((id, before)) = self.since.remove_entry(id) {
            self.order.remove(&(before, Arc::clone(&id)));
            self.insert(id, since);
        }
    }

    /// Forgets all ids.
    pub(crate) fn clear(&mut self) {
        if let Some(touched) = &mut self.touched {
            touched.extend(self.since.keys().cloned());
        }
        self.since.clear();
        self.order.clear();
    }

    fn forget_old(&mut self, now: Timestamp, at_most: usize) {
        let mut left = at_most;
        while let Some((since, id)) = self.order.first()
            && *since + self.window <= now
            && left > 0
        {
            left -= 1;
            self.since.remove(id);
            if let (Some((_, id)), Some(touched)) = (self.order.pop_first(), &mut self.touched) {
                touched.insert(id);
            }
        }
    }

    fn insert(&mut self, id: Arc<str>, since: Timestamp) {
        if let Some(touched) = &mut self.touched {
            touched.insert(Arc::clone(&id));
        }
        self.since.insert(Arc::clone(&id), since);
        self.order.insert((since, id));
    }

    /// Records changed ids from now on.
    pub(crate) fn record_changes(&mut self) {
        self.touched = Some(Box::default());
    }

    /// Takes the changed ids with the start of their windows; `None` for ids that were forgotten.
    pub(crate) fn take_changes(&mut self) -> Vec<(Arc<str>, Option<Timestamp>)> {
        let touched = self.touched.as_mut().map(std::mem::take);
        let touched = touched.into_iter().flat_map(|touched| *touched);
        let known = |id: Arc<str>| {
            let since = self.since.get(&id).copied();
            (id, since)
        };
        touched.map(known).collect()
    }

    /// Restores a stored id.
    pub(crate) fn restore(&mut self, id: &str, since: Timestamp) {
        if !self.since.contains_key(id) {
            self.insert(id.into(), since);
        }
    }

    #[cfg(any(test, feature = "check"))]
    pub(crate) fn check_invariants(&self) {
        let indexed: BTreeMap<_, _> = self.order.iter().map(|(at, id)| (id, at)).collect();
        assert!(
            self.since.iter().eq(indexed),
            "ids and the order of their windows differ"
        );
    }
}

/// Returns the key by which two messages count as duplicates (semantics §9).
pub(crate) fn key(message: &Message, partitioned: bool) -> String {
    let id = message.id();
    let key = message.session_id().or_else(|| message.partition_key());
    match key.filter(|_| partitioned) {
        Some(key) => format!("{id}\u{0}{key}"),
        None => id.into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: Duration = Duration::from_secs(600);
    const IDS: usize = 10 * FORGOTTEN;

    #[test]
    fn expired_message_ids_are_removed_in_steps_and_not_counted() {
        let description = EntityDescription {
            requires_duplicate_detection: true,
            duplicate_detection_history_time_window: WINDOW,
            ..EntityDescription::default()
        };
        let mut history = History::of(&description).expect("it detects them");
        let start = Timestamp::default();
        for id in 0..IDS {
            assert!(history.admit(&format!("{id:04}"), start, start));
        }
        let last = format!("{:04}", IDS - 1);
        assert!(!history.admit(&last, start, start));
        let over = start + WINDOW;
        assert!(history.admit(&last, over, over), "its window is over");
        assert_eq!(history.order.len(), IDS - FORGOTTEN);
        assert!(!history.admit(&last, over, over));
        history.check_invariants();
        for _ in 0..IDS / FORGOTTEN {
            assert!(!history.admit(&last, over, over));
        }
        assert_eq!(history.order.len(), 1);
    }
}
