//! Crashes at every write and every synchronization of random histories: committed changes survive, and each operation is
//! present completely or not at all, in all entities that it changed.
//!
//! The store is the real one on a file that records its operations. Wherever the writer thread could take a batch, the test
//! sometimes commits one, and then sometimes checkpoints the journal. For each crash some unsynchronized writes are lost,
//! out of order and torn; the file is opened again, and the namespace in it must look as after some step of the history, not
//! before the last committed one.
//!
//! `CRASH_HISTORIES` sets the number of histories, `CRASH_SEED` selects one.

mod clock;
mod disk;
mod full;
mod operations;
mod seen;
mod steps;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::thread;

use bytes::Bytes;
use parking_lot::Mutex;
use servicebus_broker::{IdSource as _, Message, SubQueue};
use servicebus_test_support::message::Message as Sent;

use self::disk::{Crash, Progress, SimulatedDisk};
use self::operations::Client;
use self::seen::seen;
use crate::clock::tests::put_by_hand;
use crate::config::NamespaceConfig;
use crate::durable::file::RowFile;
use crate::durable::space::DiskSpace;
use crate::durable::{Batch, Disk, Store, Table};
use crate::failures::Failures;
use crate::namespace::tests::{active, path};
use crate::namespace::{Contents, Ids, Namespace};

/// The default number of histories.
const HISTORIES: u64 = 200;
/// Operations of each of the two processes of a history.
const OPERATIONS: usize = 12;

#[test]
fn committed_changes_survive_a_crash_at_every_write() {
    let variable = |name| {
        std::env::var(name)
            .ok()
            .map(|text| text.parse().expect(name))
    };
    let (from, to) = match variable("CRASH_SEED") {
        Some(seed) => (seed, seed + 1),
        None => (0, variable("CRASH_HISTORIES").unwrap_or(HISTORIES)),
    };
    let (next, crashes) = (AtomicU64::new(from), AtomicU64::new(0));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= to {
                return;
            }
            let _named = Named(seed);
            crashes.fetch_add(run(seed), Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        for _ in 0..threads {
            scope.spawn(work);
        }
    });
    let crashes = crashes.into_inner();
    eprintln!("{} histories, {crashes} crashes", to - from);
    assert!(crashes > to - from, "each history has some");
}

/// Prints which history failed.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("this was history {0}: CRASH_SEED={0}", self.0);
        }
    }
}

/// Random choices by a seed.
pub(super) struct SeededRng(Ids);

impl SeededRng {
    fn new(seed: u64) -> Self {
        Self(Ids::new(Some(seed), 7))
    }

    fn below(&mut self, limit: usize) -> usize {
        let drawn = self.0.next() % limit as u64;
        usize::try_from(drawn).expect("it is below a number of this size")
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }
}

/// The state of a namespace after each step of a history, the first before any.
pub(super) struct Steps {
    store: Arc<Store>,
    all: Mutex<Vec<Step>>,
    done: AtomicUsize,
}

struct Step {
    seen: Vec<String>,
    /// The sequence number of the last change.
    sequence: u64,
    /// Ids that duplicate detection knows.
    known: BTreeSet<String>,
}

impl Steps {
    /// Records the state after a step.
    pub(super) fn add(&self, namespace: &Namespace, known: &BTreeSet<String>) {
        let mut all = self.all.lock();
        all.push(Step {
            seen: seen(namespace),
            sequence: self.store.sequence(),
            known: known.clone(),
        });
        self.done.store(all.len() - 1, Ordering::Release);
    }
}

/// The contents of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Content {
    rows: BTreeMap<Vec<u8>, Bytes>,
    bodies: BTreeMap<Vec<u8>, Bytes>,
}

impl Content {
    fn read(disk: &dyn Disk) -> Self {
        let mut content = Self::default();
        let Self { rows, bodies } = &mut content;
        for (table, all) in [(Table::Rows, rows), (Table::Bodies, bodies)] {
            let read = disk.read(table, &[], &mut |key, row| {
                all.insert(key.to_vec(), Bytes::copy_from_slice(row));
                Ok(())
            });
            read.expect("it is whole");
        }
        content
    }

    fn apply(&mut self, batch: &Batch) {
        for prefix in &batch.removed {
            self.rows.retain(|key, _| !key.starts_with(prefix));
        }
        let change = |all: &mut BTreeMap<Vec<u8>, Bytes>, key, row: &Option<Bytes>| match row {
            Some(row) => drop(all.insert(key, row.clone())),
            None => drop(all.remove(&key)),
        };
        for (key, row) in &batch.rows {
            change(&mut self.rows, key.clone(), row);
        }
        for (body, bytes) in &batch.bodies {
            change(&mut self.bodies, body.0.get().to_be_bytes().to_vec(), bytes);
        }
    }
}

