//! What outlives the process, where a directory for it was given: changes of entities, written in groups.
//!
//! An operation says what it changed under the lock of its entity ([`Store::keep`]), so that rows stand here in the order in which
//! they came about. One thread writes: everything that has come while it wrote goes with the next transaction. An operation and
//! what follows from it in other entities is one [`Unit`], and the thread begins between units, so that a transaction has all of
//! an operation or nothing. What a client is told waits until what it tells is written ([`Store::written`]).
//!
//! Where the rows are written is behind [`Disk`]: a file, or memory in tests.

#[cfg(feature = "cli")]
mod at_rest;
#[cfg(feature = "durable")]
mod backend;
mod bodies;
mod definition;
#[cfg(feature = "durable")]
mod directory;
#[cfg(feature = "durable")]
mod file;
#[cfg(feature = "durable")]
mod journal;
mod kept_clock;
mod load;
#[cfg(feature = "durable")]
mod reader;
mod room;
#[cfg(feature = "durable")]
mod shrink;
#[cfg(feature = "cli")]
mod walk;
mod writer;

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use bytes::Bytes;
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard};
use servicebus_broker::{BodyChange, BodyCounts, BodyId, Entity, EntityId};
use thiserror::Error;
use tokio::sync::watch;

use crate::failures::Failures;
use crate::lock_order::{Ordered, Rank, take};
use crate::namespace::AuthorizationRule;
#[cfg(feature = "cli")]
pub(crate) use at_rest::{AtRest, compact, open_at_rest};
#[cfg(any(feature = "durable", test))]
pub(crate) use bodies::Snapshot;
#[cfg(feature = "cli")]
pub(crate) use bodies::fill;
pub(crate) use bodies::{Bodies, Missing};
use bodies::{Fresh, FreshMessages};
pub(crate) use definition::Definition;
#[cfg(feature = "durable")]
pub(crate) use file::open;
pub(crate) use kept_clock::KeptClock;
pub(crate) use load::{LoadError, LoadedEntity};
use room::Room;
#[cfg(feature = "cli")]
pub(crate) use walk::{Visitor, walk};

#[cfg(all(test, feature = "durable"))]
mod crash;
#[cfg(test)]
pub(crate) mod tests;

/// Rows by their keys, in order; none is a row that is to be removed.
pub(crate) type Rows = BTreeMap<Vec<u8>, Option<Bytes>>;

/// What is done with a row, by its key.
pub(crate) type EachRow<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), LoadError> + 'a;

/// Where rows are written.
pub(crate) trait Disk: Send {
    /// Whether there is room.
    fn room(&self) -> Arc<Room>;

    /// Writes all of it or nothing; returns when it is as safe as was asked for.
    fn write(&mut self, batch: Batch) -> Result<(), String>;

    /// Whether the next write takes long, because much that was written is put where it is to stay.
    fn is_much(&self) -> bool {
        false
    }

    /// Puts what was written where it is to stay, as long as nothing else is to be done.
    fn settle(&mut self, _is_wanted: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }

    /// Hands the rows whose keys begin with `prefix` to `each`, in order, until that fails.
    fn read(&self, table: Table, prefix: &[u8], each: &mut EachRow<'_>) -> Result<(), LoadError>;

    /// The bytes under a number.
    fn body(&self, body: BodyId) -> Result<Option<Bytes>, LoadError>;

    /// How many messages' bytes there are, and the last number of any.
    fn bodies(&self) -> Result<(u64, u64), LoadError>;

    /// What gives them out while it is written.
    fn reader(&self) -> Box<dyn Bodies>;

    /// Gives room back that nothing is in, as long as nothing else is to be done.
    fn shrink(&mut self, _is_wanted: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }
}

/// Which rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    /// What there is to know.
    Rows,
    /// The bytes of messages, by their numbers.
    Bodies,
}

