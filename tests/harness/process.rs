//! The emulator as a child: it becomes ready or says why not, and it never outlives its test.

#![cfg(unix)]

use std::{
    env, fs,
    io::{BufRead, BufReader},
    net::SocketAddr,
    path::PathBuf,
    process::{Command, Stdio},
    time::Duration,
};

use servicebus_harness::prelude::*;

use crate::harness::{assert_contains, error_of, waiting::until_gone};
use servicebus_test_support::built;

/// A program that is not the emulator, removed when it has served.
struct FakeEmulator(PathBuf);

impl FakeEmulator {
    fn new(name: &str, script: &str) -> Self {
        let file = format!("servicebus-harness-{name}-{}", std::process::id());
        let path = env::temp_dir().join(file);
        // Written by a shell: a file this process has open for writing could not be run while another test
        // starts a child, which has it open too.
        let write = r#"printf '#!/bin/sh\n%s\n' "$1" > "$2" && chmod 755 "$2""#;
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", write, "sh", script]).arg(&path);
        assert!(shell.status().unwrap().success());
        Self(path)
    }

    /// Starts it and puts its name in place of its path.
    async fn refusal(&self) -> String {
        self.refusal_within(Duration::from_secs(60)).await
    }

    /// The same, where it may take so long to become ready.
    async fn refusal_within(&self, within: Duration) -> String {
        let builder = ServiceBus::builder().mode(Mode::Process).binary(&self.0);
        let started = builder.ready_within(within).start().result().await;
        let error = started.expect_err("a fake emulator should not start");
        let path = self.0.display().to_string();
        error.to_string().replace(&path, "emulator")
    }
}

