//! The examples do what they say.

use std::process::Command;

use crate::built;

/// Runs an example and returns what it printed.
fn run(name: &str) -> String {
    let output = Command::new(built::program(&format!("examples/{name}")))
        .output()
        .unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{printed}\n{complaints}");
    printed
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
fn rstest_fixture() {
    assert!(run("rstest_fixture").contains("cargo test --example rstest_fixture"));
}
