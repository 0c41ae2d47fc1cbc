//! Fires what is due: one task per namespace that sleeps until the earliest deadline of its entities.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use servicebus_broker::Timestamp;
use tokio::sync::Notify;
use tokio::time::sleep;

use crate::namespace::Namespace;

/// Longest sleep: tokio's timer has an end, a namespace's deadlines need not.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

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

    /// The clock was changed: what the task sleeps for may be wrong.
    pub(crate) fn clock_changed(&self) {
        self.notify.notify_one();
    }
}

/// Runs for as long as the namespace is served.
pub(crate) async fn run(namespace: Arc<Namespace>) {
    loop {
        let alarm = &namespace.alarm;
        // Reset before looking: a deadline that appears meanwhile arms the alarm again.
        alarm.armed.store(i64::MAX, Ordering::Release);
        let rest = match namespace.next_deadline() {
            Some(deadline) => {
                alarm
                    .armed
                    .fetch_min(deadline.as_millis(), Ordering::AcqRel);
                namespace.clock.until(deadline)
            }
            None => None,
        };
        match rest {
            Some(Duration::ZERO) => namespace.fire_due(),
            rest => {
                tokio::select! {
                    () = sleep(rest.unwrap_or(LONGEST).min(LONGEST)) => {}
                    () = alarm.notify.notified() => {}
                }
            }
        }
    }
}
