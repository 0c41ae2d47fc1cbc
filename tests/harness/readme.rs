//! What the READMEs show beside their doctests is code that is run elsewhere, to the letter.

use std::{fs, path::Path};

#[test]
fn the_first_test_is_that_of_the_example() {
    let example = file("examples/first_test/main.rs");
    let (_, tests) = example.split_once("mod tests {\n").unwrap();
    for readme in ["README.md", "harness/README.md"] {
        let snippet = snippet(readme, "rust");
        assert!(
            unindented(tests).contains(&snippet),
            "{readme} and examples/first_test/main.rs differ"
        );
    }
}

#[test]
fn the_tests_in_other_languages_are_those_of_the_projects() {
    let projects = [
        ("python", "examples/pytest/test_shop.py"),
        ("javascript", "examples/vitest/shop.test.js"),
    ];
    for (language, project) in projects {
        let snippet = snippet("harness/README.md", language);
        assert!(
            file(project).contains(&snippet),
            "harness/README.md and {project} differ"
        );
    }
}

#[test]
fn what_is_to_be_installed_has_the_versions_of_the_workspace() {
    let installed = snippet("harness/README.md", "toml");
    let workspace = file("Cargo.toml");
    let rstest = installed.lines().find(|line| line.starts_with("rstest = "));
    let rstest = rstest.expect("the fixture needs it");
    assert!(workspace.lines().any(|line| line == rstest), "{rstest}");
}

/// The first snippet of a language.
fn snippet(readme: &str, language: &str) -> String {
    let readme = file(readme);
    let (_, rest) = readme.split_once(&format!("```{language}\n")).unwrap();
    let (snippet, _) = rest.split_once("```").unwrap();
    snippet.to_owned()
}

fn unindented(text: &str) -> String {
    let lines = text.lines();
    let lines = lines.map(|line| line.strip_prefix("    ").unwrap_or(line));
    Vec::from_iter(lines).join("\n")
}

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}
