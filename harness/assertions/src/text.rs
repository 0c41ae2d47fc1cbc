//! Phrases for numbers and times, so that all messages of the harness spell them alike.

use std::borrow::Cow;
use std::time::Duration;

/// The number of names that are compared with a wanted one; later ones count as least similar. A comparison takes time
/// quadratic in the length, and a queue may have any number of messages.
pub(crate) const COMPARED: usize = 256;
/// The number of compared characters: the maximum length of a message id.
const MAX_COMPARED: usize = 128;

/// Escapes control characters, which would break the lines of a failure.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    match text.contains(char::is_control) {
        false => Cow::Borrowed(text),
        true => Cow::Owned(text.chars().fold(String::new(), |mut line, next| {
            match next.is_control() {
                true => line.extend(next.escape_default()),
                false => line.push(next),
            }
            line
        })),
    }
}

/// Formats a duration in seconds, with the necessary decimals: `5 s`, `0.25 s`.
pub fn seconds(duration: Duration) -> String {
    match duration.subsec_millis() {
        0 => format!("{} s", duration.as_secs()),
        millis => {
            let decimals = format!("{millis:03}");
            format!(
                "{}.{} s",
                duration.as_secs(),
                decimals.trim_end_matches('0')
            )
        }
    }
}

/// Formats a duration that two clocks measured in seconds, rounded up: `600 s`, also when a little of it has passed.
pub fn rounded_seconds(duration: Duration) -> String {
    // The tolerance for clocks that differ the other way.
    const SLACK: Duration = Duration::from_millis(50);
    let left = duration.saturating_sub(SLACK);
    format!("{:.0} s", left.as_secs_f64().ceil())
}

/// Formats a duration in ISO 8601, as the official configuration file has it: `PT1M30S`.
pub fn iso8601(duration: Duration) -> String {
    let total = duration.as_secs();
    let part = |amount: u64, unit: &str| match amount {
        0 => String::new(),
        amount => format!("{amount}{unit}"),
    };
    let last = match duration.subsec_millis() {
        0 => part(total % 60, "S"),
        millis => format!("{}.{millis:03}S", total % 60),
    };
    let days = part(total / 86_400, "D");
    let time = part(total / 3_600 % 24, "H") + &part(total / 60 % 60, "M") + &last;
    match (days.is_empty(), time.is_empty()) {
        (true, true) => "PT0S".to_owned(),
        (false, true) => format!("P{days}"),
        (_, false) => format!("P{days}T{time}"),
    }
}

/// Formats a number with its noun: `1 message`, `2 messages`.
pub fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        many => format!("{many} {noun}s"),
    }
}

/// Formats a found number: `none` for zero.
pub(crate) fn found(number: u64) -> String {
    match number {
        0 => "none".to_owned(),
        some => some.to_string(),
    }
}

/// Returns the edit distance: characters that are changed, left out or added.
fn edit_distance(wanted: &str, name: &str) -> usize {
    let cut = |text: &str| text.chars().take(MAX_COMPARED).collect::<String>();
    strsim::levenshtein(&cut(wanted), &cut(name))
}

/// Returns whether a name may be meant by another: at most half of it differs, case aside.
pub fn is_near(wanted: &str, name: &str) -> bool {
    let (wanted, name) = (wanted.to_lowercase(), name.to_lowercase());
    let length = |text: &str| text.chars().take(MAX_COMPARED).count();
    let longest = length(&wanted).max(length(&name));
    edit_distance(&wanted, &name) * 2 <= longest
}

/// Orders names by edit distance from `wanted`, case aside.
pub fn nearest_first(wanted: &str, names: Vec<String>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let keys = names.iter().enumerate();
    let keys = keys.map(|(at, name)| match at < COMPARED {
        true => (edit_distance(&wanted, &name.to_lowercase()), (0, 0)),
        false => (usize::MAX, (0, 0)),
    });
    sorted(keys.collect(), names)
}

/// Sorts by precomputed keys. All callers have keys of one type, so that sorting is compiled once.
pub(crate) fn sorted<T>(keys: Vec<(usize, (usize, usize))>, items: Vec<T>) -> Vec<T> {
    let order = order(&keys);
    let mut items = Vec::from_iter(items.into_iter().map(Some));
    let sorted = order.into_iter();
    sorted.filter_map(|index| items[index].take()).collect()
}

fn order(keys: &[(usize, (usize, usize))]) -> Vec<usize> {
    let mut order = Vec::from_iter(0..keys.len());
    order.sort_by_key(|&index| keys[index]);
    order
}

/// Returns how different two names are: by edits, then by the length of their common prefix.
pub fn distance(wanted: &str, name: &str) -> (usize, usize) {
    let pairs = wanted.chars().zip(name.chars());
    let same = pairs.take_while(|(wanted, found)| wanted == found).count();
    (edit_distance(wanted, name), usize::MAX - same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(one_line("o \"17\" é🦀"), "o \"17\" é🦀");
        assert_eq!(one_line("🦀\n1\u{1b}[31m"), "🦀\\n1\\u{1b}[31m");
    }

    #[test]
    fn long_and_late_names_are_not_compared() {
        let long = "x".repeat(1_000_000);
        assert_eq!(distance(&long, "orders").0, MAX_COMPARED);
        assert!(is_near(&long, &format!("{long}y")));
        let mut names = vec!["other".to_owned(); COMPARED];
        names.push("orders".into());
        assert_eq!(nearest_first("orders", names)[COMPARED], "orders");
    }

    #[test]
    fn durations_read_as_seconds() {
        assert_eq!(seconds(Duration::from_secs(5)), "5 s");
        assert_eq!(seconds(Duration::from_millis(250)), "0.25 s");
        assert_eq!(seconds(Duration::from_millis(60_007)), "60.007 s");
    }

    #[test]
    fn remaining_seconds_are_rounded_up() {
        let cases = [
            (600_002, "600 s"),
            (599_100, "600 s"),
            (598_900, "599 s"),
            (1, "0 s"),
        ];
        for (millis, expected) in cases {
            assert_eq!(rounded_seconds(Duration::from_millis(millis)), expected);
        }
    }

    #[test]
    fn durations_read_as_iso_8601() {
        let cases = [
            (0, "PT0S"),
            (60, "PT1M"),
            (90, "PT1M30S"),
            (3_600, "PT1H"),
            (86_400, "P1D"),
            (90_061, "P1DT1H1M1S"),
        ];
        for (secs, expected) in cases {
            assert_eq!(iso8601(Duration::from_secs(secs)), expected);
        }
        assert_eq!(iso8601(Duration::from_millis(1_500)), "PT1.500S");
    }

    #[test]
    fn the_most_similar_name_comes_first() {
        let names = ["billing", "orders", "audit"].map(str::to_owned).to_vec();
        assert_eq!(nearest_first("Ordres", names)[0], "orders");
        assert!(is_near("ordrs", "orders") && is_near("Orders", "orders"));
        assert!(!is_near("invoices", "orders"));
    }
}
