//! What the READMEs show beside their doctests is code that is run elsewhere, word by word.
//!
//! What users of the harness build: no dependency that only other features need.
//!
//! How long a build takes depends on the machine; what it consists of does not.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

#[test]
fn both_readmes_have_the_same_first_test() {
    let [first, other] = ["README.md", "harness/README.md"].map(|readme| {
        let (install, test) = (snippet(readme, "sh"), snippet(readme, "rust"));
        (install, test)
    });
    assert_eq!(first, other);
}

#[test]
fn the_readmes_tests_in_other_languages_are_tested() {
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
fn the_exploration_examples_are_tested() {
    let page = "harness/EXPLORATION.md";
    let rust = snippet(page, "rust,ignore");
    let (imports, test) = rust.split_once("#[test]").unwrap();
    let tested = file("tests/explore/page.rs");
    assert!(tested.contains(imports) && tested.contains(test));
    let tested = file("examples/pytest/test_exploration.py");
    assert!(tested.contains(&snippet(page, "python")));
}

#[test]
fn install_commands_have_the_workspace_versions() {
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

/// What must stay out, and whose it is.
const EXCLUDED: [(&str, &str); 11] = [
    ("azservicebus", "the feature of that name"),
    ("openssl", "azservicebus"),
    ("reqwest", "azservicebus"),
    ("testcontainers", "the feature container"),
    ("bollard", "the feature container"),
    ("clap", "the binary of the emulator"),
    ("tracing-subscriber", "the binary of the emulator"),
    ("mimalloc", "the binary of the emulator"),
    ("regex-automata", "the binary of the emulator, and rstest"),
    ("rstest", "tests that want the fixture"),
    ("hdrhistogram", "benchmarks"),
];

/// What only an emulator is made of.
const EMULATOR: [&str; 6] = [
    "axum",
    "rcgen",
    "servicebus-amqp",
    "servicebus-emulator",
    "tokio-tungstenite",
    "yasna",
];

/// Built in two generations because of ring, the second on Windows alone.
const DUPLICATED: [&str; 2] = ["getrandom", "windows-sys"];

#[test]
fn the_harness_has_no_dependencies_of_other_parts() {
    let built = built(&[]);
    let names = Vec::from_iter(built.iter().filter_map(|built| built.split(' ').next()));
    assert!(names.contains(&"servicebus-emulator"), "{names:?}");
    for (name, whose) in EXCLUDED {
        assert!(!names.contains(&name), "{name} is for {whose}");
    }
    for pair in names.windows(2).filter(|pair| pair[0] == pair[1]) {
        let name = pair[0];
        assert!(
            DUPLICATED.contains(&name),
            "{name} is built in two generations"
        );
    }
}

#[test]
fn a_harness_that_starts_an_installed_emulator_builds_none() {
    let built = built(&["--no-default-features"]);
    let names = Vec::from_iter(built.iter().filter_map(|built| built.split(' ').next()));
    assert!(names.contains(&"servicebus-config"), "{names:?}");
    for name in EMULATOR {
        assert!(!names.contains(&name), "{name} is the emulator's");
    }
}

#[test]
fn excluded_dependencies_exist_elsewhere() {
    let lock = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.lock");
    let lock = fs::read_to_string(lock).unwrap();
    for name in EXCLUDED.map(|(name, _)| name).into_iter().chain(EMULATOR) {
        let line = format!("name = \"{name}\"");
        assert!(lock.lines().any(|found| found == line), "{name} is gone");
    }
}

/// The crates of a build of the harness with these options, those included that run in it, as `name v1.2.3`, in order.
fn built(options: &[&str]) -> Vec<String> {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args([
        "tree",
        "--locked",
        "--package=servicebus-harness",
        "--edges=normal,build",
        "--prefix=none",
        "--format={p}",
    ]);
    cargo.args(options);
    let output = cargo.output().expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let listed = String::from_utf8(output.stdout).unwrap();
    let words = listed.lines().map(str::split_whitespace);
    let mut built = Vec::from_iter(words.map(|line| Vec::from_iter(line.take(2)).join(" ")));
    built.sort();
    built.dedup();
    built
}