/// A writer that the test controls.
struct ManualWriter {
    disk: Box<dyn Disk>,
    failures: Failures,
    content: Content,
    /// The contents of the store after each transaction, and how many steps had ended before it.
    taken: Vec<(Content, usize)>,
}

impl ManualWriter {
    /// Writes the pending batch; then checkpoints the journal up to `times` times.
    fn write(&mut self, store: &Store, done: usize, times: usize) {
        if !store.pending.lock().is_awaited {
            return;
        }
        let (batch, sequence) = store.take_batch();
        self.content.apply(&batch);
        self.taken.push((self.content.clone(), done));
        // On a failure, the waits for it fail.
        drop(store.commit(self.disk.as_mut(), batch, sequence, &self.failures));
        let left = Cell::new(times);
        let may_continue = || left.replace(left.get().saturating_sub(1)) > 0;
        self.disk.checkpoint(&may_continue).expect("there is room");
    }
}

/// An emulator without connections, whose clock the test controls.
struct Process {
    store: Arc<Store>,
    namespace: Namespace,
    put: Arc<AtomicI64>,
    disk: Box<dyn Disk>,
    content: Content,
    failures: Failures,
}

impl Process {
    fn start(file: &SimulatedDisk, space: DiskSpace) -> Self {
        Self::start_at(file, space, 0)
    }

    /// Starts when the machine's clock is `ahead` milliseconds ahead.
    fn start_at(file: &SimulatedDisk, space: DiskSpace, ahead: i64) -> Self {
        let is_new = file.is_empty();
        let [rows, journal] = file.files();
        let disk = RowFile::new(rows, journal, space, is_new).expect("it can be opened");
        let content = Content::read(&disk);
        let store = Store::open(Box::new(disk), "rows".into()).expect("it can be read");
        let (put, real) = put_by_hand();
        put.store(ahead, Ordering::Relaxed);
        let config = NamespaceConfig::new("one");
        let failures = Failures::default();
        let own = (store.namespace("one"), Contents::Declared { prunes: false });
        let namespace = Namespace::open_stored(config, real, Some(1), false, failures.clone(), own);
        let namespace = namespace.expect("it is whole");
        store.remove_orphans().expect("it can be read");
        let Some(disk) = store.disk.lock().take() else {
            panic!("nothing is written yet");
        };
        Self {
            store,
            namespace,
            put,
            disk,
            content,
            failures,
        }
    }
}

/// Runs a history of two processes, the second of which continues after a crash of the first; returns how many crashes were
/// checked.
fn run(seed: u64) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime can be made");
    let _in = runtime.enter();
    let mut rng = SeededRng::new(seed);
    let mut history = History::of(SimulatedDisk::default(), BTreeSet::new(), 0, &mut rng);
    let (crashes, left, known) = history.crash(&mut rng);
    let mut history = History::of(left, known, 10_000, &mut rng);
    crashes + history.crash(&mut rng).0
}

/// The actions of one process until it crashed.
struct History {
    before: SimulatedDisk,
    file: SimulatedDisk,
    steps: Arc<Steps>,
    taken: Vec<(Content, usize)>,
}

impl History {
    fn of(
        file: SimulatedDisk,
        known: BTreeSet<String>,
        messages: u64,
        rng: &mut SeededRng,
    ) -> Self {
        let is_new = file.is_empty();
        let process = Process::start(&file, DiskSpace::new(Box::new(())));
        let mut before = file.copy();
        let store = &process.store;
        let steps = Arc::new(Steps {
            store: Arc::clone(store),
            all: Mutex::default(),
            done: AtomicUsize::new(0),
        });
        steps.add(&process.namespace, &known);
        let progress = Arc::clone(&steps);
        let progress: Progress = Arc::new(move || {
            let committed = progress.store.committed.borrow().clone().unwrap_or(0);
            (committed, progress.done.load(Ordering::Acquire))
        });
        file.begin_log(Arc::clone(&progress));
        let writer = Arc::new(Mutex::new(ManualWriter {
            disk: process.disk,
            failures: process.failures,
            content: process.content.clone(),
            taken: vec![(process.content, 0)],
        }));
        let (mut chance, own) = (SeededRng::new(rng.0.next()), Arc::clone(&writer));
        let now = Arc::clone(&steps);
        *store.between.lock() = Some(Box::new(move |store| {
            if chance.one_in(2) {
                let times = [usize::MAX, 2, 1, 0, 0, 0, 0, 0][chance.below(8)];
                let done = now.done.load(Ordering::Acquire);
                own.lock().write(store, done, times);
            }
        }));
        let seed = rng.0.next();
        let own = Arc::clone(&steps);
        let mut client = Client::new(process.put, seed, messages, known, own);
        if is_new {
            client.set_up(&process.namespace);
            if !rng.one_in(8) {
                // Crashes of this are much the same in each history.
                writer
                    .lock()
                    .write(store, steps.done.load(Ordering::Acquire), 0);
                before = file.copy();
                file.begin_log(progress);
            }
        }
        for _ in 0..OPERATIONS {
            client.act(&process.namespace, rng);
        }
        // A crash may come before the last batch is written.
        if rng.one_in(2) {
            writer
                .lock()
                .write(store, steps.done.load(Ordering::Acquire), 0);
        }
        *store.between.lock() = None;
        let taken = std::mem::take(&mut writer.lock().taken);
        Self {
            before,
            file,
            steps,
            taken,
        }
    }

