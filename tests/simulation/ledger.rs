//! The judge: what clients saw, written down as they saw it, and held against what Service Bus promises.
//!
//! It knows nothing of the emulator's inside. Where a client cannot know what happened (an answer that was cut off), the
//! ledger says so, and either is right.

mod delivered;
mod verdict;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use tokio::time::Instant;

use crate::network::Observed;
use crate::places::{Colour, FIFTH, PLACES, STUCK, destinations};

/// Milliseconds since the Unix epoch when every simulation begins: 2026-01-01.
pub(crate) const BEGINNING: i64 = 1_767_225_600_000;

#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    records: Arc<Mutex<Records>>,
    begun: Instant,
    is_loud: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Records {
    messages: Vec<Sent>,
    copies: BTreeMap<(usize, usize), Copy>,
    groups: Vec<Group>,
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
    fate: Fate,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Unknown,
    Accepted(i64),
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
    /// The transactions that complete it if they are committed.
    completing: Vec<usize>,
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
pub(crate) enum Group {
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
    asked: i64,
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
pub(crate) struct Letter {
    pub(crate) address: &'static str,
    pub(crate) order: Option<(usize, usize)>,
    pub(crate) session: Option<String>,
    pub(crate) colour: Colour,
    pub(crate) due: Option<i64>,
    pub(crate) group: Option<usize>,
}

impl Ledger {
    pub(crate) fn new(is_loud: bool) -> Self {
        Self {
            records: Arc::default(),
            begun: Instant::now(),
            is_loud,
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
        if self.is_loud {
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

    /// A message is about to be sent, and gets a key.
    pub(crate) fn send(&self, letter: Letter) -> usize {
        let begun = self.now();
        let mut records = self.records();
        let key = records.messages.len();
        for place in destinations(letter.address, letter.colour) {
            records.copies.insert((key, place), Copy::default());
        }
        let Letter {
            address,
            order,
            session,
            colour,
            due,
            group,
        } = letter;
        self.say(|| format!("m{key} sends to {address} {session:?} due {due:?} in {group:?}"));
        records.messages.push(Sent {
            address,
            order,
            session,
            colour,
            due,
            group,
            begun,
            fate: Fate::Unknown,
        });
        key
    }

    /// The emulator has taken it.
    pub(crate) fn accepted(&self, key: usize) {
        let now = self.now();
        self.say(|| format!("m{key} accepted"));
        let mut records = self.records();
        let sent = &mut records.messages[key];
        if !matches!(sent.fate, Fate::Unknown) || sent.group.is_some() {
            return;
        }
        sent.fate = Fate::Accepted(now);
        records.available(key, now);
    }

    pub(crate) fn refused(&self, key: usize, why: &str) {
        self.say(|| format!("m{key} refused: {why}"));
        self.records().messages[key].fate = Fate::Refused;
    }

    /// It was scheduled, and is asked back; `outcome` is whether it was given, if that is known.
    pub(crate) fn cancelled(&self, key: usize, outcome: Option<bool>) {
        self.say(|| format!("m{key} cancelled: {outcome:?}"));
        let now = self.now();
        let mut records = self.records();
        let sent = &mut records.messages[key];
        sent.fate = match outcome {
            Some(true) => Fate::Cancelled,
            None => Fate::MaybeCancelled,
            Some(false) => {
                let is_early = sent.due.is_some_and(|due| now < due);
                drop(records);
                if is_early {
                    self.find(format!("m{key} is scheduled, and cannot be cancelled"));
                }
                return;
            }
        };
        for ((own, _), copy) in &mut records.copies {
            if *own == key {
                copy.available = None;
            }
        }
    }

    pub(crate) fn begin_group(&self) -> usize {
        let mut records = self.records();
        records.groups.push(Group::Unknown);
        records.groups.len() - 1
    }

    /// A transaction has ended, as its client knows.
    pub(crate) fn end_group(&self, group: usize, how: Group) {
        self.say(|| format!("transaction {group} {how:?}"));
        let now = self.now();
        let mut records = self.records();
        records.groups[group] = how;
        for key in 0..records.messages.len() {
            let sent = &mut records.messages[key];
            if sent.group != Some(group) || sent.fate != Fate::Unknown {
                continue;
            }
            match how {
                Group::Committed => {
                    sent.fate = Fate::Accepted(now);
                    records.available(key, now);
                }
                Group::RolledBack => sent.fate = Fate::Refused,
                Group::Unknown => {}
            }
        }
        for copy in records.copies.values_mut() {
            let Some(at) = copy.completing.iter().position(|own| *own == group) else {
                continue;
            };
            if copy.held.is_none_or(|held| held.until <= now) {
                // The lock may have ended before the settlement came, which is refused then, and no part of it.
                copy.completing.remove(at);
                copy.maybe_gone = true;
            } else if how == Group::Committed {
                copy.completed.get_or_insert(now);
            }
        }
    }

    /// A client is about to attach a link.
    pub(crate) fn attaching(
        &self,
        place: usize,
        is_dead_letters: bool,
        observed: &Observed,
    ) -> usize {
        let from = self.now();
        let mut records = self.records();
        records.links.push(Link {
            place,
            is_dead_letters,
            observed: observed.clone(),
            from,
            credit: 0,
            waits_since: None,
            asked: from,
            ended: None,
            session: None,
        });
        records.links.len() - 1
    }

    /// It holds a session until then.
    pub(crate) fn holds(&self, link: usize, session: &str, until: i64) {
        let now = self.now();
        self.say(|| {
            format!(
                "link {link} holds session {session} until {}",
                until - BEGINNING
            )
        });
        let mut records = self.records();
        let place = records.links[link].place;
        let other = records.links.iter().enumerate().find(|(other, held)| {
            let lasts = held
                .session
                .as_ref()
                .is_some_and(|(of, until)| of == session && *until > now);
            *other != link
                && held.place == place
                && lasts
                && held.ended.is_none()
                && held.observed.is_healthy()
        });
        let other = other.map(|(other, _)| other);
        records.links[link].session = Some((session.to_owned(), until));
        drop(records);
        // A client that stood still may hear of a lock that is over.
        if let Some(other) = other.filter(|_| now < until) {
            self.find(format!(
                "session {session} is locked by links {other} and {link}"
            ));
        }
    }

    /// The lock of its session was renewed.
    pub(crate) fn session_renewed(&self, link: usize, renewed: i64) {
        if let Some((_, until)) = &mut self.records().links[link].session {
            *until = renewed;
        }
    }

    /// Until when it holds its session.
    pub(crate) fn session_until(&self, link: usize) -> i64 {
        let records = self.records();
        records.links[link]
            .session
            .as_ref()
            .map_or(0, |(_, until)| *until)
    }

    /// It asks for so many messages and waits.
    pub(crate) fn asks(&self, link: usize, credit: u32) {
        let now = self.now();
        let link = &mut self.records().links[link];
        link.credit = credit;
        link.asked = now;
        link.waits_since = Some(now);
    }

    /// Its client waits for a message, or does something else.
    pub(crate) fn waits(&self, link: usize, does: bool) {
        let now = self.now();
        let since = &mut self.records().links[link].waits_since;
        *since = does.then(|| since.unwrap_or(now));
    }

    /// It is about to be closed.
    pub(crate) fn closing(&self, link: usize) {
        let now = self.now();
        let link = &mut self.records().links[link];
        link.ended.get_or_insert((now, link.credit));
        link.waits_since = None;
    }

    /// A copy is about to be settled.
    pub(crate) fn settling(&self, place: usize, key: usize, outcome: Outcome) {
        self.say(|| format!("m{key} at {}: {outcome:?}", PLACES[place].address));
        let mut records = self.records();
        let Some(copy) = records.copy(key, place) else {
            return;
        };
        copy.available = None;
        if let Some(held) = &mut copy.held {
            held.is_settling = true;
        }
        match outcome {
            Outcome::Complete => copy.maybe_gone |= copy.completed.is_none(),
            Outcome::CompleteIn(group) => copy.completing.push(group),
            Outcome::DeadLetter(reason) => {
                copy.reasons.insert(reason);
            }
            Outcome::Abandon | Outcome::Release | Outcome::Defer => {}
        }
    }

    /// It was settled for sure.
    pub(crate) fn settled(&self, place: usize, key: usize, arrival: &Arrival, outcome: Outcome) {
        self.say(|| format!("m{key} at {}: sure {outcome:?}", PLACES[place].address));
        let now = self.now();
        let mut records = self.records();
        let Some(copy) = records.copy(key, place) else {
            return;
        };
        // What an earlier delivery came to says nothing of what became of a later one.
        let held = copy.held.map(|held| held.delivery);
        let is_last = held == Some(arrival.delivery);
        let is_dead_letter = copy.held.is_some_and(|held| held.is_dead_letter);
        let is_free = (is_last || PLACES[place].sessions) && !is_dead_letter;
        let goes_on = is_free && arrival.count + 1 < PLACES[place].max_delivery;
        match outcome {
            Outcome::Complete => {
                copy.completed.get_or_insert(now);
            }
            Outcome::Abandon if goes_on => copy.available = Some((place, now)),
            Outcome::Release if is_free => copy.available = Some((place, now)),
            Outcome::Abandon
            | Outcome::Release
            | Outcome::Defer
            | Outcome::DeadLetter(_)
            | Outcome::CompleteIn(_) => {}
        }
    }

    /// The emulator says that the lock was lost.
    pub(crate) fn lock_lost(&self, place: usize, key: usize, asked_while: i64) {
        let now = self.now();
        self.say(|| format!("m{key}: lock lost"));
        if now < asked_while {
            self.find(format!(
                "m{key} at {}: its lock was lost before its end",
                PLACES[place].address
            ));
        }
    }

    pub(crate) fn renewed(&self, place: usize, key: usize, until: i64) {
        let mut records = self.records();
        let Some(copy) = records.copy(key, place) else {
            return;
        };
        if let Some(held) = &mut copy.held {
            held.until = until;
        }
        if let Some((_, from)) = &mut copy.available {
            *from = until + 1;
        }
    }
}

/// How a copy is settled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Outcome {
    Complete,
    CompleteIn(usize),
    Abandon,
    Release,
    Defer,
    DeadLetter(String),
}

impl Records {
    /// The copy of a message, which a queue of dead letters holds for the queue where they died.
    fn copy(&mut self, key: usize, place: usize) -> Option<&mut Copy> {
        self.copies.get_mut(&(key, home(place)))
    }

    fn available(&mut self, key: usize, now: i64) {
        let sent = &self.messages[key];
        let from = now.max(sent.due.unwrap_or(now));
        for place in destinations(sent.address, sent.colour) {
            if let Some(copy) = self.copies.get_mut(&(key, place))
                && !copy.seen
                && !matches!(place, FIFTH | STUCK)
            {
                copy.available = Some((place, from));
            }
        }
    }
}

/// Where a copy counts that lies at a place.
fn home(place: usize) -> usize {
    let buries = |own: &crate::places::Place| own.graveyard == Some(place);
    PLACES.iter().position(buries).unwrap_or(place)
}
