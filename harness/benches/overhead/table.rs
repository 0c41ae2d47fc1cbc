//! The table: each number, its limit, and whether it holds.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::process::ExitCode;

use serde_json::json;

/// A line of the table.
pub(crate) struct Row {
    pub(crate) what: &'static str,
    /// What each turn gave; or why there was none.
    pub(crate) measured: Result<Vec<f64>, String>,
    /// The median may be at most this.
    pub(crate) limit: f64,
    pub(crate) unit: &'static str,
}

/// Prints a table in Markdown, and says whether every limit is known to hold.
pub(crate) fn print(rows: &[Row]) -> ExitCode {
    println!("| a test with a namespace of its own | measured | limit | holds |");
    println!("| --- | --- | --- | --- |");
    for row in rows {
        println!("{}", row.line());
    }
    match rows.iter().all(|row| row.holds() == Some(true)) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Adds the rows to what the emulator's benchmarks keep, of which plots are drawn.
pub(crate) fn save(rows: &[Row]) -> io::Result<()> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../emulator/benches/history.jsonl"
    );
    let date = jiff::Timestamp::now().strftime("%Y-%m-%d").to_string();
    let mut file = OpenOptions::new().create(true).append(true).open(path)?;
    for row in rows {
        let Ok(values) = &row.measured else { continue };
        let sorted = sorted(values);
        let entry = json!({
            "date": date,
            "section": "A test",
            "what": row.what,
            "unit": row.unit.trim(),
            "median": sorted[sorted.len() / 2],
            "least": sorted.first(),
            "most": sorted.last(),
        });
        writeln!(file, "{entry}")?;
    }
    Ok(())
}

impl Row {
    fn line(&self) -> String {
        let holds = match self.holds() {
            Some(true) => "yes",
            Some(false) => "**no**",
            None => "?",
        };
        let measured = match &self.measured {
            Ok(values) => format!("{}{}", median_and_extremes(values), self.unit),
            Err(reason) => format!("not measured: {reason}"),
        };
        let limit = format!("≤ {}{}", self.limit, self.unit);
        format!("| {} | {measured} | {limit} | {holds} |", self.what)
    }

    /// Whether the limit holds, where it was measured.
    fn holds(&self) -> Option<bool> {
        let values = self.measured.as_ref().ok()?;
        Some(sorted(values).get(values.len() / 2)? <= &self.limit)
    }
}

/// As in `0.52 [0.48..0.55]`.
fn median_and_extremes(values: &[f64]) -> String {
    let sorted = sorted(values);
    match &sorted[..] {
        [] => "nothing".to_owned(),
        [least, .., most] => {
            let median = sorted[sorted.len() / 2];
            format!("{median:.2} [{least:.2}..{most:.2}]")
        }
        [only] => format!("{only:.2}"),
    }
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    sorted
}
