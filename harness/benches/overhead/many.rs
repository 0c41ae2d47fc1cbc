//! A thousand tests in one process, each with a namespace of its own in it, against a hundred.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use servicebus_harness::prelude::*;

use crate::{alone, table::Row};

/// As many tests at a time as a machine with two processors runs.
const WORKERS: usize = 2;
/// How often a thousand are measured against a hundred.
const RUNS: usize = 5;

/// How many times as long ten times as many tests take.
pub(crate) fn measure(benchmark: bool) -> Row {
    let (few, many, runs) = if benchmark {
        (100, 1_000, RUNS)
    } else {
        (2, 20, 1)
    };
    run(few);
    let ratio = |_| run(many).as_secs_f64() / run(few).as_secs_f64();
    Row {
        what: "1,000 in process ÷ 100",
        measured: Ok((0..runs).map(ratio).collect()),
        limit: 12.0,
        unit: "",
    }
}

/// Runs so many tests as `cargo test` does: each on a thread and a runtime of its own, two at a time.
fn run(tests: usize) -> Duration {
    let started = Instant::now();
    let begun = AtomicUsize::new(0);
    let work = || {
        while begun.fetch_add(1, Ordering::Relaxed) < tests {
            thread::spawn(test).join().expect("the test passes");
        }
    };
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(work);
        }
    });
    started.elapsed()
}

fn test() {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let test = alone(ServiceBus::builder().mode(Mode::InProcess), true);
    let ended = runtime.expect("a runtime starts").block_on(test);
    ended.unwrap_or_else(|error| panic!("{error}"));
}
