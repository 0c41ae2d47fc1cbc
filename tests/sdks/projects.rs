//! The projects of `examples/` in other languages that start the emulator themselves: their tests pass, one that fails tells
//! why, and a run that is killed leaves no emulator. That of Python is tested by `harness/python/run`.

mod project;

use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::driver::{end_within, run_within};
use project::{Project, VITEST};

/// For a whole project, which runs its tests one by one.
const DEADLINE: Duration = Duration::from_secs(180);

/// What the record has of an order that expired, as a failure tells it.
const STORY: [&str; 4] = [
    "orders: o-17 is not dead-lettered for NotANumber",
    "sent",
    "clock-advanced   3600 s",
    "dead-lettered    TTLExpiredException",
];

const FAILING_IN_JAVASCRIPT: &str = r#"
import { ServiceBusClient } from "@azure/service-bus";
import { test } from "./servicebus.js";

test("an order that expired is no number", async ({ servicebus }) => {
  const client = new ServiceBusClient(servicebus.connectionString);
  const order = { body: 12, messageId: "o-17", timeToLive: 3_600_000 };
  await client.createSender("orders").sendMessages(order);
  await client.close();
  await servicebus.advance(3600);
  await servicebus.expectDeadLettered("orders", "o-17", "NotANumber");
});
"#;

/// Says where the emulator is, with a line's end for a sign that this is all, and waits to be killed.
const WAITING_IN_JAVASCRIPT: &str = r#"
import { writeFileSync } from "node:fs";
import { inject } from "vitest";
import { test } from "./servicebus.js";

test("it waits", async ({ servicebus }) => {
  writeFileSync("emulator", `${inject("namespaces")}\n`);
  await new Promise(() => {});
});
"#;

#[tokio::test]
async fn the_tests_of_the_vitest_project_pass() {
    pass(VITEST).await;
}

#[tokio::test]
async fn a_failing_test_of_the_vitest_project_tells_what_happened() {
    fail(VITEST, "failing.test.js", FAILING_IN_JAVASCRIPT).await;
}

#[tokio::test]
async fn a_killed_vitest_leaves_no_emulator() {
    be_killed(VITEST, "waiting.test.js", WAITING_IN_JAVASCRIPT).await;
}

async fn pass(project: Project) {
    let Some(copied) = project.copied().await else {
        return;
    };
    copied.has_its_packages();
    let printed = run_within(DEADLINE, copied.run_all(), project.name()).await;
    assert!(printed.contains("8 passed"), "{printed}");
}

/// Runs a test that fails, and expects the story of its order.
async fn fail(project: Project, file: &str, test: &str) {
    let Some(copied) = project.copied().await else {
        return;
    };
    let command = copied.run_with(file, test);
    let (status, printed) = end_within(DEADLINE, command, file).await;
    assert_eq!(status.code(), Some(1), "{printed}");
    for part in STORY {
        assert!(printed.contains(part), "{part:?} is not in\n{printed}");
    }
}

/// Kills a run whose test waits, and expects that its emulator ends.
async fn be_killed(project: Project, file: &str, test: &str) {
    let Some(copied) = project.copied().await else {
        return;
    };
    let mut command = copied.run_with(file, test);
    let mut runner = command.kill_on_drop(true).spawn().unwrap();
    let emulator = timeout(DEADLINE, copied.read("emulator"));
    let emulator = emulator.await.expect("the test starts");
    let mut held = hold(&emulator).await;
    runner.kill().await.unwrap();
    // However the connection ends, it does not end before the emulator.
    let ended = timeout(DEADLINE, held.read_to_end(&mut Vec::new())).await;
    assert!(ended.is_ok(), "the emulator goes on without its runner");
}

/// A connection that stays for as long as the emulator of a control address runs.
async fn hold(control: &str) -> TcpStream {
    let address = control.strip_prefix("http://").unwrap();
    let (address, _) = address.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET /$emulator/v1/hold HTTP/1.1\r\nHost: {address}\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 15];
    stream.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    stream
}
