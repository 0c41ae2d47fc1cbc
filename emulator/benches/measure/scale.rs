//! Many scheduled messages, remembered ids and locks: the cost of one operation among a thousand, 32 thousand and a million.

use std::time::{Duration, Instant};

use servicebus_broker::{EntityDescription, LockToken, ReceiveMode, SubQueue, Timestamp};

use crate::Outcome;
use crate::arguments::Effort;
use crate::local::{LocalNamespace, encoded};
use crate::report::Report;
use crate::statistics::{Rounds, number};

const ACTIVE: SubQueue = SubQueue::Active;
/// How much more a million may cost than a thousand.
const LIMIT: f64 = 2.5;
/// Time over which a million of anything is spread.
const SPAN: Duration = Duration::from_secs(200);

type Cost = fn(u32, u32) -> f64;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let depths = effort.pick([50, 100, 200], [1_000, 32_000, 1_000_000]);
    let operations = effort.pick(20, 20_000);
    let costs: [(&str, Cost); 5] = [
        ("schedule and cancel", schedule_and_cancel),
        ("become active", activate),
        ("send what is new, where duplicates are dropped", send_new),
        ("send a duplicate", send_duplicate),
        ("lock, renew and complete", lock_and_complete),
    ];
    for (what, cost) in costs {
        let mut rounds = [const { Vec::new() }; 3];
        for _ in 0..effort.rounds() {
            for (round, depth) in rounds.iter_mut().zip(depths) {
                round.push(cost(depth, operations));
            }
        }
        let [few, some, many] = &rounds;
        let medians = rounds.each_ref().map(|round| {
            let round: Rounds = round.iter().copied().collect();
            number(round.median())
        });
        report.note(&format!("{what}, ns"), medians.join(" / "));
        let middle: Rounds = some.iter().zip(few).map(|(some, few)| some / few).collect();
        report.at_most(&format!("{what}, 32 K ÷ 1 K"), &middle, "", LIMIT);
        let whole: Rounds = many.iter().zip(few).map(|(many, few)| many / few).collect();
        report.at_most(&format!("{what}, 1 M ÷ 1 K"), &whole, "", LIMIT);
    }
    Ok(())
}

/// Nanoseconds for each of `operations` calls.
fn each(operations: u32, mut operation: impl FnMut(u32)) -> f64 {
    let begin = Instant::now();
    for turn in 0..operations {
        operation(turn);
    }
    begin.elapsed().as_nanos() as f64 / f64::from(operations)
}

/// Returns the instant of the `turn`th of many, spread evenly and out of order.
fn spread(start: Timestamp, turn: u32) -> Timestamp {
    let span = SPAN.as_millis() as u64;
    let at = u64::from(turn).wrapping_mul(0x9e37_79b9_7f4a_7c15) % span;
    start + Duration::from_millis(1_000 + at)
}

fn scheduled(depth: u32) -> LocalNamespace {
    let mut local = LocalNamespace::new(&EntityDescription::default());
    for turn in 0..depth {
        let at = spread(local.now, turn);
        local.send(encoded(turn, Some(at)));
    }
    local
}

fn schedule_and_cancel(depth: u32, operations: u32) -> f64 {
    let mut local = scheduled(depth);
    each(operations, |turn| {
        let at = spread(local.now, depth + turn);
        let number = local.send(encoded(turn, Some(at))).expect("it is new");
        local
            .at_first(|entity, cx| entity.cancel_scheduled(cx, &[number]))
            .expect("it is scheduled");
    })
}

/// Keeps their number constant: each that becomes active and is deleted is scheduled again.
fn activate(depth: u32, operations: u32) -> f64 {
    let mut local = scheduled(depth);
    let receiver = local.receiver(ReceiveMode::ReceiveAndDelete, u32::MAX);
    let mut active = 0;
    let begin = Instant::now();
    while active < operations {
        let due = local.deadline().expect("something is scheduled");
        local.now = due;
        let taken = local.take(receiver, usize::MAX).len() as u32;
        for turn in 0..taken {
            let at = spread(local.now, active + turn) + SPAN;
            local.send(encoded(turn, Some(at)));
        }
        active += taken;
    }
    begin.elapsed().as_nanos() as f64 / f64::from(active)
}

fn remembered(depth: u32) -> LocalNamespace {
    let mut local = LocalNamespace::new(&EntityDescription {
        requires_duplicate_detection: true,
        duplicate_detection_history_time_window: SPAN,
        ..EntityDescription::default()
    });
    let receiver = local.receiver(ReceiveMode::ReceiveAndDelete, u32::MAX);
    let start = local.now;
    for turn in 0..depth {
        // As many as fit into the window, so that from now on each new one replaces an old one.
        let passed = SPAN.as_millis() as u64 * u64::from(turn) / u64::from(depth);
        local.now = start + Duration::from_millis(passed);
        local.send(encoded(turn, None));
        local.take(receiver, usize::MAX);
    }
    local
}

fn send_new(depth: u32, operations: u32) -> f64 {
    let mut local = remembered(depth);
    let receiver = local.receiver(ReceiveMode::ReceiveAndDelete, u32::MAX);
    let (start, pace) = (local.now, SPAN.as_millis() as u64);
    each(operations, |turn| {
        let passed = pace * u64::from(turn) / u64::from(depth);
        local.now = start + Duration::from_millis(passed);
        local.send(encoded(depth + turn, None));
        local.take(receiver, usize::MAX);
    })
}

fn send_duplicate(depth: u32, operations: u32) -> f64 {
    let mut local = remembered(depth);
    each(operations, |turn| {
        let seen = (depth / 2 + turn.wrapping_mul(2_654_435_761) % (depth / 2)).min(depth - 1);
        let number = local.send(encoded(seen, None));
        assert_eq!(number, None, "a duplicate was stored");
    })
}

fn lock_and_complete(depth: u32, operations: u32) -> f64 {
    let mut local = LocalNamespace::new(&EntityDescription {
        lock_duration: Duration::from_secs(300),
        ..EntityDescription::default()
    });
    let receiver = local.receiver(ReceiveMode::PeekLock, u32::MAX);
    let start = local.now;
    for turn in 0..depth {
        let passed = SPAN.as_millis() as u64 * u64::from(turn) / u64::from(depth);
        local.now = start + Duration::from_millis(passed);
        local.send(encoded(turn, None));
        local.take(receiver, usize::MAX);
    }
    each(operations, |turn| {
        local.send(encoded(turn, None));
        let tokens: Vec<LockToken> = local.take(receiver, 1).iter().map(|d| d.token).collect();
        local
            .at_first(|entity, cx| entity.renew_locks(cx, ACTIVE, &tokens))
            .expect("the lock is held");
        local.complete(tokens);
    })
}
