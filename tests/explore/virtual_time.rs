//! What virtual time promises: runs without faults are the same, and code that computes is not overtaken.

use std::{
    collections::BTreeSet,
    hint::spin_loop,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use crate::support::*;

/// Pairs of runs without faults where nothing is repeated.
const PAIRS: usize = 5;

/// Handles each order, which computes for so long in real time.
async fn work(bus: Party, computes: Duration) -> Outcome {
    let mut client = connect(&bus).await?;
    let mut orders = receiver(&mut client, "orders").await?;
    loop {
        let order = next(&mut orders).await?;
        let begun = Instant::now();
        while begun.elapsed() < computes {
            spin_loop();
        }
        orders.complete_message(&order).await?;
    }
}

/// What happened to the orders and when, with what was logged compared by `strict`.
async fn happened(run: &Run, computes: Duration) -> Vec<String> {
    put_orders(run).await;
    run.party("worker", async move |bus| work(bus, computes).await);
    run.wait_idle().await;
    let timeline = run.timeline(&run.queue("orders")).await;
    let events = timeline.events().iter();
    let lines = events.map(|event| {
        let id = event.message_id.as_deref().unwrap_or_default();
        format!("{:.3} {} {id}", event.offset, event.kind.name())
    });
    lines.collect()
}

/// With `SERVICEBUS_EXPLORE_REPEAT=20,50,100` a thousand runs.
#[test]
fn runs_without_faults_are_the_same() {
    let pairs = repetitions().map_or(PAIRS, |[.., replays]| replays * 5);
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    for _ in 0..pairs {
        let seen = Arc::clone(&seen);
        let twice = Explore::new(orders()).strict().budget(0);
        twice.run(async move |run: &Run| {
            let events = happened(run, Duration::ZERO).await;
            seen.lock().unwrap().insert(events);
        });
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 1, "{seen:#?}");
}

#[test]
fn no_lock_expires_during_computation() {
    let short = Queue::new("orders").lock_duration(Duration::from_secs(5));
    let explore = Explore::new(Topology::new().queue(short)).budget(0);
    explore.run(async |run: &Run| {
        let events = happened(run, Duration::from_millis(100)).await;
        let ended = events.iter().find(|event| event.contains("expired"));
        assert_eq!(ended, None, "{events:#?}");
        let passed = events.last().unwrap().split_once('.').unwrap().0;
        assert_eq!(passed, "0", "{events:#?}");
    });
}
