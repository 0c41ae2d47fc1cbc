//! Whether a test in an unoptimised build is fast enough: the same program as an unoptimised and as an optimised build of
//! this executable's source.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::Outcome;
use crate::arguments::{Effort, ROLE};
use crate::report::Report;
use crate::statistics::Rounds;

/// Seconds that a round trip took.
#[derive(Debug, Clone, Copy)]
struct RoundTripSeconds {
    send: f64,
    all: f64,
}

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let this = env::current_exe()?;
    let messages = effort.pick(20, 10_000);
    if effort == Effort::Quick {
        round_trip(&this, messages)?;
        return Ok(());
    }
    let what = "10,000 messages, unoptimised ÷ optimised";
    let unoptimised = match build() {
        Ok(program) => program,
        Err(error) => {
            report.miss(what, &error.to_string());
            return Ok(());
        }
    };
    let mut pairs = Vec::new();
    for _ in 0..effort.rounds() {
        pairs.push((
            round_trip(&this, messages)?,
            round_trip(&unoptimised, messages)?,
        ));
    }
    let each = |of: fn(&(RoundTripSeconds, RoundTripSeconds)) -> f64| {
        pairs.iter().map(of).collect::<Rounds>()
    };
    report.note(
        "10,000 messages, optimised",
        format!("{} s", each(|(fast, _)| fast.all)),
    );
    report.note(
        "10,000 messages, unoptimised",
        format!("{} s", each(|(_, slow)| slow.all)),
    );
    report.note(
        "of this, sending, unoptimised",
        format!("{} s", each(|(_, slow)| slow.send)),
    );
    let ratio = each(|(fast, slow)| slow.all / fast.all);
    report.at_most(what, &ratio, "", 20.0);
    Ok(())
}

fn round_trip(program: &Path, messages: u32) -> io::Result<RoundTripSeconds> {
    let mut command = Command::new(program);
    command.args([ROLE, "round-trip", &messages.to_string()]);
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut seconds = text.split_whitespace().flat_map(str::parse);
    match (seconds.next(), seconds.next()) {
        (Some(send), Some(all)) => Ok(RoundTripSeconds { send, all }),
        _ => Err(io::Error::other(format!(
            "the round trip ended with {}",
            output.status
        ))),
    }
}

/// Builds this bench as `cargo test` would; returns its path.
fn build() -> io::Result<PathBuf> {
    let cargo = env::var_os("CARGO").ok_or_else(|| io::Error::other("not started by cargo"))?;
    let mut command = Command::new(cargo);
    command.args("build --quiet --locked --message-format=json --bench measure".split(' '));
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    command.args(["--manifest-path", manifest]);
    let output = command.stderr(Stdio::inherit()).output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let artifacts = text.lines().flat_map(serde_json::from_str::<Value>);
    let mut executables = artifacts
        .filter(|artifact| artifact["target"]["name"] == "measure")
        .filter_map(|artifact| artifact["executable"].as_str().map(PathBuf::from));
    executables
        .next_back()
        .ok_or_else(|| io::Error::other("it could not be built unoptimised"))
}