    /// Checks every crash; returns their number, the disk that one of them left, and the ids that duplicate detection knows
    /// there.
    fn crash(&mut self, rng: &mut SeededRng) -> (u64, SimulatedDisk, BTreeSet<String>) {
        let (mut count, mut left) = (0, None);
        let all = self.steps.all.lock();
        let mut looked = vec![None; self.taken.len()];
        let mut chance = SeededRng::new(rng.0.next());
        self.file.crashes(&self.before, rng, |crash| {
            count += 1;
            let committed = (0..=crash.done)
                .rev()
                .find(|at| all[*at].sequence <= crash.committed)
                .unwrap_or(0);
            let at = self.look(&crash, &all, &mut looked, committed);
            if left.is_none() || chance.one_in(count) {
                left = Some((crash.disk, all[at].known.clone()));
            }
        });
        let (left, known) = left.expect("the end of the history is a crash");
        (count as u64, left, known)
    }

    /// Returns the step after which the namespace looks as a crash left it, which must not be before the step `committed`.
    fn look(
        &self,
        crash: &Crash,
        all: &[Step],
        looked: &mut [Option<usize>],
        committed: usize,
    ) -> usize {
        let [rows, journal] = crash.disk.copy().files();
        let opened = RowFile::new(rows, journal, DiskSpace::new(Box::new(())), false);
        let content = Content::read(&opened.expect("it can be opened after a crash"));
        let number = self.taken.iter().rposition(|(taken, _)| *taken == content);
        let number =
            number.expect("a transaction is torn: what is in the store was never written together");
        let at = *looked[number].get_or_insert_with(|| {
            let done = self.taken[number].1;
            recover(&crash.disk, all, done)
        });
        assert!(
            at >= committed || all[at].seen == all[committed].seen,
            "step {committed} was committed, and a crash left what was there after step {at}:\n{}",
            difference(&all[committed].seen, &all[at].seen)
        );
        at
    }
}

/// Returns the step after which the namespace in a file looks; the one after `done` had begun.
fn recover(file: &SimulatedDisk, all: &[Step], done: usize) -> usize {
    let process = Process::start(&file.copy(), DiskSpace::new(Box::new(())));
    let found = seen(&process.namespace);
    let possible = done..all.len().min(done + 2);
    let at = possible.clone().rev().find(|at| all[*at].seen == found);
    let at = at.unwrap_or_else(|| {
        panic!(
            "it looks neither as after step {done} nor as after the next:\n{}\n{}",
            difference(&all[done].seen, &found),
            difference(&all[possible.end - 1].seen, &found)
        )
    });
    let known: BTreeSet<&String> = all.iter().flat_map(|step| &step.known).collect();
    let queue = process.namespace.entity(&path("d"));
    for id in known {
        let Some(queue) = &queue else {
            continue;
        };
        let sent = Sent::new(id).session("s0").body("x").encode();
        let message = Message::parse(sent.into(), &mut Ids::new(Some(1), 1));
        let message = message.expect("it is legal");
        let sent = process
            .namespace
            .operate_as_broker(queue, |queue, cx| queue.send(cx, message));
        let is_known = sent.expect("there is room").is_none();
        assert_eq!(is_known, all[at].known.contains(id), "{id} at step {at}");
    }
    at
}

/// Returns the lines that only one of the two has.
fn difference(expected: &[String], found: &[String]) -> String {
    let of = |mark, own: &[String], other: &[String]| {
        let own = own.iter().filter(|line| !other.contains(line));
        own.map(|line| format!("{mark} {line}\n"))
            .collect::<String>()
    };
    of("-", expected, found) + &of("+", found, expected)
}
