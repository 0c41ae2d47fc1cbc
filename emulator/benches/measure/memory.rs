//! Resident memory: of an emulator that has nothing to do, and of each message that it keeps.

use std::io;
use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::message;
use crate::process::Emulator;
use crate::report::{Limit, Report};
use crate::sender::Sender;
use crate::statistics::Rounds;
use crate::usage::resident;

/// What is kept settles within this time.
const REST: Duration = Duration::from_millis(200);
const MEGABYTE: f64 = 1e6;
const OVERHEAD: Limit = Limit::AtMost(400.0);

/// One way of filling a queue.
#[derive(Debug, Clone, Copy)]
struct Filling {
    body: usize,
    messages: u32,
    in_flight: u32,
}

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let mut idle = Rounds::default();
    for _ in 0..effort.rounds() {
        let emulator = Emulator::start()?;
        thread::sleep(REST);
        idle.push(resident(emulator.pid())? as f64 / MEGABYTE);
    }
    report.judge("idle", &idle, " MB", Limit::AtMost(10.0));

    let many = effort.pick(1_000, 200_000);
    let large = Filling {
        body: 1024,
        messages: many,
        in_flight: 1000,
    };
    let small = Filling { body: 100, ..large };
    let trickle = Filling {
        messages: many / 2,
        in_flight: 1,
        ..small
    };
    let overhead = overheads(effort, large)?;
    report.judge(
        "beside each queued message of 1 KiB",
        &overhead,
        " bytes",
        OVERHEAD,
    );
    let overhead = overheads(effort, small)?;
    report.judge(
        "beside each queued message of 100 bytes",
        &overhead,
        " bytes",
        OVERHEAD,
    );
    let overhead = overheads(effort, trickle)?;
    report.judge(
        "the same, one message in each write",
        &overhead,
        " bytes",
        OVERHEAD,
    );
    Ok(())
}

fn overheads(effort: Effort, filling: Filling) -> io::Result<Rounds> {
    (0..effort.rounds())
        .map(|_| overhead(filling))
        .collect::<io::Result<_>>()
}

/// What a fresh emulator has grown by for each message, beyond the message itself. All that came with filling counts:
/// the connection, its buffers, the record of what happened.
fn overhead(filling: Filling) -> io::Result<f64> {
    let message = message(filling.body, None);
    let emulator = Emulator::start()?;
    thread::sleep(REST);
    let before = resident(emulator.pid())?;
    let mut sender = Sender::attach(emulator.amqp, &message)?;
    sender.send(filling.messages, filling.in_flight)?;
    thread::sleep(REST);
    let grown = resident(emulator.pid())?.saturating_sub(before) as f64;
    Ok(grown / f64::from(filling.messages) - message.len() as f64)
}
