//! The time of a message from the sender's write to the receiver's read, compared with a round trip of the same bytes
//! through a TCP echo. The client is the same for both: one thread writes, another reads.
//!
//! Also a program like a test: it sends messages through the harness's handle, and receives and completes them through its
//! client. `unoptimised.rs` runs it in two builds.

use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{io, thread};

use hdrhistogram::Histogram;
use servicebus_harness::ServiceBus;
use servicebus_harness::azservicebus::ServiceBusReceiverOptions;

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::{Transfers, message};
use crate::process::{Echo, Emulator};
use crate::raw::Raw;
use crate::receiver::{Accept, Receiver};
use crate::report::{Report, say};
use crate::sender::Sender;
use crate::statistics::{Rounds, histogram};

const BODY: usize = 1024;
/// Between two messages: 10,000 a second.
const INTERVAL: Duration = Duration::from_micros(100);
const CREDIT: u32 = 1000;

/// The pace of the writing thread.
#[derive(Debug)]
pub(crate) enum Beat {
    /// At a steady rate. Spins, because timers of runtimes have steps of a millisecond.
    Steady(Clock),
    /// Each after the one before it is done.
    Answered(mpsc::Receiver<()>),
}

/// The other end of a [`Beat`], for the reading thread.
#[derive(Debug)]
pub(crate) enum Answer {
    /// No writer waits.
    Unheard,
    /// Releases the next message.
    Heard(mpsc::Sender<()>),
}

/// The origin of timestamps.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock(Instant);

/// The two ways of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    Steady,
    OneAtATime,
}

impl Pace {
    /// Both ends of it, and the clock of their stamps.
    pub(crate) fn start(self) -> (Clock, Beat, Answer) {
        let clock = Clock(Instant::now());
        match self {
            Self::Steady => (clock, Beat::Steady(clock), Answer::Unheard),
            Self::OneAtATime => {
                let (answer, beat) = mpsc::channel();
                (clock, Beat::Answered(beat), Answer::Heard(answer))
            }
        }
    }
}

impl Beat {
    /// Waits until message `number` is due.
    pub(crate) fn wait_for(&self, number: u32) {
        match self {
            Self::Steady(Clock(start)) => {
                let due = *start + INTERVAL * number;
                while Instant::now() < due {
                    std::hint::spin_loop();
                }
            }
            Self::Answered(answers) => {
                if number > 0 {
                    let _ = answers.recv();
                }
            }
        }
    }
}

impl Answer {
    /// Reports that a message is done.
    pub(crate) fn give(&self) {
        if let Self::Heard(answers) = self {
            // After the last one no receiver is left.
            let _ = answers.send(());
        }
    }
}

impl Clock {
    /// Returns the current time as a timestamp in a message.
    pub(crate) fn stamp(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// Returns the nanoseconds since a timestamp.
    pub(crate) fn since(&self, stamp: u64) -> u64 {
        self.stamp().saturating_sub(stamp)
    }
}

/// Percentiles of one round, in microseconds.
#[derive(Debug, Clone, Copy)]
struct Percentiles {
    half: f64,
    most: f64,
}

impl From<Histogram<u64>> for Percentiles {
    fn from(seen: Histogram<u64>) -> Self {
        let at = |quantile| seen.value_at_quantile(quantile) as f64 / 1000.0;
        Self {
            half: at(0.5),
            most: at(0.99),
        }
    }
}

/// The same measurement of both servers, several times.
#[derive(Debug, Default)]
struct Compared {
    raw: Vec<Percentiles>,
    ours: Vec<Percentiles>,
}

impl Compared {
    fn ratio(&self, of: fn(&Percentiles) -> f64) -> Rounds {
        let pairs = self.ours.iter().zip(&self.raw);
        pairs.map(|(ours, raw)| of(ours) / of(raw)).collect()
    }

