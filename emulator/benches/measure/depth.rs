//! Measures end to end whether a queue of a million messages costs more per message than one of a thousand: the emulator's
//! processor time, with both queues filled beforehand.

use std::io;
use std::thread;
use std::time::Duration;

use crate::Outcome;
use crate::admin::Client;
use crate::arguments::Effort;
use crate::frames::message;
use crate::peeker::Peeker;
use crate::process::Emulator;
use crate::receiver::{Accept, Receiver};
use crate::report::Report;
use crate::sender::Sender;
use crate::throughput::at_rest;

const BODY: usize = 1024;
const IN_FLIGHT: u32 = 1000;
const RANGE: u32 = 64;
const SHALLOW: u32 = 1_000;
/// Messages of one step: few enough to keep a queue of a thousand at its depth.
const STEP: u32 = 500;
/// Messages of one peek; together less than the megabyte that one reply may have.
const PEEK: u32 = 250;
const LIFETIME_SECONDS: u32 = 3_600;

/// Processor time per message, in microseconds.
#[derive(Debug, Default)]
struct Costs {
    send: f64,
    receive: f64,
    peek: f64,
}

/// A queue that is kept at its depth.
#[derive(Debug)]
struct FilledQueue {
    emulator: Emulator,
    sender: Sender,
    receiver: Receiver,
    peeker: Peeker,
    /// The sequence number of the first message.
    first: u64,
    depth: u32,
}

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let deep = effort.pick(2_000, 1_000_000);
    let steps = effort.pick(1, 20);
    let mut shallow = FilledQueue::fill(SHALLOW)?;
    let mut filled = FilledQueue::fill(deep)?;
    shallow.steps(steps)?;
    let mut pairs = Vec::new();
    for _ in 0..effort.rounds() {
        pairs.push((shallow.steps(steps)?, filled.steps(steps)?));
    }
    drop((shallow, filled));
    compare(report, "send", &pairs, |costs| costs.send);
    compare(report, "receive and complete", &pairs, |costs| {
        costs.receive
    });
    compare(report, "peek", &pairs, |costs| costs.peek);

    let mut pairs = Vec::new();
    for _ in 0..effort.rounds() {
        pairs.push((expiry(SHALLOW, effort.pick(1, 50))?, expiry(deep, 1)?));
    }
    compare(report, "expiry", &pairs, |cost| *cost);
    Ok(())
}

fn compare<C>(report: &mut Report, what: &str, pairs: &[(C, C)], of: fn(&C) -> f64) {
    report.compare(
        &format!("{what}, processor µs per message, 1,000 / 1,000,000 deep"),
        &format!("{what}, ratio"),
        pairs.iter().map(|(shallow, deep)| (of(shallow), of(deep))),
        2.0,
    );
}

impl FilledQueue {
    fn fill(depth: u32) -> io::Result<Self> {
        let emulator = Emulator::start()?;
        let mut sender = Sender::attach(emulator.amqp, &message(BODY, None))?;
        sender.send(depth, IN_FLIGHT)?;
        Ok(Self {
            sender,
            receiver: Receiver::attach(emulator.amqp)?,
            peeker: Peeker::attach(emulator.amqp)?,
            emulator,
            first: 1,
            depth,
        })
    }

    /// Sends, receives and peeks in turn; leaves the queue at its depth.
    fn steps(&mut self, steps: u32) -> io::Result<Costs> {
        let mut total = Costs::default();
        for _ in 0..steps {
            total.send += self.cost(|filled| filled.sender.send(STEP, IN_FLIGHT))?;
            total.receive += self.cost(|filled| {
                filled.receiver.grant(STEP)?;
                filled
                    .receiver
                    .receive(STEP, 0, Accept::Ranges(RANGE), |_| {})
            })?;
            self.first += u64::from(STEP);
            // From the middle, which is not close to either end of the queue.
            let from = self.first + u64::from(self.depth / 2);
            total.peek += self.cost(|filled| {
                for _ in 0..STEP / PEEK {
                    let size = filled.peeker.peek(from, PEEK)?;
                    debug_assert!(
                        size > BODY * PEEK as usize,
                        "a peek has brought {size} bytes"
                    );
                }
                Ok(())
            })?;
        }
        let messages = f64::from(steps * STEP);
        Ok(Costs {
            send: total.send / messages,
            receive: total.receive / messages,
            peek: total.peek / messages,
        })
    }

    /// Returns the emulator's cost of a step, in microseconds.
    fn cost(&mut self, step: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<f64> {
        let before = at_rest(self.emulator.pid())?;
        step(self)?;
        Ok((at_rest(self.emulator.pid())? - before).as_secs_f64() * 1e6)
    }
}

/// Returns the cost of expiring all messages of a queue by one advance of the clock, in microseconds per message.
fn expiry(depth: u32, times: u32) -> io::Result<f64> {
    let emulator = Emulator::start()?;
    let message = message(BODY, Some(LIFETIME_SECONDS * 1000));
    let mut sender = Sender::attach(emulator.amqp, &message)?;
    let mut used = Duration::ZERO;
    for _ in 0..times {
        sender.send(depth, IN_FLIGHT)?;
        thread::yield_now();
        let before = at_rest(emulator.pid())?;
        advance(&emulator, LIFETIME_SECONDS + 60)?;
        used += at_rest(emulator.pid())? - before;
    }
    Ok(used.as_secs_f64() * 1e6 / f64::from(depth * times))
}

/// Advances the namespace's clock; returns when everything due has happened.
fn advance(emulator: &Emulator, seconds: u32) -> io::Result<()> {
    let body = format!("{{\"seconds\":{seconds}}}");
    Client::connect(emulator)?.control("POST", "clock/advance", &body)
}
