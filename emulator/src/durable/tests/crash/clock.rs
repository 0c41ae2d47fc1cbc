//! Clock changes between two starts: time went back, or many deadlines became due.

use std::time::Duration;

use servicebus_broker::{EntityDescription, EntityKind};

use super::*;

/// Messages that become due; `CRASH_DUE` overrides it.
const DUE: usize = 10_000;
/// Deadlines that run before other tasks get their turn.
const TURN: usize = 2048;

#[tokio::test(start_paused = true)]
async fn a_wall_clock_set_back_between_starts_does_not_set_back_time() {
    let file = SimulatedDisk::default();
    let first = begin(&file, 7_200_000);
    schedule(&first, 1, 60_000);
    let left_at = first.namespace.clock.now();
    write(first);
    // The machine's clock shows two hours less.
    let second = begin(&file, 0);
    let now = second.namespace.clock.now();
    assert!(now >= left_at, "{now:?} is before {left_at:?}");
    second.namespace.fire_due();
    assert_eq!(active(&second.namespace, "q"), 0, "it is not due");
    tokio::time::advance(Duration::from_secs(61)).await;
    second.namespace.fire_due();
    assert_eq!(active(&second.namespace, "q"), 1);
}

#[tokio::test(start_paused = true)]
async fn deadlines_due_between_two_starts_are_processed_in_steps() {
    let variable = std::env::var("CRASH_DUE").map(|text| text.parse().expect("CRASH_DUE"));
    let count = variable.unwrap_or(DUE);
    let file = SimulatedDisk::default();
    let first = begin(&file, 0);
    schedule(&first, count, 60_000);
    write(first);
    let second = begin(&file, 3_600_000);
    let mut before = active(&second.namespace, "q");
    // A start runs two such turns before anything is served.
    assert!(before <= 2 * TURN, "{before} at once at the start");
    while second.namespace.fire_due() {
        let now = active(&second.namespace, "q");
        assert!(now - before <= TURN, "{} in one turn", now - before);
        before = now;
    }
    assert_eq!(active(&second.namespace, "q"), count);
}

/// Starts a process with the queue `q`, whose machine's clock is `ahead` milliseconds ahead.
fn begin(file: &SimulatedDisk, ahead: i64) -> Process {
    let process = Process::start_at(file, DiskSpace::new(Box::new(())), ahead);
    let queue = EntityDescription {
        max_size_in_megabytes: 81_920,
        ..EntityDescription::default()
    };
    let made = (process.namespace).create(EntityKind::Queue, &path("q"), queue, Vec::new());
    // It exists at the second start.
    drop(made);
    process
}

/// Schedules messages that become due so many milliseconds later.
fn schedule(process: &Process, count: usize, later: i64) {
    let queue = process.namespace.entity(&path("q")).expect("it is there");
    let at = process.namespace.clock.now().as_millis() + later;
    let mut ids = Ids::new(Some(1), 1);
    for number in 0..count {
        let sent = Sent::new(&number.to_string()).scheduled_at(at).body("x");
        let message = Message::parse(sent.encode().into(), &mut ids).expect("it is legal");
        let sent = process
            .namespace
            .operate_as_broker(&queue, |queue, cx| queue.send(cx, message));
        sent.expect("there is room");
    }
}

/// Writes the pending batch, and ends.
fn write(process: Process) {
    let mut writer = ManualWriter {
        disk: process.disk,
        failures: process.failures,
        content: process.content,
        taken: Vec::new(),
    };
    writer.write(&process.store, 0, 0);
}
