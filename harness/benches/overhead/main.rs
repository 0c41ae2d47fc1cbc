//! What a namespace of its own costs a test: `cargo bench -p servicebus-harness --features container`.
//!
//! One test sends a message and receives it over the harness's clients. What counts is how much longer it takes with a
//! namespace of its own than with one that runs already. Started without `--bench`, everything runs once and nothing is
//! judged; with `-- --save` the numbers are kept. Method and results: `harness/BENCHMARKS.md`.

#![expect(clippy::print_stdout, reason = "a benchmark prints its table")]

mod many;
mod table;
mod ways;

use std::{env, process::ExitCode};

use servicebus_harness::{Builder, Error, prelude::*};

fn main() -> ExitCode {
    let benchmark = env::args().any(|argument| argument == "--bench");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime starts");
    let mut rows = runtime.block_on(ways::measure(benchmark));
    rows.push(many::measure(benchmark));
    if env::args().any(|argument| argument == "--save") {
        table::save(&rows).expect("the numbers can be kept");
    }
    match benchmark {
        true => table::print(&rows),
        false => {
            println!("everything has run once; for numbers: cargo bench -p servicebus-harness");
            ExitCode::SUCCESS
        }
    }
}

/// A namespace of its own, with a test if `tests`, which ends with it.
async fn alone(builder: Builder, tests: bool) -> Result<(), Error> {
    let servicebus = builder.start().result().await?;
    if tests {
        exchange(&servicebus).await;
    }
    Ok(())
}

/// The test: one send, one receive.
async fn exchange(servicebus: &ServiceBus) {
    let queue = servicebus.queue("queue.1");
    queue.send("hello").await;
    queue.receive().await.complete().await;
}
