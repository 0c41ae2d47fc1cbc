//! The data directory: stores changes of entities beyond the process, committed to a disk in batches.
//!
//! An operation appends its changes under the lock of its entity ([`NamespaceStore::append_changes`]), so that their order
//! is that of the operations. One thread commits at a time: a batch has every change that was appended during the previous
//! commit. An operation and its follow-ups in other entities are one [`UnitOfWork`], and batches are cut between units, so that a
//! batch has all of an operation or nothing. A client gets an answer only after the changes behind it are committed
//! ([`Store::flush`]).
//!
//! Batches are committed to a [`Disk`]: a file, or memory in tests.

#[cfg(feature = "durable")]
mod backend;
mod batch;
mod bodies;
mod clock_state;
mod definition;
#[cfg(feature = "durable")]
mod directory;
#[cfg(feature = "durable")]
mod file;
#[cfg(feature = "durable")]
mod journal;
mod load;
#[cfg(feature = "cli")]
mod offline;
#[cfg(feature = "durable")]
mod reader;
mod rule;
#[cfg(feature = "durable")]
mod shrink;
mod space;
#[cfg(feature = "cli")]
mod walk;
mod writer;

use std::collections::{BTreeMap, BTreeSet};
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

use crate::blocking;
use crate::failures::Failures;
use crate::lock_order::{Ordered, Rank, take};
use crate::namespace::AuthorizationRule;
pub(crate) use batch::Batch;
#[cfg(any(feature = "durable", test))]
pub(crate) use bodies::Snapshot;
#[cfg(feature = "cli")]
pub(crate) use bodies::fill;
pub(crate) use bodies::{Bodies, MissingBodies};
use bodies::{BodyCache, CachedBody};
pub(crate) use clock_state::ClockState;
pub(crate) use definition::Definition;
#[cfg(feature = "durable")]
pub(crate) use file::open;
pub(crate) use load::{LoadError, LoadedEntity};
#[cfg(feature = "cli")]
pub(crate) use offline::{OfflineStore, compact, open_offline};
use space::DiskSpace;
#[cfg(feature = "cli")]
pub(crate) use walk::{Visitor, walk};

#[cfg(test)]
pub(crate) mod tests;

/// Rows by key; `None` removes the row.
pub(crate) type Rows = BTreeMap<Vec<u8>, Option<Bytes>>;

/// Reads one row: its key and its value.
pub(crate) type EachRow<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), LoadError> + 'a;

/// A transactional store of rows and message bodies.
pub(crate) trait Disk: Send {
    fn space(&self) -> Arc<DiskSpace>;

    /// Commits the whole batch or nothing; returns when it is as durable as [`Sync`] asks for.
    fn write(&mut self, batch: Batch) -> Result<(), String>;

    /// Whether the next write has to wait for a checkpoint.
    fn needs_checkpoint(&self) -> bool {
        false
    }

    /// Moves journal records into the database while `may_continue`.
    fn checkpoint(&mut self, _may_continue: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }

    /// Calls `each` for the rows whose keys begin with `prefix`, in order, until it fails.
    fn read(&self, table: Table, prefix: &[u8], each: &mut EachRow<'_>) -> Result<(), LoadError>;

    fn body(&self, body: BodyId) -> Result<Option<Bytes>, LoadError>;

    /// The number of bodies, and the highest body id.
    fn bodies(&self) -> Result<(u64, u64), LoadError>;

    /// Reads bodies concurrently with writes.
    fn reader(&self) -> Box<dyn Bodies>;

    /// Gives unused space back to the file system while `may_continue`.
    fn shrink(&mut self, _may_continue: &dyn Fn() -> bool) -> Result<(), String> {
        Ok(())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Table {
    Rows,
    /// Message bodies by id.
    Bodies,
}

/// What a committed change survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sync {
    /// Loss of power: each commit is synchronized to the disk.
    #[default]
    Always,
    /// The end of the process, also by a kill; the operating system decides when to write to the disk.
    Process,
}

impl Sync {
    /// All values with their names.
    pub const WORDS: [(&str, Self); 2] = [("always", Self::Always), ("process", Self::Process)];

    /// The value of this name; [`Sync::Always`] for an unknown one.
    #[cfg(feature = "cli")]
    pub(crate) fn from_name(name: &str) -> Self {
        let found = Self::WORDS.into_iter().find(|(own, _)| *own == name);
        found.map_or(Self::Always, |(_, sync)| sync)
    }
}

/// A commit failed; no later one is tried.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "The data directory can no longer be written: {0}. The emulator accepts no changes until it is restarted."
)]
pub(crate) struct WriteFailed(pub(crate) Arc<str>);

