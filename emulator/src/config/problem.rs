//! What is wrong with a configuration, in words for its author.
//!
//! A problem stands alone: where it is, what was found, what would have been legal.

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
