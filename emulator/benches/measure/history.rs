//! The measurements of all runs as lines of JSON, for plots and for comparison with later runs.

use std::env;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::report::Report;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/history.jsonl");

/// One number of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// The day, as `2026-11-26`.
    pub(crate) date: String,
    /// The commit, if known.
    #[serde(default)]
    pub(crate) commit: String,
    /// The build profile of the program.
    #[serde(default = "release", skip_serializing_if = "is_release")]
    pub(crate) profile: String,
    pub(crate) section: String,
    pub(crate) what: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) unit: String,
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// Adds the numbers of a report.
pub(crate) fn save(report: &Report) -> Outcome {
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let output = Command::new("git")
        .args(["rev-parse", "--short", "HEAD"])
        .output()?;
    let commit = String::from_utf8(output.stdout)?.trim().to_owned();
    let mut file = OpenOptions::new().create(true).append(true).open(FILE)?;
    for (section, what, rounds, unit) in report.numbers() {
        let (least, most) = rounds.extremes();
        let entry = Entry {
            date: date.clone(),
            commit: commit.clone(),
            profile: profile(),
            section: section.to_owned(),
            what: what.to_owned(),
            unit: unit.trim().to_owned(),
            median: rounds.median(),
            least,
            most,
        };
        writeln!(file, "{}", serde_json::to_string(&entry)?)?;
    }
    Ok(())
}

/// Returns all entries, oldest first.
pub(crate) fn read() -> Result<Vec<Entry>, Box<dyn std::error::Error>> {
    let text = fs::read_to_string(FILE)?;
    let entries = text.lines().map(serde_json::from_str);
    Ok(entries.collect::<Result<_, _>>()?)
}

/// Returns the last measurement of a number with the current build profile.
pub(crate) fn last<'a>(all: &'a [Entry], section: &str, what: &str) -> Option<&'a Entry> {
    let profile = profile();
    all.iter()
        .rfind(|entry| entry.profile == profile && entry.section == section && entry.what == what)
}

/// Returns the build profile of the measured program.
fn profile() -> String {
    env::var("SERVICEBUS_PROFILE").unwrap_or_else(|_| release())
}

fn release() -> String {
    "release".to_owned()
}

fn is_release(profile: &str) -> bool {
    profile == "release"
}
