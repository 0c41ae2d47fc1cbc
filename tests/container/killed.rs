//! A test or a container that is killed.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdout, Stdio};

use crate::docker::{containers_of, docker, eventually};
use crate::namespace_with_orders;
use servicebus_test_support::built;

/// A test in a process of its own, with a container of its own.
struct RunningTest {
    run: String,
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl RunningTest {
    fn start(run: &str) -> Self {
        let run = format!("{run}-{}", std::process::id());
        let mut process = built::rerun()
            .env("NEXTEST_RUN_ID", &run)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        Self {
            run,
            process,
            lines,
        }
    }

    /// What it says after these words.
    fn wait_for_output(&mut self, words: &str) -> String {
        let mut lines = self.lines.by_ref().map(Result::unwrap);
        let found = lines.find_map(|line| Some(line.split_once(words)?.1.to_owned()));
        found.unwrap_or_else(|| panic!("it ends without {words:?}"))
    }
}

impl Drop for RunningTest {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[test]
fn a_killed_test_leaves_no_container() {
    if built::is_child() {
        return built::run_child(use_a_namespace());
    }
    let mut test = RunningTest::start("killed");
    test.wait_for_output("ready");
    let run = test.run.clone();
    assert_eq!(containers_of(&run).len(), 1);
    test.process.kill().unwrap();
    eventually("the container is gone", || containers_of(&run).is_empty());
}

#[test]
fn a_killed_container_is_named_by_the_next_operation() {
    if built::is_child() {
        return built::run_child(use_a_namespace());
    }
    let mut test = RunningTest::start("dead");
    test.wait_for_output("ready");
    let containers = containers_of(&test.run);
    docker(&["kill", &containers[0]]);
    writeln!(test.process.stdin.as_mut().unwrap()).unwrap();
    let found = test.wait_for_output("error: ");
    assert!(
        found.contains("the emulator's container has ended"),
        "{found}"
    );
}

/// Says when it is ready, and once it is told to go on, what an operation comes to.
#[expect(clippy::print_stdout, reason = "the tests above read it")]
async fn use_a_namespace() {
    let (servicebus, _) = namespace_with_orders().await;
    let orders = servicebus.queue("orders");
    orders.send("hello").await;
    println!("\nready");
    let closed = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    closed.await.unwrap().unwrap();
    let error = orders.counts().result().await.unwrap_err();
    println!("error: {}", error.to_string().replace('\n', " "));
}