/// What is written together.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// Rows whose keys begin with these are removed, before any is written.
    pub(crate) removed: Vec<Vec<u8>>,
    pub(crate) rows: Rows,
    pub(crate) bodies: BTreeMap<BodyId, Option<Bytes>>,
    /// The messages that have these bytes in memory.
    fresh: Vec<Fresh>,
}

/// How safe what a client was told is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// It survives loss of power: the disk has been told to write.
    #[default]
    Always,
    /// It survives the end of the process, however that comes; the operating system writes when it likes.
    Process,
}

impl Sync {
    /// All of them, by what they are called.
    pub const WORDS: [(&str, Self); 2] = [("always", Self::Always), ("process", Self::Process)];

    /// The one that is called this; the safest of no other.
    #[cfg(feature = "cli")]
    pub(crate) fn of_word(word: &str) -> Self {
        let mut all = Self::WORDS.into_iter();
        let found = all.find(|(own, _)| *own == word);
        found.map_or(Self::Always, |(_, sync)| sync)
    }
}

/// Nothing can be written any more.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "The data directory cannot be written any more: {0}. Nothing is accepted until the emulator is restarted."
)]
pub(crate) struct WriteFailed(pub(crate) Arc<str>);

/// Everything that is kept, and what waits to be written.
pub(crate) struct Store {
    pending: Mutex<Pending>,
    /// Notified when something waits to be written, and when the store closes.
    wake: Condvar,
    /// Held by every operation, and by the writer while it takes what waits.
    units: RwLock<()>,
    /// How many changes were said that a client may wait for.
    said: AtomicU64,
    /// How many of them are written, or why no more are.
    written: watch::Sender<Result<u64, WriteFailed>>,
    bodies: AtomicU64,
    bodies_on_disk: Box<dyn Bodies>,
    /// Locked by itself.
    fresh: Mutex<FreshMessages>,
    room: Arc<Room>,
    /// Until nothing is written any more.
    disk: Mutex<Option<Box<dyn Disk>>>,
    /// The thread that writes, once it has begun.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Where it tells what fails.
    failures: OnceLock<Failures>,
    /// Which namespaces are kept and not served yet, by their names in lower case, and the last number that was given to one.
    numbers: Mutex<(BTreeMap<String, u32>, u32)>,
    /// What is told to be damaged when something is.
    place: PathBuf,
    /// What a simulation does wherever the thread that writes could take what waits.
    #[cfg(test)]
    between: Mutex<Option<Between>>,
}

#[cfg(test)]
type Between = Box<dyn FnMut(&Store) + Send>;

#[derive(Debug, Default)]
struct Pending {
    batch: Batch,
    counts: BodyCounts,
    /// Whether what waits is waited for by more than the next moment of leisure.
    is_awaited: bool,
    is_closing: bool,
    /// Whether a thread has begun to write, or to give room back.
    is_writing: bool,
    /// For how many moments of leisure nothing was to be written.
    rests: u32,
    /// Whether nothing is taken down any more, as if the process had been killed.
    is_lost: bool,
}

/// The rows of one namespace.
#[derive(Debug, Clone)]
pub(crate) struct NamespaceStore {
    store: Arc<Store>,
    number: u32,
}

/// An operation with what follows from it: what it changes is written together.
pub(crate) type Unit<'a> = Ordered<RwLockReadGuard<'a, ()>>;

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let said = self.said.load(Ordering::Relaxed);
        formatter
            .debug_struct("Store")
            .field("said", &said)
            .finish_non_exhaustive()
    }
}

