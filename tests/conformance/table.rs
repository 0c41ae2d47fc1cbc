//! The table of observed behaviours (`OBSERVED.md`): every number has its row, every case that it names is there, and an
//! SDK shows it unless the row says why none does.

use std::fs;
use std::path::Path;

const TABLE: &str = include_str!("OBSERVED.md");
/// How many behaviours there are.
const BEHAVIOURS: usize = 72;
/// Where cases go through published SDKs.
const OF_SDKS: [&str; 5] = [
    "tests/sdks/python/",
    "tests/sdks/javascript/",
    "tests/sdks/go/",
    "tests/sdks/java/",
    "tests/conformance/",
];
/// Conformance cases through a plain AMQP client.
const OF_NO_SDK: &str = "tests/conformance/transactions";

#[test]
fn every_observed_behaviour_has_a_row_and_every_case_exists() {
    let rows = rows();
    let numbers: Vec<usize> = rows.iter().filter_map(|row| row[0].parse().ok()).collect();
    assert_eq!(numbers, Vec::from_iter(1..=BEHAVIOURS));
    for row in rows {
        for (file, name) in cases(&row) {
            let text = fs::read_to_string(root().join(file)).expect(file);
            let is_there = ["fn", "def", "function", "func", "void"]
                .iter()
                .any(|word| text.contains(&format!("{word} {name}(")));
            assert!(is_there, "{}: no {name} in {file}", row[0]);
        }
    }
}

#[test]
fn every_row_has_a_case_of_an_sdk_or_a_reason_for_its_absence() {
    for row in rows() {
        let is_shown = cases(&row).iter().any(|(file, _)| {
            !file.starts_with(OF_NO_SDK) && OF_SDKS.iter().any(|sdk| file.starts_with(sdk))
        });
        let has_reason = !row[4].is_empty();
        assert!(
            is_shown != has_reason,
            "{}: an SDK shows it ({is_shown}), or there is a reason ({has_reason})",
            row[0]
        );
    }
}

/// The columns of each row: number, behaviour, cases, source, reason.
fn rows() -> Vec<[&'static str; 5]> {
    TABLE
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").map(str::trim).collect::<Vec<_>>())
        .filter(|row| row[0].parse::<usize>().is_ok())
        .map(|row| row.try_into().expect("five columns"))
        .collect()
}

/// The file and the function of each case.
fn cases(row: &[&'static str; 5]) -> Vec<(&'static str, &'static str)> {
    let cases = row[2].split("<br>");
    cases
        .map(|case| case.trim_matches('`').split_once("::").expect(case))
        .collect()
}

fn root() -> &'static Path {
    // This package stands at the root of the repository, or one level below.
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own
        .ancestors()
        .find(|path| path.join("emulator/src").is_dir());
    root.expect("the root of the repository")
}
