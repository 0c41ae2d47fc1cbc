//! Tests leave nothing behind, however many there are and however they end.
//!
//! Threads, files and sockets are counted in a process of its own, where no other test has any.

#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    panic,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use servicebus_harness::prelude::*;
use tokio::task::JoinSet;

use crate::harness::{namespace_with_orders, waiting::until_gone};
use servicebus_test_support::built;

const TIMEOUT: Duration = Duration::from_secs(30);

/// What a process has that a namespace may need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Resources {
    threads: usize,
    files: usize,
}

impl Resources {
    fn now() -> Self {
        let entries = |directory| fs::read_dir(directory).unwrap().count();
        Self {
            threads: entries("/proc/self/task"),
            files: entries("/proc/self/fd"),
        }
    }
}

/// Waits until the process has no more than it had.
fn until_nothing_is_left(before: Resources) {
    let started = Instant::now();
    loop {
        let now = Resources::now();
        if now.threads <= before.threads && now.files <= before.files {
            return;
        }
        assert!(
            started.elapsed() < TIMEOUT,
            "{now:?} are more than {before:?}"
        );
        thread::yield_now();
    }
}

/// Runs what a child has to do, and expects that it leaves nothing.
fn assert_leaves_nothing(part: impl Fn()) {
    if built::is_child() {
        // Once before counting: what is made once in a process is not a leftover.
        part();
        let before = Resources::now();
        part();
        return until_nothing_is_left(before);
    }
    // Some systems give a process 1,024 files unless it asks for more.
    let raised = r#"ulimit -Sn "$(ulimit -Hn)"; exec "$0" "$@""#;
    let output = again_through(&["/bin/sh", "-c", raised]).output();
    let output = output.unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
}

fn block_on(part: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(part);
}

#[test]
fn a_panicking_test_leaves_no_thread_and_no_file() {
    assert_leaves_nothing(|| {
        let test = thread::spawn(|| {
            block_on(async {
                let (_servicebus, orders) = namespace_with_orders().await;
                orders.send("hello").await;
                let _locked = orders.receive().await;
                panic::resume_unwind(Box::new("the test fails here"));
            });
        });
        assert!(test.join().is_err());
    });
}

/// As `cargo test` does on two processors: each test has a thread and a runtime of its own, and two run at a time.
#[test]
fn a_thousand_tests_in_one_process_leave_nothing() {
    assert_leaves_nothing(|| {
        let worker = || {
            // Twice by two workers, because each part is done twice.
            for _ in 0..1_000 / 4 {
                thread::spawn(|| block_on(send_and_receive()))
                    .join()
                    .unwrap();
            }
        };
        thread::scope(|scope| {
            scope.spawn(worker);
            scope.spawn(worker);
        });
    });
}

async fn send_and_receive() {
    let (_servicebus, orders) = namespace_with_orders().await;
    orders.send("hello").await;
    orders.receive().await.complete().await;
}

#[test]
fn two_hundred_parallel_tests_are_isolated() {
    assert_leaves_nothing(|| {
        block_on(async {
            let mut tests = JoinSet::new();
            for number in 0..200 {
                tests.spawn(async move {
                    let (servicebus, orders) = namespace_with_orders().await;
                    orders.send(format!("message of test {number}")).await;
                    let received = orders.receive().await;
                    assert_eq!(received.body_text(), format!("message of test {number}"));
                    received.complete().await;
                    assert_completed!(orders, count = 1).await;
                    assert_empty!(orders).await;
                    servicebus
                });
            }
            // All of them live at once before the first goes.
            drop(tests.join_all().await);
        });
    });
}

/// Two processes with a test each are what two tests in one run of nextest are.
#[test]
fn tests_in_separate_processes_are_isolated() {
    if built::is_child() {
        return built::run_child(report_and_wait());
    }
    let mut tests: Vec<_> = (0..2)
        .map(|_| {
            let mut test = built::rerun();
            test.stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let addresses: Vec<SocketAddr> = tests
        .iter_mut()
        .map(|test| {
            let mut lines = BufReader::new(test.stdout.as_mut().unwrap()).lines();
            lines
                .find_map(|line| {
                    line.unwrap()
                        .strip_prefix("holds 1 message at ")?
                        .parse()
                        .ok()
                })
                .unwrap()
        })
        .collect();
    assert_ne!(addresses[0], addresses[1]);
    for test in &mut tests {
        drop(test.stdin.take());
        assert!(test.wait().unwrap().success());
    }
    addresses.into_iter().for_each(until_gone);
}

#[expect(clippy::print_stdout, reason = "the test above reads it")]
async fn report_and_wait() {
    let (servicebus, orders) = namespace_with_orders().await;
    orders.send("hello").await;
    let held = orders.counts().await.active;
    println!("\nholds {held} message at {}", servicebus.endpoints().amqp);
    // Until the other one is there too.
    let _ = std::io::stdin().lines().next();
}

/// The test in a process of its own, started by another program, which is given it with its arguments.
fn again_through(program: &[&str]) -> Command {
    let own = built::rerun();
    let mut command = Command::new(program[0]);
    command.args(&program[1..]).arg(own.get_program());
    command.args(own.get_args());
    for (name, value) in own.get_envs() {
        command.env(name, value.unwrap_or_default());
    }
    command
}
