//! The README's snippets do what they say, as they stand there but for the address.

use std::fs;
use std::path::Path;

use servicebus_harness::prelude::*;
use tokio::process::Command;

use crate::built;
use crate::driver::run_to_the_end;
use crate::environment::{self, Language};

/// What the snippets are written for; a test's bus has an address of its own.
const WRITTEN: &str = "Endpoint=sb://localhost;";

#[tokio::test]
async fn the_python_snippet_runs() {
    let Some(environment) = environment::ready(Language::Python).await else {
        return;
    };
    let mut command = Command::new(environment::python(&environment));
    command.arg("-c");
    run(command, "python").await;
}

#[tokio::test]
async fn the_javascript_snippet_runs() {
    let Some(mut command) = environment::node(Language::JavaScript).await else {
        return;
    };
    command.arg("--eval");
    run(command, "javascript").await;
}

/// The Rust snippet is an example, which is compiled; here it is run.
#[tokio::test]
async fn the_rust_snippet_is_an_example_that_runs() {
    let example = fs::read_to_string(root().join("examples/hello.rs")).unwrap();
    let (_, code) = example.split_once("\n\n").unwrap();
    assert!(
        readme().contains(&format!("```rust\n{code}```")),
        "the README's Rust snippet and examples/hello.rs differ"
    );
    let servicebus = bus().await;
    let mut command = Command::new(built::program("examples/hello"));
    command.env(
        "SERVICEBUS_CONNECTION_STRING",
        servicebus.connection_string(),
    );
    run_to_the_end(command, "the Rust snippet").await;
    assert_completed!(servicebus.queue("queue.1"), count = 1).await;
}

/// Runs a snippet, which is the last argument of `command`, against a bus of its own.
async fn run(mut command: Command, language: &str) {
    let servicebus = bus().await;
    let snippet = snippet(&readme(), language);
    assert!(
        snippet.contains(WRITTEN),
        "the {language} snippet names its address"
    );
    let (endpoint, _) = servicebus.connection_string().split_once(';').unwrap();
    command.arg(snippet.replace(WRITTEN, &format!("{endpoint};")));
    run_to_the_end(command, &format!("the {language} snippet")).await;
    assert_completed!(servicebus.queue("queue.1"), count = 1).await;
    assert_empty!(servicebus.queue("queue.1")).await;
}

async fn bus() -> ServiceBus {
    let topology = Topology::new().queue(Queue::new("queue.1"));
    let starting = ServiceBus::builder().topology(topology).start();
    starting.await
}

fn snippet(readme: &str, language: &str) -> String {
    let (_, rest) = readme.split_once(&format!("```{language}\n")).unwrap();
    let (snippet, _) = rest.split_once("```").unwrap();
    snippet.to_owned()
}

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
