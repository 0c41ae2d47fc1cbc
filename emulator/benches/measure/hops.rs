//! The cost of forwarding in the core: a hop compared with a send, receive and complete on one queue.

use std::time::Instant;

use servicebus_broker::{EntityDescription, ReceiveMode};

use crate::Outcome;
use crate::arguments::Effort;
use crate::local::{LocalNamespace, encoded};
use crate::report::Report;

const HOPS: u32 = 4;
/// Messages that come in one turn of a connection.
const BATCH: u32 = 64;

pub(crate) fn measure(effort: Effort, report: &mut Report) -> Outcome {
    let batches = effort.pick(2, 2_000);
    let rounds = (0..effort.rounds()).map(|_| {
        let life = live(batches);
        let (sent, forwarded) = (send(batches), chain(batches));
        (life, (forwarded - sent) / f64::from(HOPS))
    });
    report.compare(
        "send, receive and complete / one hop, ns",
        "hop ÷ send, receive and complete",
        Vec::from_iter(rounds).into_iter(),
        2.0,
    );
    Ok(())
}

/// Nanoseconds for each message.
fn timed(batches: u32, mut batch: impl FnMut(u32)) -> f64 {
    let begin = Instant::now();
    for turn in 0..batches {
        batch(turn);
    }
    begin.elapsed().as_nanos() as f64 / f64::from(batches * BATCH)
}

/// Sent, received and completed in one queue.
fn live(batches: u32) -> f64 {
    let mut local = LocalNamespace::new(&EntityDescription::default());
    let receiver = local.receiver(ReceiveMode::PeekLock, u32::MAX);
    timed(batches, |turn| {
        for message in 0..BATCH {
            local.send(encoded(turn * BATCH + message, None));
        }
        let taken = local.take(receiver, BATCH as usize);
        local.complete(taken.iter().map(|delivery| delivery.token));
    })
}

/// Sent to one queue, and left there.
fn send(batches: u32) -> f64 {
    let mut local = LocalNamespace::new(&EntityDescription::default());
    timed(batches, |turn| {
        for message in 0..BATCH {
            local.send(encoded(turn * BATCH + message, None));
        }
    })
}

/// Sent to the first of five queues, each of which forwards to the next, and left in the last.
fn chain(batches: u32) -> f64 {
    let names = ["q1", "q2", "q3", "q4", "q5"];
    let queues = names.iter().enumerate().map(|(at, &name)| {
        let next = names.get(at + 1).map(|next| next.parse());
        let forward_to = next.map(|next| next.expect("our own name is legal"));
        let description = EntityDescription {
            forward_to,
            ..EntityDescription::default()
        };
        (name, description)
    });
    let mut local = LocalNamespace::of(queues.collect());
    let cost = timed(batches, |turn| {
        for message in 0..BATCH {
            local.send(encoded(turn * BATCH + message, None));
        }
    });
    let last = "q5".parse().expect("our own name is legal");
    let arrived = local
        .entity(&last)
        .counts(servicebus_broker::SubQueue::Active);
    assert_eq!(
        arrived.active,
        (batches * BATCH) as usize,
        "something stayed behind"
    );
    cost
}
