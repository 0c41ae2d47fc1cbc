//! Calls the broker's core directly: the cost of a message without a socket, and whether a queue of a million makes it
//! higher. Events go into a timeline, as in the emulator.

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use servicebus_broker::{EntityDescription, Message, ReceiveMode, SequenceNumber, SubQueue};

use crate::Outcome;
use crate::arguments::Effort;
use crate::frames::message;
use crate::local::LocalNamespace;
use crate::report::Report;
use crate::statistics::Rounds;

const SHALLOW: u32 = 1_000;
const BODY: usize = 100;
/// Messages under one lock, as connections commit and take them.
const BATCH: u32 = 64;
const LIFETIME: Duration = Duration::from_secs(3_600);
/// Messages that arrive within one millisecond when a queue is filled.
const PER_MILLISECOND: u32 = 500;

/// Nanoseconds for each message.
#[derive(Debug, Default)]
struct Costs {
    send: f64,
    receive: f64,
    browse: f64,
    expiry: f64,
}

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let deep = effort.pick(2_000, 1_000_000);
    let batches = effort.pick(2, 2_000);
    let mut pairs = Vec::new();
    for _ in 0..effort.rounds() {
        let shallow = costs(SHALLOW, batches, effort.pick(1, 100));
        pairs.push((shallow, costs(deep, batches, 1)));
    }
    let whole = pairs
        .iter()
        .map(|(shallow, _)| shallow.send + shallow.receive);
    let whole: Rounds = whole.collect();
    report.note(
        "send + take + complete, 1,000 messages deep",
        format!("{whole} ns"),
    );
    compare(report, "send", &pairs, |costs| costs.send);
    compare(report, "take and complete", &pairs, |costs| costs.receive);
    compare(report, "browse", &pairs, |costs| costs.browse);
    compare(report, "expiry", &pairs, |costs| costs.expiry);
    Ok(())
}

fn compare(report: &mut Report, what: &str, pairs: &[(Costs, Costs)], of: fn(&Costs) -> f64) {
    report.compare(
        &format!("{what}, ns per message, 1,000 / 1,000,000 deep"),
        &format!("{what}, a million ÷ a thousand"),
        pairs.iter().map(|(shallow, deep)| (of(shallow), of(deep))),
        5.0,
    );
}

fn costs(depth: u32, batches: u32, expiries: u32) -> Costs {
    let mut local = filled(depth, None);
    let receiver = local.receiver(ReceiveMode::PeekLock, 0);
    let (mut send, mut receive, mut browse) = (Duration::ZERO, Duration::ZERO, Duration::ZERO);
    for batch in 0..batches {
        let messages = parsed(&mut local, BATCH, None);
        send += timed(|| local.send_all(messages));
        let mut taken = Vec::new();
        receive += timed(|| {
            local.ask(receiver, BATCH);
            taken = local.take(receiver, BATCH as usize);
            local.complete(taken.iter().map(|delivery| delivery.token));
        });
        let middle = SequenceNumber(u64::from(batch * BATCH + depth / 2));
        browse += timed(|| {
            local.at_first(|entity, cx| {
                black_box(entity.peek(cx, SubQueue::Active, middle, BATCH as usize, None));
            });
        });
    }
    let mut expiry = Duration::ZERO;
    for _ in 0..expiries {
        let mut local = filled(depth, Some(LIFETIME));
        local.now = local.now + 2 * LIFETIME;
        expiry += timed(|| {
            local.at_first(|entity, cx| entity.handle_timeout(cx));
        });
        let is_empty = local.at_first(|entity, _| entity.store(SubQueue::Active).is_empty());
        assert!(is_empty, "everything has expired");
    }
    let each = |took: Duration, messages: u32| took.as_nanos() as f64 / f64::from(messages);
    Costs {
        send: each(send, batches * BATCH),
        receive: each(receive, batches * BATCH),
        browse: each(browse, batches * BATCH),
        expiry: each(expiry, expiries * depth),
    }
}

fn timed(work: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    work();
    begin.elapsed()
}

/// Returns a queue of `depth` messages that arrived at the pace of a fast sender.
fn filled(depth: u32, lifetime: Option<Duration>) -> LocalNamespace {
    let mut local = LocalNamespace::new(&EntityDescription::default());
    let mut left = depth;
    while left > 0 {
        let count = left.min(PER_MILLISECOND);
        let messages = parsed(&mut local, count, lifetime);
        local.send_all(messages);
        local.now = local.now + Duration::from_millis(1);
        left -= count;
    }
    local
}

fn parsed(local: &mut LocalNamespace, count: u32, lifetime: Option<Duration>) -> Vec<Message> {
    let lifetime_ms = lifetime.map(|lifetime| lifetime.as_millis() as u32);
    let encoded = Bytes::from(message(BODY, lifetime_ms));
    (0..count).map(|_| local.parse(encoded.clone())).collect()
}
