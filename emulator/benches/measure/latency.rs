//! How long a message takes from the sender's write to the receiver's read, against a round trip of the same bytes
//! through a TCP echo.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::{Transfers, message};
use crate::process::{Echo, Emulator};
use crate::raw::Raw;
use crate::receiver::{Accept, Receiver};
use crate::report::{Limit, Report};
use crate::sender::Sender;
use crate::statistics::{Rounds, histogram, number};

const BODY: usize = 1024;
/// Between two messages: 10,000 a second.
const INTERVAL: Duration = Duration::from_micros(100);
const CREDIT: u32 = 1000;

/// Sends on the beat. It spins, because timers of runtimes have steps of a millisecond.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pacer(Instant);

impl Pacer {
    /// The first beat is now.
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns on beat `number`; `meanwhile` is done once if there is time.
    pub(crate) fn wait_for(
        &self,
        number: u32,
        mut meanwhile: impl FnMut() -> io::Result<()>,
    ) -> io::Result<()> {
        let due = self.0 + INTERVAL * number;
        if Instant::now() < due {
            meanwhile()?;
        }
        while Instant::now() < due {
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// This moment, to be carried by a message.
    pub(crate) fn stamp(&self) -> u64 {
        self.0.elapsed().as_nanos() as u64
    }

    /// Nanoseconds since a stamp.
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
        let median = |all: &[Percentiles], of: fn(&Percentiles) -> f64| {
            number(all.iter().map(of).collect::<Rounds>().median())
        };
        let both = |all: &[Percentiles]| {
            format!(
                "{} / {} µs",
                median(all, |p| p.half),
                median(all, |p| p.most)
            )
        };
        report.note(
            &format!("{what}, raw round trip, p50 / p99"),
            both(&self.raw),
        );
        report.note(
            &format!("{what}, emulator end to end, p50 / p99"),
            both(&self.ours),
        );
    }
}

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let (emulator, echo) = (Emulator::start()?, Echo::start()?);
    let single = effort.pick(20, 5_000);
    let paced = effort.pick(200, 30_000);
    one_at_a_time_raw(&echo, single / 10)?;
    one_at_a_time(&emulator, single / 10)?;
    let (mut alone, mut steady) = (Compared::default(), Compared::default());
    for _ in 0..effort.rounds() {
        alone.raw.push(one_at_a_time_raw(&echo, single)?.into());
        alone.ours.push(one_at_a_time(&emulator, single)?.into());
        steady.raw.push(paced_raw(&echo, paced)?.into());
        steady.ours.push(paced_through(&emulator, paced)?.into());
    }
    alone.note(report, "one at a time");
    let half = alone.ratio(|percentiles| percentiles.half);
    report.judge("one at a time, p50 ÷ raw", &half, "", Limit::AtMost(1.2));
    steady.note(report, "10,000 a second");
    let most = steady.ratio(|percentiles| percentiles.most);
    report.judge("10,000 a second, p99 ÷ raw", &most, "", Limit::AtMost(3.0));
    Ok(())
}

fn one_at_a_time_raw(echo: &Echo, count: u32) -> io::Result<Histogram<u64>> {
    let mut raw = Raw::connect(echo.address)?;
    let mut transfers = Transfers::of(&message(BODY, None), 1);
    let mut seen = histogram()?;
    for _ in 0..count {
        seen.saturating_record(raw.round_trip(&mut transfers)?.as_nanos() as u64);
    }
    Ok(seen)
}

/// Everything about a message is over before the next one is sent.
fn one_at_a_time(emulator: &Emulator, count: u32) -> io::Result<Histogram<u64>> {
    let mut sender = Sender::attach(emulator.amqp, &message(BODY, None))?;
    let mut receiver = Receiver::attach(emulator.amqp)?;
    receiver.grant(CREDIT)?;
    let mut seen = histogram()?;
    for _ in 0..count {
        let begin = Instant::now();
        sender.post(0)?;
        receiver.next()?;
        seen.saturating_record(begin.elapsed().as_nanos() as u64);
        receiver.settle(CREDIT)?;
        sender.settle()?;
    }
    Ok(seen)
}

fn paced_raw(echo: &Echo, count: u32) -> io::Result<Histogram<u64>> {
    let raw = Raw::connect(echo.address)?;
    raw.paced(&mut Transfers::of(&message(BODY, None), 1), count)
}

fn paced_through(emulator: &Emulator, count: u32) -> io::Result<Histogram<u64>> {
    let mut sender = Sender::attach(emulator.amqp, &message(BODY, None))?;
    let mut receiver = Receiver::attach(emulator.amqp)?;
    receiver.grant(CREDIT)?;
    let pacer = Pacer::start();
    let mut seen = histogram()?;
    thread::scope(|scope| {
        let sending = scope.spawn(move || {
            for number in 0..count {
                pacer.wait_for(number, || sender.glance())?;
                sender.post(pacer.stamp())?;
            }
            sender.settle()
        });
        receiver.receive(count, CREDIT, Accept::AsItComes, |stamp| {
            seen.saturating_record(pacer.since(stamp));
        })?;
        sending.join().expect("the sender does not panic")
    })?;
    Ok(seen)
}
