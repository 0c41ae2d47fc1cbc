//! The namespace of a test that fails stays where that was asked for, and is removed where it was not.

#![cfg(unix)]

use std::{
    fs,
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::SocketAddr,
    path::Path,
    process::{Child, ChildStderr, Command, Stdio},
    time::Duration,
};

use servicebus_harness::{KEEP_VARIABLE, MODE_VARIABLE, REPORT_VARIABLE, prelude::*};

use crate::harness::waiting::until_gone;
use servicebus_test_support::built;

/// A test that fails in a process of its own, where its namespace is to be kept.
pub(super) struct FailingTest {
    pub(super) child: Child,
    stderr: BufReader<ChildStderr>,
}

impl FailingTest {
    pub(super) fn start(mode: &str) -> Self {
        Self::run(built::rerun(), mode)
    }

    fn run(mut test: Command, mode: &str) -> Self {
        let mut child = test
            .env(KEEP_VARIABLE, "1")
            .env(MODE_VARIABLE, mode)
            .env("SERVICEBUS_EMULATOR_BIN", built::emulator())
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        Self { child, stderr }
    }

    /// Reads up to the line that begins like this, and returns its rest.
    pub(super) fn rendered(&mut self, beginning: &str) -> String {
        let mut read = String::new();
        loop {
            let mut line = String::new();
            let length = self.stderr.read_line(&mut line).unwrap();
            assert!(length > 0, "no line begins with {beginning:?} in:\n{read}");
            if let Some(rest) = line.trim().strip_prefix(beginning) {
                return rest.trim().to_owned();
            }
            read += &line;
        }
    }

    /// Reads where the emulator listens.
    fn address(&mut self) -> SocketAddr {
        let string = self.rendered("connection string");
        let host = string
            .strip_prefix("Endpoint=sb://")
            .and_then(|rest| rest.split_once(';'));
        let (host, _) = host.unwrap();
        assert!(
            self.rendered("administration")
                .starts_with(&format!("Endpoint=sb://{host}:5300;"))
        );
        assert_eq!(
            self.rendered("control API"),
            format!("http://{host}:5300/$emulator/v1")
        );
        SocketAddr::new(host.parse().unwrap(), 5672)
    }

    /// Reads the link to the failed assertion's message.
    fn inspector(&mut self, address: SocketAddr) {
        let link = self.rendered("inspector");
        let expected = format!(
            "http://{}:5300/#/sbemulatorns/queue.1/messages/1",
            address.ip()
        );
        assert_eq!(link, expected);
    }
}

#[test]
fn a_namespace_in_process_stays_until_enter_is_pressed() {
    if built::is_child() {
        return built::run_child(fail());
    }
    let mut test = FailingTest::start("in-process");
    let address = test.address();
    test.inspector(address);
    test.rendered("it ends when you press Enter");
    assert!(std::net::TcpStream::connect(address).is_ok());
    let mut input = test.child.stdin.take().unwrap();
    input.write_all(b"\n").unwrap();
    assert!(!test.child.wait().unwrap().success());
    until_gone(address);
}

#[test]
fn a_report_is_written_before_the_end_of_the_test_waits() {
    if built::is_child() {
        return built::run_child(fail());
    }
    let reports = Path::new(env!("CARGO_TARGET_TMPDIR")).join("report-of-what-is-kept");
    let report = reports.join(format!("{}.html", built::test().replace("::", ".")));
    let _ = fs::remove_file(&report);
    let mut child = built::rerun();
    child.env(REPORT_VARIABLE, &reports);
    let mut test = FailingTest::run(child, "in-process");
    test.rendered("it ends when you press Enter");
    let text = fs::read_to_string(&report).unwrap();
    assert!(text.contains("hello"), "{text}");
    let mut input = test.child.stdin.take().unwrap();
    input.write_all(b"\n").unwrap();
    assert!(!test.child.wait().unwrap().success());
}

#[test]
fn a_namespace_in_process_ends_if_standard_input_is_closed() {
    if built::is_child() {
        return built::run_child(fail());
    }
    let mut test = FailingTest::start("in-process");
    drop(test.child.stdin.take());
    let address = test.address();
    test.rendered("standard input is closed, so it ends now");
    assert!(!test.child.wait().unwrap().success());
    until_gone(address);
}

#[test]
fn a_namespace_in_a_child_process_outlives_the_tests() {
    if built::is_child() {
        return built::run_child(fail());
    }
    let mut test = FailingTest::start("process");
    let address = test.address();
    let how = test.rendered("it is process");
    let (id, command) = how.split_once(';').unwrap();
    assert_eq!(command, format!(" end it with `kill {id}`"));
    assert!(!test.child.wait().unwrap().success());
    assert!(std::net::TcpStream::connect(address).is_ok());
    let killed = Command::new("kill").arg(id).status();
    assert!(killed.unwrap().success());
    until_gone(address);
}

#[test]
fn a_test_that_passes_keeps_nothing() {
    if built::is_child() {
        return built::run_child(pass());
    }
    for mode in ["in-process", "process"] {
        let mut test = FailingTest::start(mode);
        let address = test.rendered("listening at").parse().unwrap();
        let mut rest = String::new();
        test.stderr.read_to_string(&mut rest).unwrap();
        assert!(test.child.wait().unwrap().success(), "{rest}");
        assert!(!rest.contains(KEEP_VARIABLE), "{rest}");
        until_gone(address);
    }
}

async fn fail() {
    let servicebus = ServiceBus::start().await;
    let queue = servicebus.queue("queue.1");
    queue.send("hello").await;
    assert_message_count!(queue, active = 2, within = Duration::from_millis(1)).await;
}

async fn pass() {
    let servicebus = ServiceBus::start().await;
    let line = format!("listening at {}\n", servicebus.endpoints().amqp);
    std::io::stderr().write_all(line.as_bytes()).unwrap();
    servicebus.stop().await;
}
