//! What a case observed, as it wrote it down: one line of JSON each.

use std::{fs, io, path::Path};

use serde::Deserialize;

/// Most observations that are read of one case, and as many of its exchanges on the wire.
pub(super) const MOST: usize = 2_000;

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
    Ok(whole.take(MOST).collect())
}
