//! Checks whether the emulator has become slower than in the last saved run: compared with the raw echo of the same run, and
//! in instructions.

use crate::arguments::Effort;
use crate::history::{self, Entry};
use crate::report::{self, Report};
use crate::{Outcome, instructions, throughput};

/// A watched number: its section, its name, how much of it may be lost, and whether more is better.
const WATCHED: [(&str, &str, f64, bool); 3] = [
    ("throughput", throughput::RATIO, 0.2, true),
    ("throughput", throughput::COST, 0.2, false),
    ("instructions", instructions::WHAT, 0.03, false),
];

/// Measures the watched numbers, repeats those that are worse than before, and fails if they are worse again.
pub(crate) fn run(wanted: &[String]) -> Outcome {
    let saved = history::read()?;
    let mut watched = WATCHED.to_vec();
    watched.retain(|(section, ..)| crate::is_wanted(section, wanted));
    let mut worse = Vec::new();
    for _ in 0..2 {
        worse = look(&saved, &mut watched)?;
        if worse.is_empty() {
            return Ok(());
        }
    }
    Err(worse.join("\n").into())
}

/// Returns the numbers that are worse, and prints them.
fn look(
    saved: &[Entry],
    watched: &mut Vec<(&str, &str, f64, bool)>,
) -> Result<Vec<String>, Box<dyn std::error::Error>> {
    let mut report = Report::new(Effort::Full);
    for (name, heading, run) in crate::SECTIONS {
        if watched.iter().any(|(section, ..)| *section == name) {
            report.begin(heading, report::wait_for_silence(Effort::Full));
            run(Effort::Full, &mut report)?;
        }
    }
    report.print()?;
    let mut worse = Vec::new();
    watched.retain(|&(_, what, loss, more_is_better)| {
        let now = report.numbers().find(|(_, name, ..)| *name == what);
        let Some((section, _, rounds, _)) = now else {
            worse.push(format!("{what}: not measured"));
            return true;
        };
        let Some(before) = history::last(saved, section, what) else {
            worse.push(format!("{what}: no run was saved to compare with"));
            return true;
        };
        let (now, before) = (rounds.median(), before.median);
        let change = now / before - 1.0;
        let is_worse = match more_is_better {
            true => change < -loss,
            false => change > loss,
        };
        if is_worse {
            let (change, loss) = (change * 100.0, loss * 100.0);
            worse.push(format!(
                "{what}: {now:.3}, was {before:.3}: {change:+.1} %, and {loss} % are allowed"
            ));
        }
        is_worse
    });
    Ok(worse)
}
