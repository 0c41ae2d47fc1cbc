//! Watches in tests how long each poll of a task takes: a task that blocks its thread delays every other client.
//!
//! Release builds do not have the feature and poll tasks directly.

#[cfg(all(feature = "watchdog", unix))]
use std::time::Duration;

use crate::failures::Failures;

/// The longest poll that is accepted on every machine.
#[cfg(all(feature = "watchdog", unix))]
const LONGEST: Duration = Duration::from_millis(50);

/// Wraps a task so that `/health` reports each poll that uses more than 50 ms of its thread's processor time, and more than
/// this machine takes at that moment to fill 200 MiB of memory. The second bound is needed where a virtual machine provides
/// each page at its first use, or other tests allocate memory: there a poll was seen to take five times as long. A poll with
/// a panic does not count: its backtrace takes long, and the panic is reported anyway.
#[cfg(all(feature = "watchdog", unix))]
pub(crate) fn watched<F: Future>(
    name: &'static str,
    failures: &Failures,
    task: F,
) -> impl Future<Output = F::Output> + use<F> {
    use crate::failures::Failure;

    let failures = failures.clone();
    let mut task = Box::pin(task);
    std::future::poll_fn(move |cx| {
        let (before, panics) = (thread_time(), failures.all().len());
        let polled = task.as_mut().poll(cx);
        let took = thread_time().saturating_sub(before);
        if took > LONGEST && failures.all().len() == panics && took > filling() {
            failures.add(Failure {
                namespace: None,
                entity: None,
                reason: format!("{name} took {took:?} of its thread's processor time in one poll"),
            });
        }
        polled
    })
}

/// Returns the processor time of this thread so far.
#[cfg(all(feature = "watchdog", unix))]
fn thread_time() -> Duration {
    use rustix::time::{ClockId, clock_gettime};

    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Measures how long this thread takes to fill 200 MiB, in blocks that it has not used before.
#[cfg(all(feature = "watchdog", unix))]
fn filling() -> Duration {
    let before = thread_time();
    for _ in 0..4 {
        drop(std::hint::black_box(vec![1_u8; 50 << 20]));
    }
    thread_time().saturating_sub(before)
}

#[cfg(not(all(feature = "watchdog", unix)))]
pub(crate) fn watched<F: Future>(_name: &'static str, _failures: &Failures, task: F) -> F {
    task
}

#[cfg(all(test, feature = "watchdog", unix))]
mod tests;
