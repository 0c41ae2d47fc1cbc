//! The table of observed behaviours (`OBSERVED.md`): every number has its row, every case that it names is there.

use std::fs;
use std::path::Path;

const TABLE: &str = include_str!("OBSERVED.md");
/// How many behaviours there are.
const BEHAVIOURS: usize = 72;

#[test]
fn every_observed_behaviour_has_a_row_and_every_case_exists() {
    // This package stands at the root of the repository, or one level below.
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own
        .ancestors()
        .find(|path| path.join("emulator/src").is_dir());
    let root = root.expect("the root of the repository");
    let rows: Vec<Vec<&str>> = TABLE
        .lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|row| row.split(" | ").collect())
        .filter(|row: &Vec<&str>| row[0].parse::<usize>().is_ok())
        .collect();
    let numbers: Vec<usize> = rows.iter().filter_map(|row| row[0].parse().ok()).collect();
    assert_eq!(numbers, Vec::from_iter(1..=BEHAVIOURS));
    for row in rows {
        let [number, _, cases, _] = row[..] else {
            panic!("four columns: {row:?}");
        };
        for case in cases.split("<br>") {
            let (file, name) = case.trim_matches('`').split_once("::").expect(case);
            let text = fs::read_to_string(root.join(file)).expect(file);
            let is_there = ["fn", "def", "function", "func"]
                .iter()
                .any(|word| text.contains(&format!("{word} {name}(")));
            assert!(is_there, "{number}: no {name} in {file}");
        }
    }
}
