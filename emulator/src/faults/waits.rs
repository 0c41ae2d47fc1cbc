//! Operations that wait for an instant of the namespace's time, which an advance stops at like at any deadline.

use std::collections::BTreeMap;

use parking_lot::{Mutex, MutexGuard};
use servicebus_broker::Timestamp;
use tokio::sync::oneshot;

use crate::router::ConnectionId;

/// Who waits for what instant.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<Queue>);

#[derive(Debug, Default)]
struct Queue {
    made: u64,
    sleepers: BTreeMap<(Timestamp, u64), Sleeper>,
}

/// Who waits.
#[derive(Debug)]
pub(crate) enum Sleeper {
    /// A connection, which looks at its own list when it is told.
    Connection(ConnectionId),
    /// A request over HTTP.
    Task(oneshot::Sender<()>),
}

impl Waits {
    pub(crate) fn add(&self, until: Timestamp, sleeper: Sleeper) {
        let mut queue = self.queue();
        queue.made += 1;
        let number = queue.made;
        queue.sleepers.insert((until, number), sleeper);
    }

    /// The next instant that somebody waits for.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        let queue = self.queue();
        queue.sleepers.first_key_value().map(|(&(at, _), _)| at)
    }

    /// Takes out those who have waited for long enough.
    pub(crate) fn take_due(&self, now: Timestamp) -> Vec<Sleeper> {
        let mut queue = self.queue();
        let later = queue.sleepers.split_off(&(now, u64::MAX));
        let due = std::mem::replace(&mut queue.sleepers, later);
        due.into_values().collect()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.lock()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_due_is_taken_out_and_nobody_else() {
        let waits = Waits::default();
        let at = Timestamp::from_millis;
        for (until, connection) in [(20, 1), (10, 2), (20, 3), (21, 4)] {
            waits.add(at(until), Sleeper::Connection(ConnectionId(connection)));
        }
        assert_eq!(waits.next(), Some(at(10)));
        let due = waits.take_due(at(20));
        let due = due.iter().map(|sleeper| match sleeper {
            Sleeper::Connection(id) => id.0,
            Sleeper::Task(_) => 0,
        });
        assert_eq!(due.collect::<Vec<_>>(), [2, 1, 3]);
        assert_eq!(waits.next(), Some(at(21)));
    }
}
