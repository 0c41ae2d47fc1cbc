//! The whole emulator in one deterministic simulation, and a judge of what its clients see.
//!
//! Each seed is simulated by a process of its own, because tokio draws the seeds of its runtimes from a counter of the
//! process; `chance.c`, preloaded, draws the rest of chance from the seed. `cargo test` simulates 200 seeds, and
//! `tests/simulation/run` as many as it is told.

#![expect(
    clippy::print_stdout,
    reason = "it is a command that says what it finds"
)]

mod client;
mod drain;
mod entities;
mod http;
mod jms;
mod ledger;
mod network;
mod receivers;
mod runner;
mod senders;
mod sessions;
mod worker;
mod world;

use std::process::ExitCode;

use runner::Wanted;

fn main() -> ExitCode {
    if let Some(seed) = runner::seed_of_this_process() {
        return runner::simulate(seed);
    }
    match Wanted::read(std::env::args().skip(1)) {
        Ok(wanted) => runner::run(&wanted),
        Err(usage) => {
            eprintln!("{usage}");
            ExitCode::FAILURE
        }
    }
}
