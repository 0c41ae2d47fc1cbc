//! How a case ended.
//!
//! What a case observed, as it wrote it down: one line of JSON each.

use std::path::Path;
use std::{fmt, fs, io};

use serde::Deserialize;

/// The text by which the harness says that only an emulator could tell.
const UNCHECKABLE: &str = "could not check: ";

/// What stands after the text of a panic.
const ENDS: [&str; 3] = ["note: run with", "stack backtrace:", "failures:"];

/// How a case ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// As it should.
    Ok,
    /// With a panic, whose text this is.
    Failed(String),
    /// It needs what this target does not have, which says nothing about the behaviour of the target.
    Uncheckable(String),
}

/// One case on one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaseRun {
    /// The path of the test.
    pub case: String,
    /// How it ended.
    pub outcome: Outcome,
    /// What it observed, in order.
    pub observations: Vec<Observation>,
}

impl Outcome {
    /// Reads what the test binary wrote about its only case.
    pub(super) fn read(succeeded: bool, output: &str) -> Self {
        if succeeded {
            return Self::Ok;
        }
        let panic = panic_text(output).unwrap_or_else(|| "ended without a panic".to_owned());
        let first = panic.lines().next().unwrap_or_default();
        match first.find(UNCHECKABLE) {
            Some(at) => Self::Uncheckable(first[at + UNCHECKABLE.len()..].to_owned()),
            None => Self::Failed(panic),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ok => f.write_str("ok"),
            Self::Failed(panic) => write!(f, "failed: {panic}"),
            Self::Uncheckable(what) => write!(f, "could not check: {what}"),
        }
    }
}

/// The text of the first panic, without where it was.
fn panic_text(output: &str) -> Option<String> {
    let (_, rest) = output.split_once(" panicked at ")?;
    let lines = rest.lines().skip(1);
    let rendered = lines.take_while(|line| !ENDS.iter().any(|end| line.starts_with(end)));
    let text = Vec::from_iter(rendered).join("\n");
    // Where in the suite it was is not a behaviour of a target.
    let text = text
        .lines()
        .filter(|line| !line.trim_start().starts_with("at tests/"));
    Some(Vec::from_iter(text).join("\n").trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(panic: &str) -> String {
        format!(
            "running 1 test\ntest a ... FAILED\n\nfailures:\n\n---- a stdout ----\n\nthread 'a' (7) panicked at src/a.rs:1:2:\n{panic}\n  at tests/a.rs:3:4\nnote: run with `RUST_BACKTRACE=1`\n\nfailures:\n    a\n"
        )
    }

    #[test]
    fn an_outcome_is_ok_failed_or_uncheckable() {
        assert_eq!(Outcome::read(true, ""), Outcome::Ok);
        assert_eq!(
            Outcome::read(false, &output("left: 1\nright: 2")),
            Outcome::Failed("left: 1\nright: 2".to_owned())
        );
        assert_eq!(
            Outcome::read(
                false,
                &output("cannot wait until the namespace is idle: could not check: whether")
            ),
            Outcome::Uncheckable("whether".to_owned())
        );
        // Only what stopped the case counts.
        let failed = Outcome::read(false, &output("left\ncould not check: the record"));
        assert!(matches!(failed, Outcome::Failed(_)));
    }
}

/// Most observations that are read of one case, and as many of its exchanges on the wire.
pub(super) const MAX_RECORDED: usize = 2_000;

/// One thing that a case observed.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub struct Observation {
    /// What was done or looked at: `a message`, `send to orders`.
    pub what: String,
    /// What came of it.
    pub value: String,
    /// Whether a task beside others observed it, so that its order among theirs means nothing.
    #[serde(default)]
    pub aside: bool,
    /// Whether it was said on the wire, where the recorder heard it. It comes after all others of its case: the order
    /// among clients means nothing.
    #[serde(default)]
    pub on_wire: bool,
}

/// Reads what a case wrote down; nothing when it wrote nothing.
pub(super) fn read(file: &Path) -> io::Result<Vec<Observation>> {
    let text = match fs::read_to_string(file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    // The last line of a process that was killed may be half of one.
    let whole = text
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    Ok(whole.take(MAX_RECORDED).collect())
}
