//! Many concurrent clients that compete, give up, fall silent and drop their connections while time jumps: at the end every
//! message is somewhere, once.
//!
//! The actions of each client are drawn from a seed; the interleaving of the clients' steps is not, so that a failure prints
//! the seed and may need a few runs to recur. Each round uses one combination of the settings for locks and expired messages
//! (decisions D1, D2).

mod ledger;
mod worker;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::support::*;
use ledger::Ledger;
use worker::Worker;

const WORKERS: u64 = 6;
const STEPS: u32 = 60;

#[test]
fn no_message_is_lost_when_locks_outlive_their_links() {
    simulate("eager", "keep", 1);
    simulate("on-receive", "keep", 2);
}

#[test]
fn no_message_is_lost_when_locks_end_with_their_links() {
    simulate("eager", "release", 3);
    simulate("on-receive", "release", 4);
}

fn simulate(expiry: &str, locks: &str, seed: u64) {
    let settings = format!(r#""Expiry":"{expiry}","LocksOnDetach":"{locks}""#);
    let properties =
        r#""LockDuration":"PT5S","MaxDeliveryCount":4,"DeadLetteringOnMessageExpiration":true"#;
    let bus = Bus::configured(&queues(&settings, &[("q", properties)]));
    let ledger = Ledger::default();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|index| {
                let worker = Worker::new(&bus, &ledger, index, seed * 1000 + index);
                scope.spawn(|| worker.run(STEPS))
            })
            .collect();
        let (bus, over) = (&bus, &over);
        scope.spawn(move || {
            let mut random = SmallRng::seed_from_u64(seed);
            while !over.load(Ordering::Relaxed) {
                bus.http.advance(random.random_range(0.1..3.0));
            }
        });
        let results: Vec<_> = workers.into_iter().map(|worker| worker.join()).collect();
        over.store(true, Ordering::Relaxed);
        for result in results {
            result.unwrap_or_else(|_| panic!("a worker failed with seed {seed}"));
        }
    });
    take_stock(&bus, &ledger, seed);
}

/// Lets all locks end and compares the rest with the ledger.
fn take_stock(bus: &Bus, ledger: &Ledger, seed: u64) {
    // The last frames of a client that fell silent may still be in its socket, and take a lock.
    let counts = eventually("the end of all locks", || {
        bus.http.advance(6.0);
        let counts = bus.http.counts("q");
        (counts["locked"] == 0).then_some(counts)
    });
    let path = "~/settled";
    bus.http.post(path, &serde_json::json!({"within": 30})).ok();
    let mut peer = bus.client();
    let mut left = |address: &str, count: u64| {
        let receiver = peer.attached(&Attach::deleting(address));
        let messages = peer.drain(&receiver, count as u32 + 100);
        messages.iter().map(Delivery::id).collect::<Vec<_>>()
    };
    let number = |name: &str| counts[name].as_u64().expect("counts are numbers");
    let ready = left("q", number("active"));
    // Those that had expired and waited for a receiver have left when this one came.
    let dead = left(
        "q/$DeadLetterQueue",
        number("active") + number("dead_letter"),
    );
    assert_eq!(
        ready.len() + dead.len(),
        (number("active") + number("dead_letter")) as usize
    );
    ledger.balance(&ready, &dead, seed);
    let counters =
        |store: &str| bus.http.timeline(&format!("?entity=q{store}"))["counters"].clone();
    let (active, dead_letters) = (counters(""), counters("/$DeadLetterQueue"));
    let sum = |counters: &serde_json::Value, names: &[&str]| -> u64 {
        names
            .iter()
            .filter_map(|name| counters[name].as_u64())
            .sum()
    };
    let gone = sum(
        &active,
        &["completed", "received-and-deleted", "dead-lettered"],
    );
    assert_eq!(active["sent"], gone, "with seed {seed}: {active}");
    let gone = sum(&dead_letters, &["completed", "received-and-deleted"]);
    assert_eq!(
        active["dead-lettered"], gone,
        "with seed {seed}: {dead_letters}"
    );
    assert_eq!(bus.http.held("q"), (0, 0));
}