/// The data directory with the changes that are not committed yet.
pub(crate) struct Store {
    pending: Mutex<Pending>,
    /// Notified when a client waits for a commit, and when the store closes.
    wake: Condvar,
    /// Read-locked by every operation, write-locked while the next batch is cut.
    units: RwLock<()>,
    /// The sequence number of the last appended change for which a client may wait.
    sequence: AtomicU64,
    /// The sequence number up to which changes are committed, or why commits have ended.
    committed: watch::Sender<Result<u64, WriteFailed>>,
    last_body: AtomicU64,
    body_reader: Box<dyn Bodies>,
    /// No other lock of the store is taken while this one is held.
    body_cache: Mutex<BodyCache>,
    space: Arc<DiskSpace>,
    /// `None` once the store is closed or a commit has failed.
    disk: Mutex<Option<Box<dyn Disk>>>,
    /// The writer thread, once it is started.
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Where the writer reports failed commits.
    failures: OnceLock<Failures>,
    namespaces: Mutex<NamespaceNumbers>,
    /// The file that errors name.
    path: PathBuf,
    /// Called by a simulation wherever the writer thread could cut a batch.
    #[cfg(test)]
    between: Mutex<Option<Between>>,
}

#[cfg(test)]
type Between = Box<dyn FnMut(&Store) + Send>;

#[derive(Debug, Default)]
struct Pending {
    batch: Batch,
    counts: BodyCounts,
    /// Whether a client waits for the batch; if none does, it may wait for an idle interval.
    is_awaited: bool,
    is_closing: bool,
    /// Whether a thread is committing, checkpointing or shrinking.
    is_writing: bool,
    /// Consecutive idle intervals without changes.
    idle_intervals: u32,
    /// Whether changes are discarded, as if the process had been killed.
    is_discarded: bool,
    /// The numbers of removed namespaces, whose later changes are replaced by another removal.
    removed: BTreeSet<u32>,
}

/// The numbers of namespaces in row keys.
#[derive(Debug, Default)]
struct NamespaceNumbers {
    /// Stored namespaces that are not served yet, by lower-case name.
    stored: BTreeMap<String, u32>,
    last: u32,
}

/// The rows of one namespace.
#[derive(Debug, Clone)]
pub(crate) struct NamespaceStore {
    store: Arc<Store>,
    number: u32,
}

/// A unit of work: an operation with its follow-ups, which are committed together.
pub(crate) type UnitOfWork<'a> = Ordered<RwLockReadGuard<'a, ()>>;

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut store = formatter.debug_struct("Store");
        store.field("sequence", &self.sequence());
        store.finish_non_exhaustive()
    }
}

