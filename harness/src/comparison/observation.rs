//! What a case observes, written down while it runs.
//!
//! One line of JSON each, in a file that the environment names; where it names none nothing is written.

use std::{
    env,
    fs::{self, OpenOptions},
    io::{self, Write},
    path::Path,
};

use serde::{Deserialize, Serialize};

/// The environment variable that names the file in which a case writes down what it observes.
pub const OBSERVATIONS_VARIABLE: &str = "SERVICEBUS_HARNESS_OBSERVATIONS";

/// Longest value that is written down, in characters: bodies may have megabytes.
const LONGEST: usize = 4_000;
/// Most observations that are read of one case, and as many of its exchanges on the wire.
pub(super) const MOST: usize = 2_000;

/// One thing that a case observed.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
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

/// Writes down what a test observes, for a [`Comparison`](super::Comparison) of two targets; does nothing where none is
/// made. Ids, times and hosts may be in it, they are normalised. What a test's spawned tasks observe is compared without
/// its order.
///
/// # Panics
///
/// When the file that the environment names cannot be written: a comparison without what was seen would be none.
pub fn observe(what: impl Into<String>, value: impl Into<String>) {
    let Some(file) = env::var_os(OBSERVATIONS_VARIABLE) else {
        return;
    };
    let value: String = value.into();
    let observation = Observation {
        what: what.into(),
        value: value.chars().take(LONGEST).collect(),
        aside: tokio::task::try_id().is_some(),
        on_wire: false,
    };
    if let Err(error) = append(file.as_ref(), &observation) {
        panic!(
            "cannot write {}, named by {OBSERVATIONS_VARIABLE}: {error}",
            file.display()
        );
    }
}

/// Whether a comparison reads what is observed.
pub(crate) fn is_observed() -> bool {
    env::var_os(OBSERVATIONS_VARIABLE).is_some()
}

/// Writes down what was heard on the wire. It may be the end of a test that has failed, which is not to panic again.
pub(crate) fn write_down(heard: &[Observation]) {
    let Some(file) = env::var_os(OBSERVATIONS_VARIABLE) else {
        return;
    };
    let mut observations = heard.iter();
    if let Err(error) = observations.try_for_each(|heard| append(file.as_ref(), heard)) {
        eprintln!(
            "cannot write {}, named by {OBSERVATIONS_VARIABLE}: {error}",
            file.display()
        );
    }
}

fn append(file: &Path, observation: &Observation) -> io::Result<()> {
    let line = serde_json::to_string(observation)? + "\n";
    let mut file = OpenOptions::new().create(true).append(true).open(file)?;
    // In one piece, so that lines of several threads stay whole.
    file.write_all(line.as_bytes())
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
    let (heard, observed): (Vec<Observation>, Vec<_>) =
        whole.partition(|observation: &Observation| observation.on_wire);
    let observed = observed.into_iter().take(MOST);
    Ok(observed.chain(heard.into_iter().take(MOST)).collect())
}
