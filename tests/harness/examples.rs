//! The examples do what they say.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use servicebus_test_support::built;

/// Most lines of an example: what is longer teaches two things.
const MOST_LINES: usize = 60;

/// Runs an example and returns what it printed.
fn run(name: &str) -> String {
    let output = Command::new(built::program(&format!("examples/{name}")))
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{stderr}");
    printed
}

#[test]
fn each_example_is_short_and_listed() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let list = fs::read_to_string(directory.join("README.md")).unwrap();
    for entry in fs::read_dir(&directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        assert!(
            name == "README.md" || list.contains(&format!("]({name})")),
            "examples/README.md does not list {name}"
        );
        for file in rust_files(&path) {
            let lines = fs::read_to_string(&file).unwrap().lines().count();
            assert!(
                lines <= MOST_LINES,
                "{} has {lines} lines, {MOST_LINES} are allowed",
                file.display()
            );
        }
    }
}

/// The file, or those of the directory, that are in Rust.
fn rust_files(path: &Path) -> Vec<PathBuf> {
    let files = match path.is_dir() {
        true => Vec::from_iter(fs::read_dir(path).unwrap().map(|file| file.unwrap().path())),
        false => vec![path.to_owned()],
    };
    let is_rust = |file: &PathBuf| file.extension().is_some_and(|extension| extension == "rs");
    files.into_iter().filter(is_rust).collect()
}

#[test]
fn quickstart() {
    assert_eq!(
        run("quickstart"),
        "received \"hello\"\nthe queue is empty and one message was completed\n"
    );
}

#[test]
fn dead_letter() {
    let mut expected: String = (1..=10).map(|n| format!("delivery {n}\n")).collect();
    expected += "no message is left\n";
    expected += "dead-lettered: MaxDeliveryCountExceeded, Message could not be consumed after 10 delivery attempts.\n";
    assert_eq!(run("dead_letter"), expected);
}

#[test]
fn time_to_live() {
    assert_eq!(
        run("time_to_live"),
        "after 59 minutes: 1 active\nafter 61 minutes: 1 dead-lettered\nreason: TTLExpiredException\n"
    );
}

#[test]
fn scheduled_and_deferred() {
    assert_eq!(
        run("scheduled_and_deferred"),
        "at first: 2 scheduled\nafter the payment: 1 active (1 deferred), 1 scheduled\nout of turn: an order\nin its time: good morning\n"
    );
}

#[test]
fn deadline() {
    assert_eq!(run("deadline"), "in-time is done\ntoo-late is done\n");
}

#[test]
fn repair() {
    assert_eq!(run("repair"), "orders: 1 active, 1 dead-lettered\n");
}

#[test]
fn session_workflow() {
    assert_eq!(
        run("session_workflow"),
        "placed\nanother worker continues\npaid\nshipped\n"
    );
}

#[test]
fn early_steps() {
    assert_eq!(run("early_steps"), "placed\npaid\nshipped\n");
}

#[test]
fn worker() {
    assert_eq!(
        run("worker"),
        "a minute later, when the lock of o-1 ends\ncharged once each: o-1, o-2, o-3\n"
    );
}

#[test]
fn restart() {
    assert_eq!(run("restart"), "charged once each: o-1, o-2, o-3\n");
}

/// On a slow machine more rows may be sent twice than were meant to be, and none is stored twice all the same.
#[test]
fn outbox() {
    let printed = run("outbox");
    for line in ["row-1 was not acknowledged", "row-2 was not acknowledged"] {
        assert!(printed.lines().any(|printed| printed == line), "{printed}");
    }
    assert!(printed.ends_with("\nplaced\npaid\nshipped\n"), "{printed}");
}

#[test]
fn send_strategies() {
    let printed = run("send_strategies");
    let took = |at_once: &str| {
        let mut lines = printed.lines();
        let seconds = lines.find_map(|line| {
            let seconds = line.strip_prefix(&format!("{at_once} at once: "))?;
            seconds.strip_suffix(" s")?.parse::<f64>().ok()
        });
        seconds.unwrap_or_else(|| panic!("{printed}"))
    };
    let [one, ten, all] = ["1", "10", "100"].map(took);
    // So many ways there and back are the least on any machine: a hundred, ten, one.
    assert!(one >= 8.0, "{printed}");
    assert!(ten >= 0.8, "{printed}");
    assert!(all >= 0.08, "{printed}");
    assert!(ten < one && all < one, "{printed}");
}

#[test]
fn first_test() {
    assert!(run("first_test").contains("cargo test --example first_test"));
}
