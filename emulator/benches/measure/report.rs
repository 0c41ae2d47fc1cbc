//! The table: each number, its limit, and whether it holds.

use std::io::{self, Write as _};

use crate::Outcome;
use crate::arguments::Effort;
use crate::statistics::{Rounds, number};

/// What was measured so far.
#[derive(Debug)]
pub(crate) struct Report {
    effort: Effort,
    rows: Vec<Row>,
}

#[derive(Debug)]
enum Row {
    Heading {
        text: String,
        busy: f64,
    },
    Number {
        what: String,
        measured: String,
        limit: String,
        holds: &'static str,
    },
}

/// What a number must not pass.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    /// It should be at least this.
    AtLeast(f64),
    /// It should be at most this.
    AtMost(f64),
}

impl Report {
    /// Nothing was measured yet.
    pub(crate) fn new(effort: Effort) -> Self {
        Self {
            effort,
            rows: Vec::new(),
        }
    }

    /// Begins a section; `busy` is the share of the machine that others used just before.
    pub(crate) fn begin(&mut self, heading: &str, busy: f64) {
        self.tell(&format!("measuring: {heading}"));
        self.rows.push(Row::Heading {
            text: heading.to_owned(),
            busy,
        });
    }

    /// Adds a number that is judged by its median; `unit` follows it.
    pub(crate) fn judge(&mut self, what: &str, rounds: &Rounds, unit: &str, limit: Limit) {
        let median = rounds.median();
        let (holds, bound) = match limit {
            Limit::AtLeast(least) => (median >= least, format!("≥ {}{unit}", plain(least))),
            Limit::AtMost(most) => (median <= most, format!("≤ {}{unit}", plain(most))),
        };
        let holds = if holds { "yes" } else { "**no**" };
        self.row(what, format!("{rounds}{unit}"), bound, holds);
    }

    /// Adds a number that has no limit.
    pub(crate) fn note(&mut self, what: &str, measured: impl Into<String>) {
        self.row(what, measured.into(), String::new(), "");
    }

    /// Adds a number with a limit that could not be measured here, and why.
    pub(crate) fn miss(&mut self, what: &str, why: &str) {
        self.row(what, format!("not measured: {why}"), String::new(), "?");
    }

    fn row(&mut self, what: &str, measured: String, limit: String, holds: &'static str) {
        self.tell(&format!("  {what}: {measured} {limit} {holds}"));
        let what = what.to_owned();
        self.rows.push(Row::Number {
            what,
            measured,
            limit,
            holds,
        });
    }

    /// Says how it goes on; what is not judged is not worth a line in the output of tests.
    fn tell(&self, line: &str) {
        if self.effort == Effort::Full {
            complain(line);
        }
    }

    /// Prints everything as a table in Markdown; of a quick run, that it has run.
    pub(crate) fn print(&self) -> Outcome {
        if self.effort == Effort::Quick {
            return say(
                "every benchmark has run once; for numbers: cargo bench -p servicebus-emulator",
            );
        }
        let mut out = io::stdout().lock();
        writeln!(
            out,
            "\n| what | measured | limit | holds |\n| --- | --- | --- | --- |"
        )?;
        for row in &self.rows {
            match row {
                Row::Heading { text, busy } => {
                    let busy = number(busy * 100.0);
                    writeln!(
                        out,
                        "| **{text}** | others used {busy} % of the machine | | |"
                    )?;
                }
                Row::Number {
                    what,
                    measured,
                    limit,
                    holds,
                } => {
                    writeln!(out, "| {what} | {measured} | {limit} | {holds} |")?;
                }
            }
        }
        Ok(())
    }
}

/// One line on standard output.
pub(crate) fn say(text: &str) -> Outcome {
    Ok(writeln!(io::stdout(), "{text}")?)
}

/// One line on standard error.
pub(crate) fn complain(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// A limit as it was written: without zeros that say nothing.
fn plain(limit: f64) -> String {
    limit.to_string()
}
