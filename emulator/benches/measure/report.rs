//! The table: each number, its limit, and whether it holds.
//!
//! How busy others keep the machine: what tells a noisy run from a good one.

use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

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
        /// What is kept of it, with its unit.
        rounds: Option<(Rounds, String)>,
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
        self.row(
            what,
            format!("{rounds}{unit}"),
            bound,
            holds,
            Some((rounds, unit)),
        );
    }

    /// Adds a number that has no limit; `unit` follows it.
    pub(crate) fn show(&mut self, what: &str, rounds: &Rounds, unit: &str) {
        let measured = format!("{rounds}{unit}");
        self.row(what, measured, String::new(), "", Some((rounds, unit)));
    }

    /// Adds what is more than one number, and has no limit.
    pub(crate) fn note(&mut self, what: &str, measured: impl Into<String>) {
        self.row(what, measured.into(), String::new(), "", None);
    }

    /// Adds a number with a limit that could not be measured here, and why.
    pub(crate) fn miss(&mut self, what: &str, why: &str) {
        let measured = format!("not measured: {why}");
        self.row(what, measured, String::new(), "?", None);
    }

    /// Every number: its section, what it is, its rounds and its unit.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = (&str, &str, &Rounds, &str)> {
        let mut section = "";
        self.rows.iter().filter_map(move |row| match row {
            Row::Heading { text, .. } => {
                section = text;
                None
            }
            Row::Number { what, rounds, .. } => {
                let (rounds, unit) = rounds.as_ref()?;
                Some((section, what.as_str(), rounds, unit.as_str()))
            }
        })
    }

    fn row(
        &mut self,
        what: &str,
        measured: String,
        limit: String,
        holds: &'static str,
        rounds: Option<(&Rounds, &str)>,
    ) {
        self.tell(&format!("  {what}: {measured} {limit} {holds}"));
        let what = what.to_owned();
        self.rows.push(Row::Number {
            what,
            measured,
            limit,
            holds,
            rounds: rounds.map(|(rounds, unit)| (rounds.clone(), unit.to_owned())),
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
                    ..
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

/// Others may use this share of the machine.
const SILENT: f64 = 0.05;
/// One look lasts this long.
const LOOK: Duration = Duration::from_millis(500);
/// Looks before measuring goes on in spite of the noise.
const ATTEMPTS: u32 = 60;

/// Waits until others are silent, not for ever, and returns the share of the machine that they used last.
pub(crate) fn wait_for_silence(effort: Effort) -> f64 {
    let mut busy = 0.0;
    for _ in 0..effort.pick(1, ATTEMPTS) {
        let (before, total_before) = ticks();
        sleep(effort.pick(Duration::from_millis(20), LOOK));
        let (after, total_after) = ticks();
        busy = (after - before) as f64 / (total_after - total_before).max(1) as f64;
        if busy <= SILENT {
            break;
        }
    }
    busy
}

/// Ticks spent on something, and all of them; zeros where the system does not say.
fn ticks() -> (u64, u64) {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let line = text.lines().next().unwrap_or_default();
    let numbers: Vec<u64> = line
        .split_whitespace()
        .skip(1)
        .flat_map(str::parse)
        .collect();
    // user nice system idle iowait irq softirq steal; guests are part of user.
    let total: u64 = numbers.iter().take(8).sum();
    let idle: u64 = numbers.iter().skip(3).take(2).sum();
    (total - idle, total)
}