impl Store {
    /// A store on `disk`; [`Store::start`] starts its writer thread.
    pub(crate) fn open(disk: Box<dyn Disk>, path: PathBuf) -> Result<Arc<Self>, LoadError> {
        let (_, last_body) = disk.bodies()?;
        let store = Arc::new(Self {
            pending: Mutex::default(),
            wake: Condvar::new(),
            units: RwLock::new(()),
            sequence: AtomicU64::new(0),
            committed: watch::Sender::new(Ok(0)),
            last_body: AtomicU64::new(last_body),
            body_reader: disk.reader(),
            body_cache: Mutex::default(),
            space: disk.space(),
            disk: Mutex::new(Some(disk)),
            thread: Mutex::default(),
            failures: OnceLock::new(),
            namespaces: Mutex::default(),
            path,
            #[cfg(test)]
            between: Mutex::default(),
        });
        let (declared, incomplete) = store.stored_namespaces()?;
        let mut numbers = store.namespaces.lock();
        let used = declared.iter().map(|own| &own.number).chain(&incomplete);
        numbers.last = used.max().copied().unwrap_or(0);
        for number in incomplete {
            store.pending.lock().batch.remove(load::prefix(number));
        }
        let stored = declared.into_iter();
        numbers.stored = stored
            .map(|own| (own.name.to_ascii_lowercase(), own.number))
            .collect();
        drop(numbers);
        Ok(store)
    }

    /// The rows of the namespace of this name: its stored ones at the first call, none at later ones.
    pub(crate) fn namespace(self: &Arc<Self>, name: &str) -> NamespaceStore {
        let mut numbers = self.namespaces.lock();
        let stored = numbers.stored.remove(&name.to_ascii_lowercase());
        let number = stored.unwrap_or_else(|| {
            numbers.last += 1;
            numbers.last
        });
        NamespaceStore {
            store: Arc::clone(self),
            number,
        }
    }

    /// Whether the disk has space for what clients send.
    pub(crate) fn has_space(&self) -> bool {
        self.space.is_available()
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Stores the resources of Azure Resource Manager that are not namespaces or entities.
    pub(crate) fn append_resources(&self, row: Vec<u8>) {
        self.append(true, |pending| {
            pending.batch.put(vec![load::RESOURCES], row)
        });
    }

    /// Signals the writer thread to commit pending changes and end.
    pub(crate) fn begin_close(&self) {
        self.pending.lock().is_closing = true;
        self.space.set_may_wait(false);
        self.wake.notify_all();
    }

    /// Commits what is pending and releases the directory; blocks until then.
    pub(crate) fn close(&self) {
        self.begin_close();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            // A panic of the thread has been reported.
            drop(thread.join());
        }
        drop(self.disk.lock().take());
    }

    /// Discards pending and later changes, as a kill of the process would.
    pub(crate) fn discard(&self) {
        let mut pending = self.pending.lock();
        pending.is_discarded = true;
        pending.batch = Batch::default();
    }

    fn next_body(&self) -> BodyId {
        let last = self.last_body.fetch_add(1, Ordering::Relaxed);
        BodyId(NonZeroU64::MIN.saturating_add(last))
    }

    /// Calls `between` if no unit of work is open.
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

    /// Appends a change to the pending batch. The writer commits it at once where a client may wait for it.
    fn append(&self, is_awaited: bool, change: impl FnOnce(&mut Pending)) {
        #[cfg(test)]
        self.interleave();
        let mut pending = self.pending.lock();
        if !pending.is_discarded {
            change(&mut pending);
        }
        if is_awaited {
            pending.is_awaited = true;
            self.sequence.fetch_add(1, Ordering::Release);
            // A thread that is writing looks for pending changes when it ends.
            if !pending.is_writing {
                drop(pending);
                self.wake.notify_one();
            }
        }
    }
}

