//! Runs deadlines that are due: one task per namespace, which sleeps until the earliest deadline of its entities.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{sleep, timeout};

use crate::clock::RECHECK;
use crate::namespace::Namespace;

/// Runs until the namespace is removed.
pub(crate) async fn run(namespace: Arc<Namespace>) {
    loop {
        let alarm = &namespace.alarm;
        // Disarm before reading the deadlines: one that appears in between arms the alarm again.
        alarm.disarm();
        if namespace.forward_pending() {
            yield_now().await;
            continue;
        }
        let rest = match namespace.next_deadline() {
            Some(deadline) => {
                alarm.expect(deadline);
                namespace.clock.until(deadline)
            }
            None => None,
        };
        match rest {
            Some(Duration::ZERO) => {
                let fired = catch_unwind(AssertUnwindSafe(|| namespace.fire_due()));
                if let Err(payload) = fired {
                    // Entity time goes on, but without looping over the same failure.
                    namespace.failures.add_panic("what is due", &*payload);
                    sleep(RECHECK).await;
                }
                // Other tasks must get the thread even if a deadline does not move.
                yield_now().await;
            }
            Some(rest) => {
                // The wall clock may jump during the wait, which wakes no timer.
                let _ = timeout(rest.min(RECHECK), alarm.notified()).await;
            }
            None => alarm.notified().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering;

    use servicebus_broker::{EntityDescription, EntityPath};
    use tokio::task::JoinSet;
    use tokio::time::advance;

    use super::*;
    use crate::clock::tests::put_by_hand;
    use crate::config::NamespaceConfig;
    use crate::failures::Failures;

    const HOUR: Duration = Duration::from_secs(3600);

    /// A namespace with a queue that is deleted after an idle hour.
    fn config() -> (EntityPath, NamespaceConfig) {
        let path = EntityPath::of_address("q").expect("it is legal");
        let description = EntityDescription {
            auto_delete_on_idle: Some(HOUR),
            ..EntityDescription::default()
        };
        let config = NamespaceConfig {
            queues: vec![(path.clone(), description)],
            ..NamespaceConfig::new("one")
        };
        (path, config)
    }

    #[tokio::test(start_paused = true)]
    async fn deadlines_missed_by_a_suspended_machine_run_when_it_resumes() {
        let (put, real) = put_by_hand();
        let (path, config) = config();
        let namespace = Arc::new(Namespace::new(
            config,
            real,
            Some(1),
            false,
            Failures::default(),
        ));
        let mut timers = JoinSet::new();
        timers.spawn(run(Arc::clone(&namespace)));
        advance(RECHECK).await;
        namespace.freeze().await;
        put.fetch_add(2 * 3_600_000, Ordering::Relaxed);
        sleep(2 * RECHECK).await;
        assert!(namespace.entity(&path).is_some(), "time stands");
        namespace.resume().await;
        put.fetch_add(2 * 3_600_000, Ordering::Relaxed);
        assert!(namespace.entity(&path).is_some(), "its timer sleeps");
        sleep(RECHECK + Duration::from_millis(2)).await;
        assert!(namespace.entity(&path).is_none());
    }
}
