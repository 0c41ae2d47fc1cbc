//! Watches how long one poll of a task takes, in tests: a task that keeps its thread keeps every other client waiting.
//!
//! What is shipped does not have the feature, and polls tasks as they are.

use crate::failures::Failures;

/// The task, each of whose polls may take 50 ms of its thread's processor time; `/health` tells of one that takes half as
/// much again, which is what builds without optimisation need on a busy machine.
#[cfg(all(feature = "watchdog", unix))]
pub(crate) fn watched<F: Future>(
    name: &'static str,
    failures: &Failures,
    task: F,
) -> impl Future<Output = F::Output> + use<F> {
    use std::time::Duration;

    use rustix::time::{ClockId, clock_gettime};

    use crate::failures::Failure;

    const LONGEST: Duration = Duration::from_millis(75);
    let thread_time = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let failures = failures.clone();
    let mut task = Box::pin(task);
    std::future::poll_fn(move |cx| {
        let before = thread_time();
        let polled = task.as_mut().poll(cx);
        let took = thread_time().saturating_sub(before);
        if took > LONGEST {
            failures.add(Failure {
                namespace: None,
                entity: None,
                reason: format!("{name} took {took:?} of its thread's processor time in one poll"),
            });
        }
        polled
    })
}

#[cfg(not(all(feature = "watchdog", unix)))]
pub(crate) fn watched<F: Future>(_name: &'static str, _failures: &Failures, task: F) -> F {
    task
}