impl NamespaceStore {
    /// Begins a unit of work; a thread has at most one.
    pub(crate) fn begin_unit(&self) -> UnitOfWork<'_> {
        #[cfg(test)]
        self.store.interleave();
        take(Rank::UnitOfWork, || blocking::read(&self.store.units))
    }

    /// Appends what an operation changed in `entity`, which is locked, with the namespace's clock; `definition` renders the
    /// entity's definition if that changed.
    pub(crate) fn append_changes(
        &self,
        entity: &mut Entity,
        clock: impl FnOnce() -> ClockState,
        definition: impl FnOnce(&Entity) -> Vec<u8>,
    ) {
        let id = entity.id();
        let Some(mut changes) = entity.take_changes(&mut || self.store.next_body()) else {
            if entity.is_deleted() && entity.check_not_broken().is_err() {
                // `remove_orphans` removes the entity's bodies at the next start.
                self.remove(self.entity_key(id));
            }
            return;
        };
        let definition = changes.definition.then(|| definition(entity));
        let clock = (self.key(load::CLOCK), clock().encode());
        let entity_key = self.entity_key(id);
        let is_awaited = changes.is_awaited || changes.deleted;
        self.store.append(is_awaited, |pending| {
            let is_removed = pending.removed.contains(&self.number);
            let Pending { batch, counts, .. } = pending;
            counts.follow(&mut changes, |change| match change {
                // No row would refer to it.
                BodyChange::Write(..) if is_removed => {}
                BodyChange::Write(body, bytes) => drop(batch.bodies.insert(body, Some(bytes))),
                // Its removal was appended by this unit of work.
                BodyChange::Stay(body) => drop(batch.bodies.remove(&body)),
                BodyChange::Remove(body) => drop(batch.bodies.insert(body, None)),
            });
            if is_removed {
                return batch.remove(self.prefix());
            }
            let cached = changes.gained.into_iter().filter_map(|gained| {
                Some(CachedBody {
                    namespace: self.number,
                    entity: id,
                    place: gained.place,
                    body: gained.body,
                    length: gained.bytes?.len() as u64,
                })
            });
            batch.cached.extend(cached);
            batch.put(clock.0, clock.1);
            if changes.deleted {
                batch.remove(entity_key.clone());
            }
            if let Some(definition) = definition {
                let key = [&entity_key[..], &[load::DEFINITION]].concat();
                batch.put(key, definition);
            }
            for (key, row) in changes.rows {
                let mut whole = entity_key.clone();
                key.encode(&mut whole);
                batch.rows.insert(whole, row.map(Bytes::from));
            }
        });
    }

    /// Removes the rows of the namespace for good: requests that found it before may still change it. The bodies of its messages
    /// are removed with its entities, or by [`Store::remove_orphans`] at the next start.
    pub(crate) fn remove_namespace(&self) {
        self.stop_serving();
        self.append(true, |pending| {
            pending.batch.remove(self.prefix());
            pending.removed.insert(self.number);
        });
    }

    pub(crate) fn append_clock(&self, clock: &ClockState) {
        self.append_row(load::CLOCK, clock.encode());
    }

    /// Stores the configuration that declares the namespace, without and with its entities.
    pub(crate) fn append_declaration(&self, declaration: String, whole: String) {
        self.append(true, |pending| {
            let batch = &mut pending.batch;
            batch.put(self.key(load::DECLARATION), declaration.into());
            batch.put(self.key(load::WHOLE_DECLARATION), whole.into());
        });
    }

    /// Stores the authorization rules that were added to the declared ones.
    pub(crate) fn append_keys(&self, rules: &[AuthorizationRule]) {
        self.append_row(load::KEYS, definition::keys_row(rules));
    }

    fn remove(&self, prefix: Vec<u8>) {
        self.append(true, |pending| pending.batch.remove(prefix));
    }

    fn append_row(&self, tag: u8, row: Vec<u8>) {
        self.append(true, |pending| pending.batch.put(self.key(tag), row));
    }

    fn append(&self, is_awaited: bool, change: impl FnOnce(&mut Pending)) {
        self.store.append(is_awaited, |pending| {
            match pending.removed.contains(&self.number) {
                false => change(pending),
                // The client waits for a commit, which requires a change.
                true => pending.batch.remove(self.prefix()),
            }
        });
    }

    fn prefix(&self) -> Vec<u8> {
        load::prefix(self.number)
    }

    fn key(&self, tag: u8) -> Vec<u8> {
        let mut key = self.prefix();
        key.push(tag);
        key
    }

    fn entity_key(&self, id: EntityId) -> Vec<u8> {
        let mut key = self.key(load::ENTITY);
        key.extend(id.0.to_be_bytes());
        key
    }
}