    fn note(&self, report: &mut Report, what: &str) {
        let show = |report: &mut Report, whose: &str, all: &[Percentiles]| {
            let half = all.iter().map(|percentiles| percentiles.half);
            report.show(&format!("{what}, {whose}, p50"), &half.collect(), " µs");
            let most = all.iter().map(|percentiles| percentiles.most);
            report.show(&format!("{what}, {whose}, p99"), &most.collect(), " µs");
        };
        show(report, "raw round trip", &self.raw);
        show(report, "emulator end to end", &self.ours);
    }
}

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let (emulator, echo) = (Emulator::start()?, Echo::start()?);
    let single = effort.pick(20, 5_000);
    let steady = effort.pick(200, 30_000);
    let alone = compare(effort, &emulator, &echo, Pace::OneAtATime, single)?;
    alone.note(report, "one at a time");
    let half = alone.ratio(|percentiles| percentiles.half);
    report.at_most("one at a time, p50 ÷ raw", &half, "", 1.2);
    let steady = compare(effort, &emulator, &echo, Pace::Steady, steady)?;
    steady.note(report, "10,000 a second");
    let most = steady.ratio(|percentiles| percentiles.most);
    report.at_most("10,000 a second, p99 ÷ raw", &most, "", 3.0);
    Ok(())
}

fn compare(
    effort: Effort,
    emulator: &Emulator,
    echo: &Echo,
    pace: Pace,
    count: u32,
) -> io::Result<Compared> {
    let mut compared = Compared::default();
    through_echo(echo, pace, count / 10)?;
    through_emulator(emulator, pace, count / 10)?;
    for _ in 0..effort.rounds() {
        compared.raw.push(through_echo(echo, pace, count)?.into());
        compared
            .ours
            .push(through_emulator(emulator, pace, count)?.into());
    }
    Ok(compared)
}

fn through_echo(echo: &Echo, pace: Pace, count: u32) -> io::Result<Histogram<u64>> {
    let raw = Raw::connect(echo.address)?;
    raw.trickle(&mut Transfers::of(&message(BODY, None), 1), pace, count)
}

pub(crate) fn through_emulator(
    emulator: &Emulator,
    pace: Pace,
    count: u32,
) -> io::Result<Histogram<u64>> {
    let mut sender = Sender::attach(emulator.amqp, &message(BODY, None))?;
    let mut receiver = Receiver::attach(emulator.amqp)?;
    receiver.grant(CREDIT)?;
    let mut seen = histogram()?;
    let (clock, beat, answer) = pace.start();
    thread::scope(|scope| {
        let sending = scope.spawn(move || {
            for number in 0..count {
                match pace {
                    Pace::Steady => sender.glance()?,
                    Pace::OneAtATime => sender.settle()?,
                }
                beat.wait_for(number);
                sender.post(clock.stamp())?;
            }
            sender.settle()
        });
        let step = if pace == Pace::Steady { count } else { 1 };
        for _ in 0..count / step {
            receiver.receive(step, CREDIT, Accept::AsItComes, |stamp| {
                seen.saturating_record(clock.since(stamp));
            })?;
            answer.give();
        }
        sending.join().expect("the sender does not panic")
    })?;
    Ok(seen)
}

const QUEUE: &str = "queue.1";
/// Messages asked for at a time.
const BATCH: u32 = 500;

/// Sends and receives so many messages; prints how many seconds that took.
pub(crate) fn play(messages: usize) -> Outcome {
    tokio::runtime::Runtime::new()?.block_on(async {
        let servicebus = ServiceBus::start().await;
        let mut client = servicebus.client().await;
        let options = ServiceBusReceiverOptions::default();
        let mut receiver = Box::pin(client.create_receiver_for_queue(QUEUE, options)).await?;
        let begin = Instant::now();
        let texts = (0..messages).map(|number| format!("message {number}"));
        servicebus.queue(QUEUE).send_all(texts).await;
        let sent = begin.elapsed();
        let mut received = 0;
        while received < messages {
            // The client waits for the full count.
            let wanted = BATCH.min((messages - received) as u32);
            for message in Box::pin(receiver.receive_messages(wanted)).await? {
                Box::pin(receiver.complete_message(&message)).await?;
                received += 1;
            }
        }
        let (sent, all) = (sent.as_secs_f64(), begin.elapsed().as_secs_f64());
        say(&format!("{sent} {all}"))
    })
}
