//! Medians of few rounds with their extremes, and percentiles of many durations.

use std::fmt;
use std::io;

use hdrhistogram::Histogram;

/// Maximum of a recorded duration, in nanoseconds.
const LONGEST: u64 = 60_000_000_000;

/// One number with the values of its rounds.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rounds(Vec<f64>);

impl Rounds {
    /// Adds what one round gave.
    pub(crate) fn push(&mut self, value: f64) {
        self.0.push(value);
    }

    /// The middle one.
    pub(crate) fn median(&self) -> f64 {
        let sorted = self.sorted();
        sorted.get(sorted.len() / 2).copied().unwrap_or(f64::NAN)
    }

    /// The least and the most.
    pub(crate) fn extremes(&self) -> (f64, f64) {
        let sorted = self.sorted();
        let at = |value: Option<&f64>| value.copied().unwrap_or(f64::NAN);
        (at(sorted.first()), at(sorted.last()))
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }
}

impl Extend<f64> for Rounds {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, values: I) {
        self.0.extend(values);
    }
}

impl FromIterator<f64> for Rounds {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        Self(values.into_iter().collect())
    }
}

/// Median and extremes, as in `0.52 [0.48..0.55]`.
impl fmt::Display for Rounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sorted = self.sorted();
        let Some((least, most)) = sorted.first().zip(sorted.last()) else {
            return f.write_str("nothing");
        };
        write!(f, "{}", number(self.median()))?;
        if sorted.len() > 1 {
            write!(f, " [{}..{}]", number(*least), number(*most))?;
        }
        Ok(())
    }
}

/// Durations to three digits, in nanoseconds or more.
pub(crate) fn histogram() -> io::Result<Histogram<u64>> {
    Histogram::new_with_max(LONGEST, 3).map_err(io::Error::other)
}

/// A number with as many digits as mean something.
pub(crate) fn number(value: f64) -> String {
    match value.abs() {
        size if size < 10.0 => format!("{value:.2}"),
        size if size < 100.0 => format!("{value:.1}"),
        size if size < 10_000.0 => format!("{value:.0}"),
        _ => thousands(value.round() as i64),
    }
}

fn thousands(value: i64) -> String {
    let digits = value.unsigned_abs().to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0 { format!("-{text}") } else { text }
}
