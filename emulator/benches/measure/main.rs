//! Measures every number that the emulator promises by one command: `cargo bench -p servicebus-emulator`.
//!
//! Each number is a ratio within one run if there is something to compare with, and the median of five rounds. The emulator
//! and the programs it is compared with run as processes of their own; the client here writes its frames by hand. Without
//! `--bench`, as in `cargo test`, everything runs once with tiny sizes and no limit applies. Method and results:
//! `emulator/BENCHMARKS.md`.

mod arguments;
mod check;
mod history;
mod plots;
mod report;
mod statistics;

mod process;

mod connection;
mod frames;
mod readers;
mod receiver;
mod sender;

mod admin;
mod peeker;
mod rabbitmq;
mod raw;
mod secured_echo;

mod depth;
mod durable;
mod latency;
mod memory;
mod startup;
mod throughput;
mod tls;

mod core;
mod engine;
mod hops;
mod inspector;
mod instructions;
mod local;
mod messages;
mod namespaces;
mod scale;
mod sessions;
mod topics;
mod transactions;

mod outcome_delay;
mod unoptimised;

use std::error::Error;
use std::process::ExitCode;

use arguments::{Effort, Order};
use report::Report;

type Outcome = Result<(), Box<dyn Error>>;

/// A part of the report: its name on the command line, its heading, and its measurement.
type Section = (
    &'static str,
    &'static str,
    fn(Effort, &mut Report) -> Outcome,
);

const SECTIONS: [Section; 22] = [
    ("throughput", "Throughput, 1 KiB", throughput::measure),
    ("tls", "TLS and WebSocket, 1 KiB", tls::measure),
    ("latency", "Latency, 1 KiB", latency::measure),
    ("startup", "Start and size", startup::measure),
    ("memory", "Memory", memory::measure),
    ("durable", "A data directory, 1 KiB", durable::measure),
    (
        "journal",
        "A start with a full journal",
        durable::measure_full_journal,
    ),
    (
        "depth",
        "A queue of 1,000,000 against one of 1,000",
        depth::measure,
    ),
    ("core", "The core alone", core::measure),
    (
        "scale",
        "The core among 1 K / 32 K / 1 M scheduled, remembered or locked",
        scale::measure,
    ),
    ("hops", "Forwarding, in the core", hops::measure),
    ("topics", "Topics, in the core", topics::measure),
    ("sessions", "Sessions, 1,000 receivers", sessions::measure),
    (
        "transactions",
        "Transactions of one complete and one send",
        transactions::measure,
    ),
    ("admin", "10,000 queues, made one by one", admin::measure),
    (
        "inspector",
        "The inspector and the control API",
        inspector::measure,
    ),
    (
        "namespaces",
        "Virtual namespaces, made and removed",
        namespaces::measure,
    ),
    ("messages", "Messages", messages::measure),
    ("engine", "The AMQP engine alone", engine::measure),
    (
        "outcome-delay",
        "What D31 costs azservicebus",
        outcome_delay::measure,
    ),
    ("instructions", "Instructions", instructions::measure),
    ("unoptimised", "Unoptimised builds", unoptimised::measure),
];

fn main() -> ExitCode {
    let done = match arguments::read() {
        Order::List => report::say("measure: test"),
        Order::Nothing => Ok(()),
        Order::Echo => raw::serve_echo(),
        Order::SecuredEcho(wrapping) => secured_echo::serve(wrapping),
        Order::RoundTrip(messages) => latency::play(messages),
        Order::Measure(effort, wanted, is_kept) => measure(effort, &wanted, is_kept),
        Order::Check(wanted) => check::run(&wanted),
        Order::Plot => plots::draw(),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::complain(&error.to_string());
            ExitCode::FAILURE
        }
    }
}

fn measure(effort: Effort, wanted: &[String], is_kept: bool) -> Outcome {
    if cfg!(not(target_os = "linux")) {
        // Processor time and memory of another process are read from /proc.
        return report::say("these benchmarks need Linux");
    }
    let mut report = Report::new(effort);
    for (name, heading, run) in SECTIONS {
        if !is_wanted(name, wanted) {
            continue;
        }
        let busy = report::wait_for_silence(effort);
        report.begin(heading, busy);
        run(effort, &mut report).map_err(|error| format!("{name}: {error}"))?;
    }
    if is_kept {
        history::save(&report)?;
    }
    report.print()
}

/// Returns whether this section was asked for, or none was.
fn is_wanted(name: &str, wanted: &[String]) -> bool {
    wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()))
}
