//! The report: a table of the numbers, their limits, and whether they hold.
//!
//! Also measures the machine's other load, which distinguishes a noisy run from a good one.

use std::io::Write as _;
use std::thread::sleep;
use std::time::Duration;
use std::{fs, io};

use crate::Outcome;
use crate::arguments::Effort;
use crate::statistics::{Rounds, number};

/// The measurements so far.
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

impl Report {
    /// Nothing was measured yet.
    pub(crate) fn new(effort: Effort) -> Self {
        Self {
            effort,
            rows: Vec::new(),
        }
    }

    /// Begins a section; `busy` is the share of the machine that other processes used just before.
    pub(crate) fn begin(&mut self, heading: &str, busy: f64) {
        self.tell(&format!("measuring: {heading}"));
        self.rows.push(Row::Heading {
            text: heading.to_owned(),
            busy,
        });
    }

    /// Adds a number whose median may be at most `most`; `unit` follows both.
    pub(crate) fn at_most(&mut self, what: &str, rounds: &Rounds, unit: &str, most: f64) {
        let holds = rounds.median() <= most;
        self.judge(what, rounds, unit, holds, format!("≤ {most}{unit}"));
    }

    /// Adds a number whose median must be at least `least`; `unit` follows both.
    pub(crate) fn at_least(&mut self, what: &str, rounds: &Rounds, unit: &str, least: f64) {
        let holds = rounds.median() >= least;
        self.judge(what, rounds, unit, holds, format!("≥ {least}{unit}"));
    }

    fn judge(&mut self, what: &str, rounds: &Rounds, unit: &str, holds: bool, limit: String) {
        let measured = format!("{rounds}{unit}");
        let holds = if holds { "yes" } else { "**no**" };
        self.row(what, measured, limit, holds, Some((rounds, unit)));
    }

    /// Adds a number without a limit; `unit` follows it.
    pub(crate) fn show(&mut self, what: &str, rounds: &Rounds, unit: &str) {
        let measured = format!("{rounds}{unit}");
        self.row(what, measured, String::new(), "", Some((rounds, unit)));
    }

    /// Adds text without a limit.
    pub(crate) fn note(&mut self, what: &str, measured: impl Into<String>) {
        self.row(what, measured.into(), String::new(), "", None);
    }

    /// Adds the medians of both numbers of each round, and the second divided by the first, which may be at most `most`.
    pub(crate) fn compare(
        &mut self,
        what: &str,
        ratio: &str,
        rounds: impl Iterator<Item = (f64, f64)> + Clone,
        most: f64,
    ) {
        let (before, after): (Rounds, Rounds) = rounds.clone().unzip();
        let both = format!("{} / {}", number(before.median()), number(after.median()));
        self.note(what, both);
        let ratios = rounds.map(|(before, after)| after / before);
        self.at_most(ratio, &ratios.collect(), "", most);
    }

    /// Adds a number with a limit that could not be measured here, and the reason.
    pub(crate) fn miss(&mut self, what: &str, why: &str) {
        let measured = format!("not measured: {why}");
        self.row(what, measured, String::new(), "?", None);
    }

    /// Returns every number: its section, name, rounds and unit.
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

    /// Prints progress, except in quick runs.
    fn tell(&self, line: &str) {
        if self.effort == Effort::Full {
            complain(line);
        }
    }

    /// Prints a Markdown table; after a quick run, only that it has run.
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

/// The share of the machine that other processes may use.
const SILENT: f64 = 0.05;
/// One look lasts this long.
const LOOK: Duration = Duration::from_millis(500);
/// Samples before a measurement begins in spite of the noise.
const ATTEMPTS: u32 = 60;

/// Waits for other processes to become idle, with a limit; returns their last share of the machine.
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

/// Returns the ticks in use, and all ticks; zeros if the system does not report them.
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
