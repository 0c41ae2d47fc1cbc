//! Proton, the AMQP client of many brokers: what it receives is what it sent, bit for bit.
//!
//! The script reports what it saw; it is judged here, with the measure of `tests/fidelity`.
//! Beside that, [`cases`] of transactions, and of what no SDK asks of the service.

mod cases;

use std::path::PathBuf;

use serde_json::{Value, json};
use servicebus_harness::prelude::*;
use tokio::process::Command;

use crate::comparison::differences;
use crate::driver::run_to_the_end;
use crate::environment::{self, Language};
use crate::matrix;

/// What the script saw of one case.
struct Observed {
    name: String,
    way: String,
    sent: Vec<u8>,
    received: Vec<u8>,
    /// The parts in which what Proton shows differs.
    shown: Vec<String>,
}

#[tokio::test]
async fn proton_receives_what_it_sends() {
    let Some(observed) = observe().await else {
        return;
    };
    let of = |way: &str| observed.iter().filter(|row| row.way == way).count();
    let unspeakable = observed.iter().filter(|row| row.way == "unspeakable");
    let unspeakable: Vec<_> = unspeakable.map(|row| (&*row.name, &row.shown)).collect();
    assert!(unspeakable.is_empty(), "{unspeakable:#?}");
    assert_eq!(of("bytes"), matrix::all().len());
    assert_eq!(of("message"), matrix::all().len());
    let failed: Vec<_> = observed.iter().filter_map(failure).collect();
    assert!(failed.is_empty(), "{failed:#?}");
}

/// In what one case differs, if it does.
fn failure(row: &Observed) -> Option<String> {
    let mut differences = differences(&row.sent, &row.received);
    differences.extend(row.shown.iter().map(|part| format!("as shown: {part}")));
    (!differences.is_empty()).then(|| format!("{}, as {}: {differences:?}", row.name, row.way))
}

/// Runs the script; none where it may be left out.
async fn observe() -> Option<Vec<Observed>> {
    let environment = environment::ready(Language::Proton).await?;
    let topology = Topology::new().queue(Queue::new("matrix"));
    let starting = ServiceBus::builder().topology(topology).start();
    let servicebus = starting.await;
    let (cases, report) = (file("matrix"), file("report"));
    std::fs::write(&cases, matrix().to_string()).expect("the matrix can be written");
    let mut command = Command::new(environment::python(&environment));
    command
        .arg(environment::scripts(Language::Proton).join("run.py"))
        .arg(&cases)
        .arg(&report)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env(
            "SERVICEBUS_CONNECTION_STRING",
            servicebus.connection_string(),
        );
    run_to_the_end(command, "proton").await;
    let written = std::fs::read(&report).expect("the script has written its report");
    let rows: Vec<Value> = serde_json::from_slice(&written).expect("the report is a list");
    Some(rows.iter().map(observed).collect())
}

fn file(name: &str) -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    directory.join(format!("proton-{name}-{}.json", std::process::id()))
}

fn matrix() -> Value {
    let cases = matrix::all().into_iter();
    cases
        .map(|case| json!({ "name": case.name, "bytes": hexadecimal(&case.bytes) }))
        .collect()
}

fn observed(row: &Value) -> Observed {
    let text = |key: &str| row[key].as_str().expect("a text of the report");
    let parts = row["shown"].as_array().expect("a list of the report");
    let part = |part: &Value| part.as_str().expect("a text of the report").to_owned();
    Observed {
        name: text("name").to_owned(),
        way: text("way").to_owned(),
        sent: bytes(text("sent")),
        received: bytes(text("received")),
        shown: parts.iter().map(part).collect(),
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hexadecimal: &str) -> Vec<u8> {
    let digits = hexadecimal.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    digits
        .map(|pair| byte(pair).expect("two hexadecimal digits"))
        .collect()
}
