//! Detects a test that waits for what will never happen, or does not end.

use std::{
    future::poll_fn,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Wake, Waker},
    time::Duration,
};

use tokio::time::{Instant, sleep};

use super::run::Run;

/// A test that runs longer than this, in virtual time, counts as endless.
pub(crate) const MAX_DURATION: Duration = Duration::from_secs(2 * 3600);
/// A test without any activity for this long counts as hung.
const IDLE_LIMIT: Duration = Duration::from_secs(3600);
/// The interval between two checks.
const CHECK_INTERVAL: Duration = Duration::from_secs(300);

/// Counts how often code under test was woken, by a timer or by what it waited for.
#[derive(Debug, Clone, Default)]
pub(crate) struct WakeCounter(Arc<AtomicU64>);

impl WakeCounter {
    /// Runs a future and counts its wakes.
    pub(crate) async fn count<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|context| {
            let counting = CountingWaker {
                wakes: self.clone(),
                waker: context.waker().clone(),
            };
            let waker = Waker::from(Arc::new(counting));
            future.as_mut().poll(&mut Context::from_waker(&waker))
        })
        .await
    }

    fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct CountingWaker {
    wakes: WakeCounter,
    waker: Waker,
}

impl Wake for CountingWaker {
    fn wake(self: Arc<Self>) {
        self.wakes.0.fetch_add(1, Ordering::Relaxed);
        self.waker.wake_by_ref();
    }
}

/// Waits until the test of a run hangs, and returns how.
pub(crate) async fn hang(run: &Run) -> &'static str {
    let begun = Instant::now();
    let (mut last, mut since) = ((0, 0), begun);
    while begun.elapsed() <= MAX_DURATION {
        sleep(CHECK_INTERVAL).await;
        let now = (run.last_operation(last.0), run.supervision.wakes.total());
        if now != last || run.namespace.has_deadline_within(IDLE_LIMIT) {
            (last, since) = (now, Instant::now());
        } else if since.elapsed() >= IDLE_LIMIT {
            return "the test hangs: for 1 h of virtual time no client was active, neither the test nor a party made progress, and nothing is due; end the wait with a timeout; if it waits for something outside of the run, such as a thread, a database or another service, let it wait in `run.outside(…)`: virtual time does not wait for others";
        }
    }
    "the test does not end: after 2 h of virtual time it still runs; shorten its waits, and end endless loops"
}
