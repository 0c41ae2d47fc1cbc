//! Problems of a configuration, for its author.
//!
//! A problem is self-contained: its position, the value, and what is allowed. An unknown name includes the known name that
//! was probably meant.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use servicebus_broker::Problem;

/// A position in a text, from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
}

/// A problem that prevents a configuration from being served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The JSON path, such as `UserConfig.Namespaces[0].Queues[2].Properties.LockDuration`; empty for a problem of the whole
    /// text.
    pub path: String,
    /// The position in the text, if there is a single one.
    pub position: Option<Position>,
    /// The value as written, shortened if long.
    pub value: Option<String>,
    /// The description, a fragment that includes the value.
    pub message: String,
    /// What is allowed.
    pub allowed: Option<String>,
}

impl From<Problem> for ConfigProblem {
    /// Converts a problem of a setting that has no text.
    fn from(problem: Problem) -> Self {
        Self {
            path: problem.property.to_owned(),
            position: None,
            message: format!("{} is not allowed", problem.value),
            value: Some(problem.value),
            allowed: Some(problem.allowed),
        }
    }
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(formatter, "{}: ", self.path)?;
        }
        formatter.write_str(&self.message)?;
        match &self.allowed {
            Some(allowed) => write!(formatter, "; allowed: {allowed}"),
            None => Ok(()),
        }
    }
}

/// The problems of a configuration, in the order of the text; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, if it was one.
    pub file: Option<PathBuf>,
    /// The first 100 problems.
    pub problems: Vec<ConfigProblem>,
    /// The number of further problems.
    pub more: usize,
}

impl ConfigError {
    /// Creates a problem of the whole text.
    pub(crate) fn general(message: impl Into<String>) -> Self {
        let problem = ConfigProblem {
            path: String::new(),
            position: None,
            value: None,
            message: message.into(),
            allowed: None,
        };
        Self {
            file: None,
            problems: vec![problem],
            more: 0,
        }
    }

    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self {
            file: Some(path.to_owned()),
            ..self
        }
    }
}

impl fmt::Display for ConfigError {
    /// Writes one line per problem, in the `file:line:column: ` form that editors can follow.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                formatter.write_str("\n")?;
            }
            match &self.file {
                Some(file) => write!(formatter, "{}:", file.display())?,
                None => formatter.write_str("configuration:")?,
            }
            if let Some(Position { line, column }) = problem.position {
                write!(formatter, "{line}:{column}:")?;
            }
            write!(formatter, " {problem}")?;
        }
        if self.more > 0 {
            write!(formatter, "\nand {} more problems", self.more)?;
        }
        Ok(())
    }
}

impl Error for ConfigError {}

/// The maximum length of a compared name: the time of a comparison is the product of both lengths.
const MAX_GUESSED: usize = 64;
/// The maximum number of names to compare with: a file with more targets, all of them missing, would take minutes.
pub(crate) const MAX_COMPARED: usize = 1000;
/// The minimum similarity of a suggested name, up to 1.
const LIKENESS: f64 = 0.5;
/// The minimum length in bytes of a common prefix.
const LEAST_BEGINNING: usize = 3;

/// Returns the most similar known name, if it is similar enough.
pub(crate) fn probable<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    most_like(name, known)
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .map(|(_, known)| known)
}

/// Returns the most similar known name.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    most_like(name, known).map(|(_, known)| known)
}

/// Returns the `count` most similar known names, in order; the first ones if there are too many to compare.
pub fn most_alike<'a>(
    name: &str,
    known: impl Iterator<Item = &'a str>,
    count: usize,
) -> Vec<&'a str> {
    let mut known: Vec<&str> = known.collect();
    if known.len() > count && known.len() <= MAX_COMPARED && name.len() <= MAX_GUESSED {
        let name = name.to_lowercase();
        let mut rated: Vec<(f64, &str)> = known
            .into_iter()
            .map(|known| (likeness(&name, &known.to_lowercase()), known))
            .collect();
        rated.sort_by(|a, b| b.0.total_cmp(&a.0));
        known = rated.into_iter().map(|(_, known)| known).collect();
    }
    known.truncate(count);
    known
}

fn most_like<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<(f64, &'a str)> {
    if name.len() > MAX_GUESSED {
        return None;
    }
    let name = name.to_lowercase();
    known
        .map(|known| (likeness(&name, &known.to_lowercase()), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
}

/// A name that is a prefix of the other counts as similar, whatever their lengths.
fn likeness(name: &str, known: &str) -> f64 {
    let likeness = strsim::normalized_damerau_levenshtein(name, known);
    let begins = name.starts_with(known) || known.starts_with(name);
    if begins && name.len().min(known.len()) >= LEAST_BEGINNING {
        likeness.max(LIKENESS)
    } else {
        likeness
    }
}
