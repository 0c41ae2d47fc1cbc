//! The binary is killed again and again while clients work: accepted messages are delivered, no message comes again whose
//! completion was confirmed, and transactions are complete.
//!
//! `KILLED_SENDS`, `KILLED_TIMES` and `KILLED_CLIENTS` set the size; the defaults are 1,200 accepted sends, 3 kills and 12
//! clients.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::data::{Directory, kill};
use crate::support::*;

/// How long it may take until the next kill, and until everything is received in the end.
const TIMEOUT: Duration = Duration::from_secs(600);

/// A message in a queue.
type QueuedMessage = (&'static str, String);

/// The knowledge of the clients, which outlive the emulator.
#[derive(Default)]
struct Ledger {
    address: Mutex<Option<SocketAddr>>,
    /// Sends that were accepted, those of committed transactions among them.
    accepted: Mutex<BTreeSet<QueuedMessage>>,
    /// Messages of transactions, each of which is sent to both queues.
    transactions: Mutex<BTreeSet<String>>,
    /// Received messages, and whether their completion was confirmed.
    delivered: Mutex<BTreeMap<QueuedMessage, bool>>,
    again: Mutex<Vec<QueuedMessage>>,
    sent: AtomicU64,
    /// Messages that have an id.
    made: AtomicU64,
    /// Whether sending is over.
    is_sent: AtomicBool,
    is_over: AtomicBool,
}

#[test]
fn accepted_messages_survive_kills() {
    let variable = |name: &str, usual| {
        std::env::var(name).map_or(usual, |text| text.parse::<u64>().expect("a number"))
    };
    let sends = variable("KILLED_SENDS", 1200);
    let (kills, clients) = (variable("KILLED_TIMES", 3), variable("KILLED_CLIENTS", 12));
    let began = Instant::now();
    let directory = Directory::unused();
    let file = TemporaryFile::new(&queues("", &[("a", ""), ("b", "")]));
    let mut arguments = vec!["--data", directory.path(), "--sync", "process"];
    arguments.extend(["--config", file.path()]);
    let ledger = Ledger::default();
    thread::scope(|scope| {
        let over = StopOnDrop(&ledger);
        let mut process = Process::start(&arguments);
        ledger.serve_at(&process);
        for client in 0..clients {
            let ledger = &ledger;
            scope.spawn(move || ledger.work(client));
        }
        for done in 1..=kills {
            ledger.until("sends are accepted", || {
                ledger.sent.load(Ordering::Relaxed) >= sends * done / kills
            });
            *lock(&ledger.address) = None;
            kill(process);
            process = Process::start(&arguments);
            ledger.serve_at(&process);
        }
        ledger.is_sent.store(true, Ordering::Relaxed);
        let http = process.http();
        ledger.until("everything is received", || {
            http.held("a").0 + http.held("b").0 == 0
        });
        drop(over);
    });
    ledger.judge();
    let sent = ledger.sent.load(Ordering::Relaxed);
    let took = began.elapsed();
    eprintln!("{sent} accepted sends, {kills} kills, {clients} clients: {took:?}");
}

/// Ends the clients, also if the test fails.
struct StopOnDrop<'a>(&'a Ledger);

impl Drop for StopOnDrop<'_> {
    fn drop(&mut self) {
        self.0.is_sent.store(true, Ordering::Relaxed);
        self.0.is_over.store(true, Ordering::Relaxed);
    }
}

impl Ledger {
    fn serve_at(&self, process: &Process) {
        *lock(&self.address) = Some(process.amqp());
    }

    fn until(&self, what: &str, is_so: impl Fn() -> bool) {
        let deadline = Instant::now() + TIMEOUT;
        while !is_so() {
            assert!(Instant::now() < deadline, "{what}: not within {TIMEOUT:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Runs a client over one connection after another: each ends with the emulator, as a panic of the peer.
    fn work(&self, client: u64) {
        while !self.is_over.load(Ordering::Relaxed) {
            let Some(address) = *lock(&self.address) else {
                thread::sleep(Duration::from_millis(5));
                continue;
            };
            let ended = catch_unwind(AssertUnwindSafe(|| {
                let mut peer = Peer::open(address, &Open::default());
                peer.let_in();
                match client % 4 {
                    0 => self.receive(&mut peer, "a"),
                    1 => self.receive(&mut peer, "b"),
                    2 => self.send(&mut peer, client),
                    _ => self.transact(&mut peer),
                }
            }));
            if ended.is_ok() {
                return;
            }
        }
    }

    fn next_id(&self) -> String {
        format!("m{}", self.made.fetch_add(1, Ordering::Relaxed))
    }

    fn accept(&self, queue: &'static str, id: &str) {
        lock(&self.accepted).insert((queue, id.to_owned()));
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    fn send(&self, peer: &mut Peer, client: u64) {
        let queue = ["a", "b"][client as usize / 4 % 2];
        let sender = peer.sender(queue);
        while !self.is_sent.load(Ordering::Relaxed) {
            let id = self.next_id();
            peer.send(&sender, &Message::new(&id).body(vec![b'x'; 1024]));
            self.accept(queue, &id);
        }
    }

    /// Sends each message to both queues, or to none.
    fn transact(&self, peer: &mut Peer) {
        let senders = ["a", "b"].map(|queue| peer.sender(queue));
        let (coordinator, mut transaction) = peer.transaction();
        while !self.is_sent.load(Ordering::Relaxed) {
            let id = self.next_id();
            lock(&self.transactions).insert(id.clone());
            for sender in &senders {
                peer.enlist(sender, &transaction, &id);
            }
            peer.commit(&coordinator, &transaction)
                .expect("it can be committed");
            self.accept("a", &id);
            self.accept("b", &id);
            transaction = peer.declare(&coordinator);
        }
    }

    /// Receives until the emulator has gone, or nothing is left.
    fn receive(&self, peer: &mut Peer, queue: &'static str) {
        let receiver = peer.receiver(queue);
        while !self.is_over.load(Ordering::Relaxed) {
            let delivery = peer.receive_one(&receiver);
            let place = (queue, delivery.id());
            if lock(&self.delivered).insert(place.clone(), false) == Some(true) {
                lock(&self.again).push(place.clone());
            }
            if peer.settle(&delivery, accepted()) == accepted() {
                lock(&self.delivered).insert(place, true);
            }
        }
    }

    fn judge(&self) {
        let again = lock(&self.again);
        assert!(again.is_empty(), "completed, and came again: {again:?}");
        let (accepted, delivered) = (lock(&self.accepted), lock(&self.delivered));
        let lost: Vec<_> = accepted
            .iter()
            .filter(|place| !delivered.contains_key(place))
            .collect();
        assert!(lost.is_empty(), "accepted, and lost: {lost:?}");
        let is_there = |queue, id: &String| delivered.contains_key(&(queue, id.clone()));
        let transactions = lock(&self.transactions);
        let torn = transactions
            .iter()
            .filter(|id| is_there("a", id) != is_there("b", id));
        let torn: Vec<_> = torn.collect();
        assert!(torn.is_empty(), "transactions by half: {torn:?}");
        assert!(!accepted.is_empty() && !transactions.is_empty());
    }
}

/// No state is left half-way where a client ends.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
