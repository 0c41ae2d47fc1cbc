//! What the READMEs show beside their doctests is code that is run elsewhere, word by word.

use std::{fs, path::Path};

#[test]
fn both_readmes_begin_with_the_same_test() {
    let [first, other] = ["README.md", "harness/README.md"].map(|readme| {
        let (install, test) = (snippet(readme, "sh"), snippet(readme, "rust"));
        (install, test)
    });
    assert_eq!(first, other);
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
    let install = snippet("README.md", "sh");
    let workspace = file("Cargo.toml");
    for name in ["azservicebus", "rstest", "tokio"] {
        let (_, version) = install.split_once(&format!(" {name}@")).unwrap();
        let version = version.split_whitespace().next().unwrap();
        let mut declared = workspace
            .lines()
            .filter(|line| line.starts_with(&format!("{name} = ")));
        let declared = declared.next().unwrap();
        assert!(
            declared.contains(&format!("\"{version}")),
            "{name} {version}: {declared}"
        );
    }
}

/// The first snippet of a language.
fn snippet(readme: &str, language: &str) -> String {
    let readme = file(readme);
    let (_, rest) = readme.split_once(&format!("```{language}\n")).unwrap();
    let (snippet, _) = rest.split_once("```").unwrap();
    snippet.to_owned()
}

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}