impl Store {
    /// A store that writes to `disk`, on a thread of its own.
    pub(crate) fn begin(disk: Box<dyn Disk>, place: PathBuf) -> Result<Arc<Self>, LoadError> {
        let (_, last) = disk.bodies()?;
        let store = Arc::new(Self {
            pending: Mutex::default(),
            wake: Condvar::new(),
            units: RwLock::new(()),
            said: AtomicU64::new(0),
            written: watch::Sender::new(Ok(0)),
            bodies: AtomicU64::new(last),
            bodies_on_disk: disk.reader(),
            fresh: Mutex::default(),
            room: disk.room(),
            disk: Mutex::new(Some(disk)),
            thread: Mutex::default(),
            failures: OnceLock::new(),
            numbers: Mutex::default(),
            place,
            #[cfg(test)]
            between: Mutex::default(),
        });
        for declared in store.declared()? {
            let mut numbers = store.numbers.lock();
            numbers.1 = numbers.1.max(declared.number);
            numbers
                .0
                .insert(declared.name.to_ascii_lowercase(), declared.number);
        }
        Ok(store)
    }

    /// The rows of the namespace of this name, those that are kept of it if it was not asked for before.
    pub(crate) fn namespace(self: &Arc<Self>, name: &str) -> NamespaceStore {
        let mut numbers = self.numbers.lock();
        let kept = numbers.0.remove(&name.to_ascii_lowercase());
        let number = kept.unwrap_or_else(|| {
            numbers.1 += 1;
            numbers.1
        });
        NamespaceStore {
            store: Arc::clone(self),
            number,
        }
    }

    /// Whether what clients send can be written.
    pub(crate) fn has_room(&self) -> bool {
        self.room.is_there()
    }

    /// The file that is written.
    pub(crate) fn place(&self) -> &Path {
        &self.place
    }

    /// Takes down what Azure Resource Manager knows beside namespaces.
    pub(crate) fn keep_resources(&self, row: Vec<u8>) {
        self.push(true, |pending| {
            let key = vec![load::RESOURCES];
            pending.batch.rows.insert(key, Some(row.into()));
        });
    }

    /// Lets the thread that writes end when it has written what is left.
    pub(crate) fn begin_close(&self) {
        self.pending.lock().is_closing = true;
        self.room.set_patient(false);
        self.wake.notify_all();
    }

    /// Writes what is left and lets go of the directory; blocks until that is done.
    pub(crate) fn close(&self) {
        self.begin_close();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // One that has panicked has told of it.
            drop(thread.join());
        }
        drop(self.disk.lock().take());
    }

    /// Forgets what waits to be written, and takes nothing down any more.
    pub(crate) fn lose(&self) {
        let mut pending = self.pending.lock();
        pending.is_lost = true;
        pending.batch = Batch::default();
    }

    fn next_body(&self) -> BodyId {
        let last = self.bodies.fetch_add(1, Ordering::Relaxed);
        BodyId(NonZeroU64::MIN.saturating_add(last))
    }

    /// The thread that writes may take what waits now, if no operation has begun.
    #[cfg(test)]
    fn interleave(&self) {
        if self.units.try_write().is_none() {
            return;
        }
        let between = self.between.lock().take();
        if let Some(mut between) = between {
            between(self);
            *self.between.lock() = Some(between);
        }
    }

    fn push(&self, is_awaited: bool, change: impl FnOnce(&mut Pending)) {
        #[cfg(test)]
        self.interleave();
        let mut pending = self.pending.lock();
        if !pending.is_lost {
            change(&mut pending);
        }
        pending.is_awaited |= is_awaited;
        if is_awaited {
            self.said.fetch_add(1, Ordering::Release);
            // Who writes looks again.
            if !pending.is_writing {
                drop(pending);
                self.wake.notify_one();
            }
        }
    }
}

