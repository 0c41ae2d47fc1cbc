//! The maximum throughput of one sender and one receiver, each on a connection of its own, compared with the same bytes
//! through a TCP echo.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::{Transfers, message};
use crate::memory::processor_time;
use crate::process::{Echo, Emulator};
use crate::raw::Raw;
use crate::receiver::{Accept, Receiver};
use crate::report::Report;
use crate::sender::Sender;
use crate::statistics::Rounds;

/// Outstanding sends, and credit of the receiver.
const IN_FLIGHT: u32 = 1000;
const BODY: usize = 1024;
/// What is watched for changes.
pub(crate) const RATIO: &str = "emulator ÷ raw echo (aim 0.65)";
pub(crate) const COST: &str = "emulator ÷ raw echo, processor (aim 2)";
/// Messages accepted at once.
const RANGE: u32 = 64;
/// Threads become idle within this time, after which their processor time is complete.
pub(crate) const REST: Duration = Duration::from_millis(20);

/// The result of one round for one server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RoundResult {
    pub(crate) per_second: f64,
    /// Processor time of the server for each message, in microseconds.
    pub(crate) cost: f64,
}

impl RoundResult {
    /// Elapsed time for each message, in microseconds.
    pub(crate) fn time(&self) -> f64 {
        1e6 / self.per_second
    }
}

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let count = effort.pick(2_000, 500_000);
    let (emulator, echo) = (Emulator::start()?, Echo::start()?);
    through_emulator(&emulator, count / 10)?;
    through_echo(&echo, count / 10)?;
    let (mut raw, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..effort.rounds() {
        raw.push(through_echo(&echo, count)?);
        ours.push(through_emulator(&emulator, count)?);
    }
    let each = |passed: &[RoundResult], what: fn(&RoundResult) -> f64| {
        passed.iter().map(what).collect::<Rounds>()
    };
    let ratio = |what: fn(&RoundResult) -> f64| {
        let pairs = ours.iter().zip(&raw);
        pairs
            .map(|(ours, raw)| what(ours) / what(raw))
            .collect::<Rounds>()
    };
    let speed = |passed: &RoundResult| passed.per_second;
    let cost = |passed: &RoundResult| passed.cost;
    report.show("raw TCP echo, messages per second", &each(&raw, speed), "");
    report.show("emulator, messages per second", &each(&ours, speed), "");
    report.at_least(RATIO, &ratio(speed), "", 0.35);
    report.show("raw echo, processor µs per message", &each(&raw, cost), "");
    report.show("emulator, processor µs per message", &each(&ours, cost), "");
    report.at_most(COST, &ratio(cost), "", 3.0);
    Ok(())
}

pub(crate) fn through_emulator(emulator: &Emulator, count: u32) -> io::Result<RoundResult> {
    let sender = Sender::attach(emulator.amqp, &message(BODY, None))?;
    let receiver = Receiver::attach(emulator.amqp)?;
    pass(emulator, sender, receiver, count)
}

/// Passes messages from one connection to another.
pub(crate) fn pass(
    emulator: &Emulator,
    mut sender: Sender,
    mut receiver: Receiver,
    count: u32,
) -> io::Result<RoundResult> {
    receiver.grant(IN_FLIGHT)?;
    let before = at_rest(emulator.pid())?;
    let begin = Instant::now();
    thread::scope(|scope| {
        let sending = scope.spawn(move || sender.send(count, IN_FLIGHT));
        receiver.receive(count, IN_FLIGHT, Accept::Ranges(RANGE), |_| {})?;
        sending.join().expect("the sender does not panic")
    })?;
    let took = begin.elapsed();
    Ok(passed(count, took, at_rest(emulator.pid())? - before))
}

fn through_echo(echo: &Echo, count: u32) -> io::Result<RoundResult> {
    let raw = Raw::connect(echo.address)?;
    let mut transfers = Transfers::of(&message(BODY, None), 50);
    let before = at_rest(echo.pid())?;
    let took = raw.pour(&mut transfers, count)?;
    Ok(passed(count, took, at_rest(echo.pid())? - before))
}

pub(crate) fn passed(count: u32, took: Duration, used: Duration) -> RoundResult {
    RoundResult {
        per_second: f64::from(count) / took.as_secs_f64(),
        cost: used.as_secs_f64() * 1e6 / f64::from(count),
    }
}

/// The processor time of a server without requests.
pub(crate) fn at_rest(pid: u32) -> io::Result<Duration> {
    thread::sleep(REST);
    processor_time(pid)
}