impl Drop for FakeEmulator {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[tokio::test]
async fn a_silent_child_times_out() {
    let fake = FakeEmulator::new("mute", "echo 'loading for ever' >&2; exec cat");
    // How long a shell needs for its first words is not for the test to say.
    for seconds in [0.5, 5.0, 50.0] {
        let refusal = fake.refusal_within(Duration::from_secs_f64(seconds));
        let refusal = refusal.await;
        let late = format!("emulator did not become ready within {seconds} s; ");
        let output = refusal.strip_prefix(&late);
        match output.unwrap_or_else(|| panic!("{refusal}")) {
            "its last output was:\nloading for ever" => return,
            output => assert_eq!(output, "it wrote nothing to standard error"),
        }
    }
    panic!("a shell says nothing for as long as a minute");
}

#[tokio::test]
async fn a_child_that_exits_early_leaves_its_last_output() {
    let fake = FakeEmulator::new("brief", "echo 'one\ntwo' >&2; exit 7");
    assert_eq!(
        fake.refusal().await,
        "emulator ended before it was ready (exit status: 7); its last output was:\none\ntwo"
    );
}

#[tokio::test]
async fn a_child_of_another_version_is_refused() {
    let ready = r#"{"event":"ready","version":"9.9.9","pid":1,"amqp":"127.0.0.1:5672","http":"127.0.0.1:5300","namespaces":[]}"#;
    let fake = FakeEmulator::new("newer", &format!("echo '{ready}'; exec cat"));
    let refusal = fake.refusal().await;
    assert!(
        refusal.starts_with("emulator is version 9.9.9, this harness needs"),
        "{refusal}"
    );
    assert_contains(
        &refusal,
        "run `cargo install --path <checkout>/emulator`, or in the checkout `cargo build -p servicebus-emulator`",
    );
}

#[tokio::test]
async fn a_child_with_an_unknown_ready_line_is_refused() {
    let fake = FakeEmulator::new("foreign", "echo 'Server started.'; exec cat");
    let refusal = fake.refusal().await;
    assert!(
        refusal.starts_with("the emulator's first line is not a ready line"),
        "{refusal}"
    );
    assert!(refusal.ends_with(": Server started."), "{refusal}");
}

#[tokio::test]
async fn the_failed_attempts_to_find_an_address_are_counted() {
    let fake = FakeEmulator::new("crowded", "echo 'cannot listen' >&2; exit 3");
    assert_eq!(
        fake.refusal().await,
        "no free loopback address after 16 attempts; the last error was: cannot listen; a program that listens at 0.0.0.0, such as another broker, uses its port at every address: end it, or set other HTTP ports with `ports`"
    );
}

#[tokio::test]
async fn a_missing_binary_is_named() {
    let builder = ServiceBus::builder().mode(Mode::Process);
    assert_eq!(
        error_of(builder.binary("/nowhere/emulator").start()).await,
        "no emulator binary at /nowhere/emulator, named by the builder; run `cargo install --path <checkout>/emulator`, or in the checkout `cargo build -p servicebus-emulator`, or name none, so that the harness searches for it"
    );
}

#[tokio::test]
async fn a_child_that_died_is_named_by_the_next_operation() {
    // A shell that becomes the emulator, and says first which process that is.
    let rendered = env::temp_dir().join(format!("servicebus-harness-pid-{}", std::process::id()));
    let script = format!(
        "echo $$ > {}; exec {} \"$@\"",
        rendered.display(),
        built::emulator().display()
    );
    let shell = FakeEmulator::new("shell", &script);
    let builder = ServiceBus::builder().mode(Mode::Process).binary(&shell.0);
    let servicebus = builder.start().await;
    let queue = servicebus.queue("queue.1");
    queue.send("hello").await;

    let process = fs::read_to_string(&rendered).unwrap();
    fs::remove_file(&rendered).unwrap();
    let killed = Command::new("kill").args(["-9", process.trim()]).status();
    assert!(killed.unwrap().success());
    until_gone(servicebus.endpoints().http);

    let url = servicebus.control_url();
    let endpoint = url
        .trim_start_matches("http://")
        .trim_end_matches("/$emulator/v1");
    let died =
        "the emulator process has ended (signal: 9 (SIGKILL)); it wrote nothing to standard error";
    let error = error_of(queue.counts()).await;
    let expected = format!(
        "cannot count the messages of queue.1: the emulator's control API at {endpoint} does not answer: {died}"
    );
    assert_eq!(error, expected);
    let error = error_of(queue.send("hello")).await;
    assert!(error.ends_with(died), "{error}");
    let error = queue.expect_empty().await.unwrap_err().to_string();
    assert!(error.ends_with(died), "{error}");
}

#[tokio::test]
async fn dropping_the_namespace_ends_the_child() {
    let servicebus = process_namespace().await;
    let address = servicebus.endpoints().amqp;
    drop(servicebus);
    until_gone(address);
}

#[tokio::test]
async fn stopping_the_namespace_waits_for_the_child() {
    let servicebus = process_namespace().await;
    let address = servicebus.endpoints().amqp;
    servicebus.stop().await;
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn a_killed_test_leaves_no_emulator() {
    if built::is_child() {
        return built::run_child(wait_to_be_killed());
    }
    let mut test = built::rerun()
        .env("SERVICEBUS_EMULATOR_BIN", built::emulator())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(test.stdout.take().unwrap()).lines();
    let mut lines = lines.map(Result::unwrap);
    let address: SocketAddr = lines
        .find_map(|line| line.strip_prefix("listening at ")?.parse().ok())
        .unwrap();
    assert!(std::net::TcpStream::connect(address).is_ok());
    test.kill().unwrap();
    test.wait().unwrap();
    until_gone(address);
}

#[expect(clippy::print_stdout, reason = "the test above reads it")]
async fn wait_to_be_killed() {
    let servicebus = ServiceBus::builder().mode(Mode::Process).start().await;
    println!("\nlistening at {}", servicebus.endpoints().amqp);
    std::future::pending::<()>().await;
}

async fn process_namespace() -> ServiceBus {
    let builder = ServiceBus::builder().mode(Mode::Process);
    builder.binary(built::emulator()).start().await
}