impl NamespaceStore {
    /// Begins an operation. No thread may begin another one before it has ended this.
    pub(crate) fn begin_unit(&self) -> Unit<'_> {
        #[cfg(test)]
        self.store.interleave();
        take(Rank::Unit, || self.store.units.read())
    }

    /// Takes down what an operation changed in an entity, which is locked, and how the clock stands then; `definition` is asked for
    /// when that has changed.
    pub(crate) fn keep(
        &self,
        entity: &mut Entity,
        clock: impl FnOnce() -> KeptClock,
        definition: impl FnOnce(&Entity) -> Vec<u8>,
    ) {
        let id = entity.id();
        let Some(mut changes) = entity.take_changes(&mut || self.store.next_body()) else {
            if entity.is_deleted() && entity.check_whole().is_err() {
                self.forget(id);
            }
            return;
        };
        let definition = changes.definition.then(|| definition(entity));
        let clock = (self.clock_key(), clock().encode());
        self.store
            .push(changes.is_awaited || changes.deleted, |pending| {
                let Pending { batch, counts, .. } = pending;
                counts.follow(&mut changes, |change| match change {
                    BodyChange::Write(body, bytes) => drop(batch.bodies.insert(body, Some(bytes))),
                    // The removal waits here, because an operation is written as a whole.
                    BodyChange::Stay(body) => drop(batch.bodies.remove(&body)),
                    BodyChange::Remove(body) => drop(batch.bodies.insert(body, None)),
                });
                let fresh = changes.gained.into_iter().filter_map(|gained| {
                    Some(Fresh {
                        namespace: self.number,
                        entity: id,
                        place: gained.place,
                        body: gained.body,
                        length: gained.bytes?.len() as u64,
                    })
                });
                batch.fresh.extend(fresh);
                batch.rows.insert(clock.0, Some(clock.1.into()));
                if changes.deleted {
                    batch.remove(self.entity_key(id));
                }
                if let Some(definition) = definition {
                    let key = [&self.entity_key(id)[..], &[load::DEFINITION]].concat();
                    batch.rows.insert(key, Some(definition.into()));
                }
                for (key, row) in changes.rows {
                    let mut whole = self.entity_key(id);
                    key.encode(&mut whole);
                    batch.rows.insert(whole, row.map(Bytes::from));
                }
            });
    }

    /// Removes what is kept of an entity. Bytes to which its rows referred go when the store is opened again.
    fn forget(&self, id: EntityId) {
        self.store
            .push(true, |pending| pending.batch.remove(self.entity_key(id)));
    }

    /// Removes everything that is kept of the namespace.
    pub(crate) fn forget_namespace(&self) {
        self.store
            .push(true, |pending| pending.batch.remove(self.key()));
    }

    /// Takes down how the clock stands.
    pub(crate) fn keep_clock(&self, clock: &KeptClock) {
        let row = Bytes::from(clock.encode());
        self.store.push(true, |pending| {
            pending.batch.rows.insert(self.clock_key(), Some(row));
        });
    }

    /// Takes down as what the namespace was declared.
    pub(crate) fn keep_declaration(&self, declaration: String) {
        self.store.push(true, |pending| {
            let key = [&self.key()[..], &[load::DECLARATION]].concat();
            pending.batch.rows.insert(key, Some(declaration.into()));
        });
    }

    /// Takes down the keys that were added to the namespace.
    pub(crate) fn keep_keys(&self, rules: &[AuthorizationRule]) {
        let row = Bytes::from(definition::keys_row(rules));
        self.store.push(true, |pending| {
            let key = [&self.key()[..], &[load::KEYS]].concat();
            pending.batch.rows.insert(key, Some(row));
        });
    }

    fn clock_key(&self) -> Vec<u8> {
        [&self.key()[..], &[load::CLOCK]].concat()
    }

    fn key(&self) -> Vec<u8> {
        let mut key = vec![load::NAMESPACE];
        key.extend(self.number.to_be_bytes());
        key
    }

    fn entity_key(&self, id: EntityId) -> Vec<u8> {
        let mut key = self.key();
        key.push(load::ENTITY);
        key.extend(id.0.to_be_bytes());
        key
    }
}

impl Batch {
    fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.rows.is_empty() && self.bodies.is_empty()
    }

    fn remove(&mut self, prefix: Vec<u8>) {
        let rows = self.rows.range(prefix.clone()..);
        let rows = rows.take_while(|(key, _)| key.starts_with(&prefix));
        for key in Vec::from_iter(rows.map(|(key, _)| key.clone())) {
            self.rows.remove(&key);
        }
        self.removed.push(prefix);
    }
}
