//! Words for numbers and times, so that every message of the harness spells them alike.

use std::time::Duration;

/// Names that are compared with one that is wanted; what comes behind them is as unlikely as can be. Each takes its length
/// squared, and a queue may have any number of messages.
pub(crate) const COMPARED: usize = 256;
/// Characters of a name that are compared: as many as an id of a message has.
const LONGEST: usize = 128;

/// Spells a duration as seconds, with as many decimals as it needs: `5 s`, `0.25 s`.
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

/// Spells a duration in whole seconds that have begun, for times that two clocks measured: `600 s`, also when a
/// little of it has passed.
pub fn rounded_seconds(duration: Duration) -> String {
    // By so much the clocks may differ the other way.
    const SLACK: Duration = Duration::from_millis(50);
    let left = duration.saturating_sub(SLACK);
    format!("{:.0} s", left.as_secs_f64().ceil())
}

/// Spells a duration in ISO 8601, the form of the official configuration file: `PT1M30S`.
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

/// Spells a number with its noun: `1 message`, `2 messages`.
pub fn count(number: u64, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        many => format!("{many} {noun}s"),
    }
}

/// How many were found, as a sentence says it.
pub(crate) fn found(number: u64) -> String {
    match number {
        0 => "none".to_owned(),
        some => some.to_string(),
    }
}

/// How many characters of a name are others, left out or added.
fn edits(wanted: &str, name: &str) -> usize {
    let cut = |text: &str| text.chars().take(LONGEST).collect::<String>();
    strsim::levenshtein(&cut(wanted), &cut(name))
}

/// Whether a name is likely to be meant by another: at most half of it is different, case aside.
pub fn is_near(wanted: &str, name: &str) -> bool {
    let (wanted, name) = (wanted.to_lowercase(), name.to_lowercase());
    let length = |text: &str| text.chars().take(LONGEST).count();
    let longest = length(&wanted).max(length(&name));
    edits(&wanted, &name) * 2 <= longest
}

/// Orders names by how few edits turn them into `wanted`, case aside.
pub fn nearest_first(wanted: &str, names: Vec<String>) -> Vec<String> {
    let wanted = wanted.to_lowercase();
    let keys = names.iter().enumerate();
    let keys = keys.map(|(at, name)| match at < COMPARED {
        true => (edits(&wanted, &name.to_lowercase()), (0, 0)),
        false => (usize::MAX, (0, 0)),
    });
    sorted(keys.collect(), names)
}

/// Sorts by keys that were made before. All that is sorted here has keys of one type, so that sorting is compiled once.
pub(crate) fn sorted<T>(keys: Vec<(usize, (usize, usize))>, items: Vec<T>) -> Vec<T> {
    let mut order = Vec::from_iter(0..keys.len());
    order.sort_by_key(|&index| keys[index]);
    let mut items = Vec::from_iter(items.into_iter().map(Some));
    let sorted = order.into_iter();
    sorted.filter_map(|index| items[index].take()).collect()
}

/// How unlikely a name is to be meant by another: by its edits, and where these are equal by what both begin with.
pub fn distance(wanted: &str, name: &str) -> (usize, usize) {
    let pairs = wanted.chars().zip(name.chars());
    let same = pairs.take_while(|(wanted, found)| wanted == found).count();
    (edits(wanted, name), usize::MAX - same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_or_comes_behind_many_is_not_compared() {
        let long = "x".repeat(1_000_000);
        assert_eq!(distance(&long, "orders").0, LONGEST);
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
    fn what_is_left_reads_as_what_was_asked_for() {
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
    fn the_nearest_name_comes_first() {
        let names = ["billing", "orders", "audit"].map(str::to_owned).to_vec();
        assert_eq!(nearest_first("Ordres", names)[0], "orders");
        assert!(is_near("ordrs", "orders") && is_near("Orders", "orders"));
        assert!(!is_near("invoices", "orders"));
    }
}
