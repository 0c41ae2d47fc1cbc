//! The judge: what clients saw, written down as they saw it, and held against what Service Bus promises.
//!
//! It knows nothing of the emulator's inside. Where a client cannot know what happened (an answer that was cut off), the
//! ledger says so, and either is right.

mod delivered;
mod final_check;
mod links;
mod sent;
mod settled;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::time::Instant;

use crate::entities::{Colour, ENTITIES};
use crate::network::Observed;

pub(crate) use settled::Outcome;

/// Milliseconds since the Unix epoch when every simulation begins: 2026-01-01.
pub(crate) const BEGINNING: i64 = 1_767_225_600_000;

#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    records: Arc<Mutex<Records>>,
    begun: Instant,
    is_verbose: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Records {
    messages: Vec<Sent>,
    copies: BTreeMap<(usize, usize), Copy>,
    groups: Vec<TransactionState>,
    links: Vec<Link>,
    /// The numbers of copies by place and sender, for their order.
    runs: BTreeMap<(usize, usize), BTreeMap<usize, i64>>,
    deliveries: usize,
    findings: Vec<String>,
}

/// A message, as it was given to the emulator.
#[derive(Debug)]
struct Sent {
    address: &'static str,
    /// By which link, and as which of its messages; none for what has no place in an order.
    order: Option<(usize, usize)>,
    session: Option<String>,
    colour: Colour,
    due: Option<i64>,
    group: Option<usize>,
    begun: i64,
    state: SendState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SendState {
    Unknown,
    Accepted(i64),
    /// Its cancellation was asked for, and the answer has not come.
    Cancelling(i64),
    Refused,
    Cancelled,
    MaybeCancelled,
}

/// One copy of a message, at the place where it ends.
#[derive(Debug, Default)]
struct Copy {
    /// When the client knew that it was completed.
    completed: Option<i64>,
    /// Whether it may be gone for a reason that no client could confirm.
    maybe_gone: bool,
    /// The transactions that complete it if they are committed, and when the locks end that they settle.
    completing: Vec<(usize, i64)>,
    /// Reasons that clients gave when they dead-lettered it.
    reasons: BTreeSet<String>,
    /// Where and from when it surely can be received; none while that is not sure.
    available: Option<(usize, i64)>,
    held: Option<Held>,
    number: Option<i64>,
    /// When the last lock began and how many deliveries had failed before.
    last: Option<(i64, u32)>,
    /// How many deliveries will have failed when the last one that was seen has.
    failed: u32,
    seen: bool,
    found: u32,
}

/// A lock, as its receiver knows it.
#[derive(Debug, Clone, Copy)]
struct Held {
    delivery: usize,
    link: usize,
    from: i64,
    until: i64,
    is_settling: bool,
    is_dead_letter: bool,
}

/// What is done in a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransactionState {
    Unknown,
    Committed,
    RolledBack,
}

/// A link that receives.
#[derive(Debug)]
struct Link {
    place: usize,
    is_dead_letters: bool,
    observed: Observed,
    /// Before this instant the emulator did not know of it.
    from: i64,
    credit: u32,
    /// Since when there is credit and the client waits; none while it does something else.
    waits_since: Option<i64>,
    requested_at: i64,
    ended: Option<(i64, u32)>,
    session: Option<(String, i64)>,
}

/// A message as it arrived.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    /// Which of all deliveries it is, as the judge counts them.
    pub(crate) delivery: usize,
    pub(crate) key: usize,
    pub(crate) count: u32,
    pub(crate) number: i64,
    pub(crate) locked_until: Option<i64>,
    pub(crate) reason: Option<String>,
}

/// What is to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Outgoing {
    pub(crate) address: &'static str,
    pub(crate) order: Option<(usize, usize)>,
    pub(crate) session: Option<String>,
    pub(crate) colour: Colour,
    pub(crate) due: Option<i64>,
    pub(crate) group: Option<usize>,
}

impl Ledger {
    pub(crate) fn new(is_verbose: bool) -> Self {
        Self {
            records: Arc::default(),
            begun: Instant::now(),
            is_verbose,
        }
    }

    /// What the wall clock of everybody shows.
    pub(crate) fn now(&self) -> i64 {
        self.at(Instant::now())
    }

    fn at(&self, instant: Instant) -> i64 {
        BEGINNING + (instant - self.begun).as_millis() as i64
    }

    /// Writes a line of the story, for who replays a seed.
    pub(crate) fn say(&self, line: impl FnOnce() -> String) {
        if self.is_verbose {
            eprintln!("{:>9} {}", self.now() - BEGINNING, line());
        }
    }

    pub(crate) fn find(&self, finding: String) {
        self.say(|| format!("FOUND {finding}"));
        let at = self.now() - BEGINNING;
        self.records()
            .findings
            .push(format!("at {at} ms: {finding}"));
    }

    pub(crate) fn findings(&self) -> Vec<String> {
        self.records().findings.clone()
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().expect("the judge has not panicked")
    }
}

impl Records {
    /// The copy of a message, which a queue of dead letters holds for the queue where they died.
    fn copy(&mut self, key: usize, place: usize) -> Option<&mut Copy> {
        self.copies.get_mut(&(key, owner_of(place)))
    }
}

/// Where a copy counts that lies at a place.
fn owner_of(place: usize) -> usize {
    let buries = |own: &crate::entities::TestEntity| own.dead_letters_to == Some(place);
    ENTITIES.iter().position(buries).unwrap_or(place)
}
