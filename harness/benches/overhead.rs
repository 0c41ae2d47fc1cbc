//! What a bus of its own costs a test: `cargo bench -p servicebus-harness`.
//!
//! One test sends a message and receives it over the harness's handles. It is measured against an emulator that runs
//! already, and with a bus of its own in every way there is; what counts is the difference. Each number is the median of
//! rounds that take turns, so that a busy moment of the machine meets all of them. Started without `--bench`,
//! everything runs once and nothing is judged.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

use std::{
    env,
    path::PathBuf,
    process::{Command, ExitCode},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use servicebus_harness::prelude::*;

/// How many rounds are measured, and how many are not, before them.
const ROUNDS: usize = 41;
const WARM_UP: usize = 5;
/// As many tests at a time as a machine with two processors runs.
const WORKERS: usize = 2;

/// A line of the table.
struct Row {
    what: &'static str,
    measured: f64,
    unit: &'static str,
    limit: f64,
}

fn main() -> ExitCode {
    let judged = env::args().any(|argument| argument == "--bench");
    let mut rows = differences(judged);
    rows.push(many(judged));
    println!("| a test with a bus of its own | measured | limit | holds |");
    println!("| --- | --: | --: | --- |");
    let mut all = true;
    for row in &rows {
        let holds = row.measured <= row.limit;
        all &= holds;
        println!(
            "| {} | {:.2} {} | {} {} | {} |",
            row.what,
            row.measured,
            row.unit,
            row.limit,
            row.unit,
            if holds { "yes" } else { "no" }
        );
    }
    match all || !judged {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// How much longer a test takes with a bus of its own than with one that runs already.
fn differences(judged: bool) -> Vec<Row> {
    let binary = emulator();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let rounds = if judged { WARM_UP + ROUNDS } else { 1 };
    let mut times: [Vec<Duration>; 3] = Default::default();
    runtime.block_on(async {
        let running = ServiceBus::start().await;
        for _ in 0..rounds {
            times[0].push(timed(exchange(&running)).await);
            times[1].push(timed(alone(ServiceBus::builder().mode(Mode::InProcess))).await);
            let process = ServiceBus::builder().mode(Mode::Process);
            times[2].push(timed(alone(process.binary(&binary))).await);
        }
    });
    let skipped = if judged { WARM_UP } else { 0 };
    let [running, in_process, process] = times.map(|times| median(&times[skipped..]));
    let row = |what, own: Duration, limit| Row {
        what,
        measured: (own.as_secs_f64() - running.as_secs_f64()) * 1_000.0,
        unit: "ms",
        limit,
    };
    vec![
        row("in process", in_process, 2.0),
        row("in a process of its own", process, 15.0),
    ]
}

/// How many times as long ten times as many tests take.
fn many(judged: bool) -> Row {
    let (few, many) = if judged { (100, 1_000) } else { (2, 20) };
    run(few);
    let few = run(few).as_secs_f64();
    let many = run(many).as_secs_f64();
    Row {
        what: "1,000 tests, of the time of 100",
        measured: many / few,
        unit: "times",
        limit: 12.0,
    }
}

/// Runs so many tests as `cargo test` does: each on a thread with a runtime of its own, two at a time.
fn run(tests: usize) -> Duration {
    let started = Instant::now();
    let begun = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                while begun.fetch_add(1, Ordering::Relaxed) < tests {
                    let runtime = tokio::runtime::Builder::new_current_thread()
                        .enable_all()
                        .build();
                    let test = alone(ServiceBus::builder().mode(Mode::InProcess));
                    runtime.expect("a runtime starts").block_on(test);
                }
            });
        }
    });
    started.elapsed()
}

/// A test with a bus of its own, which is gone when it ends.
async fn alone(builder: servicebus_harness::Builder) {
    let servicebus = builder.start().await.expect("a bus starts");
    exchange(&servicebus).await;
}

/// The test: one send, one receive.
async fn exchange(servicebus: &ServiceBus) {
    let queue = servicebus.queue("queue.1");
    queue.send("hello").await;
    queue.receive().await.complete().await;
}

async fn timed(test: impl Future<Output = ()>) -> Duration {
    let started = Instant::now();
    test.await;
    started.elapsed()
}

fn median(times: &[Duration]) -> Duration {
    let mut times = times.to_vec();
    times.sort_unstable();
    times[times.len() / 2]
}

/// The emulator's binary in the profile of this benchmark, built if need be.
fn emulator() -> PathBuf {
    let mut build = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build.args(["build", "--quiet", "--package", "servicebus-emulator"]);
    build.args(["--bin", "servicebus-emulator"]);
    let executable = env::current_exe().expect("a program knows where it is");
    let directory = executable.ancestors().nth(2).expect("it lies in deps");
    if directory.ends_with("release") {
        build.args(["--profile", "bench"]);
    }
    let status = build.status().expect("cargo runs");
    assert!(status.success(), "cargo did not build the emulator");
    directory.join(format!("servicebus-emulator{}", env::consts::EXE_SUFFIX))
}
