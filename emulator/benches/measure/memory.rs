//! Resident memory of an idle emulator, and of each message in it.
//!
//! Also reads the resources of a process on Linux: processor time by the scheduler's count, and resident memory.

use std::time::Duration;
use std::{fs, io, thread};

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::message;
use crate::process::Emulator;
use crate::report::Report;
use crate::sender::Sender;
use crate::statistics::Rounds;

/// Memory settles within this time.
const REST: Duration = Duration::from_millis(200);
const MEGABYTE: f64 = 1e6;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let mut idle = Rounds::default();
    for _ in 0..effort.rounds() {
        let emulator = Emulator::start()?;
        thread::sleep(REST);
        idle.push(resident(emulator.pid())? as f64 / MEGABYTE);
    }
    report.at_most("idle", &idle, " MB", 10.0);

    let messages = effort.pick(1_000, 200_000);
    let overheads = (0..effort.rounds()).map(|_| overhead(messages));
    let overheads = overheads.collect::<io::Result<_>>()?;
    let what = "beside each queued message of 1 KiB";
    report.at_most(what, &overheads, " bytes", 400.0);
    Ok(())
}

/// Returns by how much a fresh emulator has grown per message, beyond the message itself. Everything counts: the connection,
/// its buffers, the record.
fn overhead(messages: u32) -> io::Result<f64> {
    let message = message(1024, None);
    let emulator = Emulator::start()?;
    thread::sleep(REST);
    let before = resident(emulator.pid())?;
    let mut sender = Sender::attach(emulator.amqp, &message)?;
    sender.send(messages, 1000)?;
    thread::sleep(REST);
    let grown = resident(emulator.pid())?.saturating_sub(before) as f64;
    Ok(grown / f64::from(messages) - message.len() as f64)
}

/// Returns the processor time of all threads of a process. Exact for sleeping threads: let them settle first.
pub(crate) fn processor_time(pid: u32) -> io::Result<Duration> {
    let mut total = 0;
    for task in fs::read_dir(format!("/proc/{pid}/task"))? {
        let text = fs::read_to_string(task?.path().join("schedstat"))?;
        let ran = text.split_whitespace().next();
        total += ran.and_then(|ran| ran.parse::<u64>().ok()).unwrap_or(0);
    }
    Ok(Duration::from_nanos(total))
}

/// Resident memory in bytes.
pub(crate) fn resident(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next());
    let kib = kib.and_then(|kib| kib.parse::<u64>().ok());
    kib.map(|kib| kib * 1024)
        .ok_or_else(|| io::Error::other("the system does not tell VmRSS"))
}
