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
fn deadline() {
    assert_eq!(
        run("deadline"),
        "in-time: done by way of jobs\ntoo-late: done by way of slow\n"
    );
}

#[test]
fn repair() {
    assert_eq!(
        run("repair"),
        "o-1-mended: 12.50\no-3-mended: 7.00\ndead letters: 1 active (1 deferred)\n"
    );
}

#[test]
fn session_workflow() {
    assert_eq!(
        run("session_workflow"),
        "placed\nsomebody else goes on\nplaced again, which changes nothing\npaid\nshipped\n"
    );
}

#[test]
fn worker() {
    assert_eq!(
        run("worker"),
        "o-1 is charged\nthe connection was lost\n\
         o-2 is charged\nthe connection was lost\n\
         o-3 is charged\n\
         a minute later\no-1 was charged before\n"
    );
}

/// On a slow machine more rows may be sent twice than were meant to be, and none is stored twice all the same.
#[test]
fn outbox() {
    let printed = run("outbox");
    for line in [
        "row-1 was not acknowledged",
        "row-2 was not acknowledged",
        "row-2: duplicate-dropped",
    ] {
        assert!(printed.lines().any(|printed| printed == line), "{printed}");
    }
    assert!(printed.contains("\nplaced\npaid\nshipped\n"), "{printed}");
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
    // So many ways there and back are the least, whatever the machine: a hundred, ten, one.
    assert!(one >= 8.0, "{printed}");
    assert!(ten >= 0.8, "{printed}");
    assert!(all >= 0.08, "{printed}");
    assert!(ten < one && all < one, "{printed}");
}

#[test]
fn first_test() {
    assert!(run("first_test").contains("cargo test --example first_test"));
}
