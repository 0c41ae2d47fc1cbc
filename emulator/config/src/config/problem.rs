//! What is wrong with a configuration, in words for its author.
//!
//! A problem stands alone: where it is, what was found, what would have been legal.
//!
//! Which known name was probably meant by one that is not known.

use std::error::Error;
use std::fmt;
use std::path::{Path, PathBuf};

use servicebus_broker::Problem;

/// A place in a text, both numbers from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The character within the line.
    pub column: usize,
}

/// One thing that keeps a configuration from being served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigProblem {
    /// The JSON path, for example `UserConfig.Namespaces[0].Queues[2].Properties.LockDuration`; empty when
    /// the text as a whole is meant.
    pub path: String,
    /// Where in the text, when there is one place.
    pub position: Option<Position>,
    /// What stands there, as it is written and shortened if long.
    pub value: Option<String>,
    /// What is wrong, a fragment that names the value.
    pub message: String,
    /// What would have been legal.
    pub allowed: Option<String>,
}

impl From<Problem> for ConfigProblem {
    /// The problem of a setting that was not read from a text.
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

/// The problems of a configuration, in the order of the text; never empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    /// The file, when it was one.
    pub file: Option<PathBuf>,
    /// What is wrong: the first 100 problems.
    pub problems: Vec<ConfigProblem>,
    /// How many more there are.
    pub more: usize,
}

impl ConfigError {
    /// A problem of the text as a whole.
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
    /// One line for each problem, in the `file:line:column: ` form that editors can follow.
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

/// Longest name that is worth a guess: comparing takes the product of both lengths.
const MAX_GUESSED: usize = 64;
/// Most names that are compared with one: a file with more targets, and all of them missing, would take minutes.
pub(crate) const MAX_COMPARED: usize = 1000;
/// Least likeness of a name that was probably meant, of 1.
const LIKENESS: f64 = 0.5;
/// Shortest beginning, in bytes, by which a longer name is recognised.
const LEAST_BEGINNING: usize = 3;

/// The known name that was probably meant, if one is like enough.
pub(crate) fn probable<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    most_like(name, known)
        .filter(|(likeness, _)| *likeness >= LIKENESS)
        .map(|(_, known)| known)
}

/// The known name that is most like, however little that is.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    most_like(name, known).map(|(_, known)| known)
}

/// The `count` known names that are most like, the likeliest first; the first ones where there are too many to compare.
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

/// One name that begins with the other is meant by it, however much longer it is.
fn likeness(name: &str, known: &str) -> f64 {
    let likeness = strsim::normalized_damerau_levenshtein(name, known);
    let begins = name.starts_with(known) || known.starts_with(name);
    if begins && name.len().min(known.len()) >= LEAST_BEGINNING {
        likeness.max(LIKENESS)
    } else {
        likeness
    }
}
