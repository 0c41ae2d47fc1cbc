//! Wakes the task that fires what is due.

use std::sync::atomic::{AtomicI64, Ordering};

use servicebus_broker::Timestamp;
use tokio::sync::Notify;

/// The earliest deadline that the task knows of.
#[derive(Debug)]
pub(crate) struct Alarm {
    armed: AtomicI64,
    notify: Notify,
}

impl Default for Alarm {
    fn default() -> Self {
        Self {
            armed: AtomicI64::new(i64::MAX),
            notify: Notify::new(),
        }
    }
}

impl Alarm {
    /// Makes sure that the task is awake by `deadline`.
    pub(crate) fn arm(&self, deadline: Timestamp) {
        let deadline = deadline.as_millis();
        if deadline < self.armed.load(Ordering::Relaxed)
            && deadline < self.armed.fetch_min(deadline, Ordering::AcqRel)
        {
            self.notify.notify_one();
        }
    }

    /// The clock was changed, so that what the task sleeps for may be wrong, or there is something to forward.
    pub(crate) fn notify(&self) {
        self.notify.notify_one();
    }

    /// Forgets what it was armed for: a deadline that appears from now on arms it again.
    pub(crate) fn disarm(&self) {
        self.armed.store(i64::MAX, Ordering::Release);
    }

    /// Notes a deadline that the task itself has seen.
    pub(crate) fn expect(&self, deadline: Timestamp) {
        self.armed.fetch_min(deadline.as_millis(), Ordering::AcqRel);
    }

    /// Resolves when it was armed for an earlier deadline or notified.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }
}
