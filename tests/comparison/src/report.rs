//! A comparison as people read it.

use std::fmt;

use super::{Compared, Comparison, Difference};

/// How wide one side is printed.
const WIDTH: usize = 56;

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:WIDTH$} | {}", self.left, self.right)?;
        for compared in &self.cases {
            write!(f, "{compared}")?;
        }
        let unchecked = Vec::from_iter(self.cases.iter().filter(|case| !case.unchecked.is_empty()));
        if !unchecked.is_empty() {
            writeln!(f, "\ncould not check {}:", count(unchecked.len(), "case"))?;
        }
        for compared in unchecked {
            for (target, what) in &compared.unchecked {
                writeln!(f, "  {} at {target}: {what}", compared.case)?;
            }
        }
        for known in &self.vanished {
            writeln!(
                f,
                "\nthe ledger's {} of {} ({}) did not occur in {}: {}",
                known.id, known.date, known.source, known.case, known.what
            )?;
        }
        self.summary(f)
    }
}

impl Comparison {
    fn summary(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = || self.cases.iter().flat_map(|case| &case.rows);
        let differences = || rows().filter(|row| !row.is_alike());
        writeln!(
            f,
            "\n{}, {}: {} new, {} known, {} not checked",
            count(self.cases.len(), "case"),
            count(rows().count(), "observation"),
            count(
                differences().filter(|row| row.known.is_none()).count(),
                "difference"
            ),
            differences().filter(|row| row.known.is_some()).count(),
            count(
                self.cases
                    .iter()
                    .filter(|case| !case.unchecked.is_empty())
                    .count(),
                "case"
            ),
        )
    }
}

impl fmt::Display for Compared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let differing = self.differences().count();
        let verdict = match (differing, self.unchecked.is_empty()) {
            (0, true) => format!("same in {}", count(self.rows.len(), "observation")),
            (0, false) => format!(
                "same in {} before it could not be checked further",
                count(self.rows.len(), "observation")
            ),
            (some, _) => count(some, "difference"),
        };
        writeln!(f, "\n{}: {verdict}", self.case)?;
        self.rows.iter().try_for_each(|row| write!(f, "{row}"))
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = match (self.is_alike(), &self.known) {
            (true, _) => "  ".to_owned(),
            (false, None) => "! ".to_owned(),
            (false, Some(id)) => format!("~ known as {id} "),
        };
        let side = |side: &Option<String>| side.clone().unwrap_or_else(|| "-".to_owned());
        writeln!(f, "{mark}{}", self.what)?;
        let (left, right) = (wrapped(&side(&self.left)), wrapped(&side(&self.right)));
        for line in 0..left.len().max(right.len()) {
            let of = |lines: &[String]| lines.get(line).cloned().unwrap_or_default();
            let (left, right) = (of(&left), of(&right));
            writeln!(f, "    {left:0$} | {right}", WIDTH - 4)?;
        }
        Ok(())
    }
}

/// Breaks a text into lines that fit one side.
fn wrapped(text: &str) -> Vec<String> {
    let lines = text.lines().flat_map(|line| {
        let characters = Vec::from_iter(line.chars());
        let pieces = characters.chunks(WIDTH - 4).map(String::from_iter);
        Vec::from_iter(pieces)
    });
    match Vec::from_iter(lines) {
        empty if empty.is_empty() => vec![String::new()],
        lines => lines,
    }
}

/// Spells a number with its noun: `1 case`, `2 cases`.
fn count(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        many => format!("{many} {noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CaseRun, Ledger, Observation, Outcome, Run};
    use super::*;

    #[test]
    fn both_sides_are_printed_and_new_differences_are_marked() {
        let run = |target: &str, value: &str| Run {
            target: target.to_owned(),
            cases: vec![CaseRun {
                case: "a::b".to_owned(),
                outcome: Outcome::Ok,
                observations: vec![Observation {
                    what: "a message".to_owned(),
                    value: value.to_owned(),
                    ..Observation::default()
                }],
            }],
        };
        let comparison = Comparison::new(run("here", "1"), run("there", "2"), &Ledger::default());
        let printed = comparison.to_string();
        for expected in [
            "a::b: 1 difference\n! a message\n    1 ",
            "| 2\n",
            "\n1 case, 2 observations: 1 difference new, 0 known, 0 cases not checked\n",
        ] {
            assert!(printed.contains(expected), "{printed}");
        }
    }
}
