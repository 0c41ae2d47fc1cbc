//! Where inputs begin: the fixtures of the repository.

use std::fs;
use std::path::{Path, PathBuf};

/// The contents of all files of a folder of fixtures that end like this, in the order of their names.
pub(crate) fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let entries = fs::read_dir(root.join(folder)).expect("a folder of fixtures");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    paths.retain(|path| path.to_string_lossy().ends_with(ending));
    paths
        .iter()
        .map(|path| fs::read(path).expect("a fixture"))
        .collect()
}

/// The lines of such files up to the first bar, which separates cases of filters.
pub(crate) fn cases(folder: &str) -> Vec<Vec<u8>> {
    let texts = files(folder, ".txt");
    let texts = texts.iter().map(|bytes| String::from_utf8_lossy(bytes));
    let mut cases = Vec::new();
    for text in texts {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let conditions = lines.filter_map(|line| line.split(" | ").next());
        cases.extend(conditions.map(|case| case.as_bytes().to_vec()));
    }
    cases.retain(|case| !case.is_empty());
    cases
}
