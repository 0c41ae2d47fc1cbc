//! Group commit: one thread at a time commits all changes that are pending as one batch.

use std::cell::Cell;
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tokio::task::block_in_place;

use super::{Batch, CachedBody, Disk, LoadError, Store, WriteFailed};
use crate::blocking::may_block;
use crate::failures::{Failure, Failures, panic_text};

/// How long changes for which no client waits may stay pending: when an entity was last used, and its namespace's clock.
const IDLE_INTERVAL: Duration = Duration::from_secs(1);

/// Bytes of message bodies that a client's thread commits itself; more would block it for too long.
const INLINE_COMMIT_LIMIT: u64 = 256 << 10;

/// Idle intervals without changes after which the disk is shrunk; a full disk is shrunk without them.
const SHRINK_AFTER: u32 = 5;

/// Steps of a checkpoint on a full disk for which clients wait: they move as many rows as a checkpoint for which a write waits.
const STEPS_WHEN_FULL: u32 = 16;

impl Store {
    /// Reads the disk before the writer thread is started; reads nothing later.
    pub(super) fn read_disk(
        &self,
        read: impl FnOnce(&dyn Disk) -> Result<(), LoadError>,
    ) -> Result<(), LoadError> {
        match self.thread.lock().is_some() {
            true => Ok(()),
            false => self.disk.lock().as_deref().map_or(Ok(()), read),
        }
    }

    /// Starts the writer thread.
    pub(crate) fn start(self: &Arc<Self>, failures: Failures) -> std::io::Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let store = Arc::downgrade(self);
            self.space.set_may_wait(true);
            let failures = self.failures.get_or_init(|| failures).clone();
            let named = thread::Builder::new().name("store".to_owned());
            *thread = Some(named.spawn(move || run(&store, &failures))?);
        }
        Ok(())
    }

    /// The sequence number of the last change for which a client may wait.
    pub(crate) fn sequence(&self) -> u64 {
        self.sequence.load(Ordering::Acquire)
    }

    /// Whether changes up to `sequence` are committed; fails when they never will be.
    pub(crate) fn is_committed(&self, sequence: u64) -> Result<bool, WriteFailed> {
        match &*self.committed.borrow() {
            Ok(committed) => Ok(*committed >= sequence),
            Err(failed) => Err(failed.clone()),
        }
    }

    /// Resolves when changes up to `sequence` are committed; fails when they never will be.
    pub(crate) async fn wait_committed(&self, sequence: u64) -> Result<(), WriteFailed> {
        let mut committed = self.committed.subscribe();
        let waited =
            committed.wait_for(|committed| committed.as_ref().map_or(true, |at| *at >= sequence));
        match waited.await.as_deref() {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(failed)) => Err(failed.clone()),
            Err(_) => Err(WriteFailed("the emulator has stopped".into())),
        }
    }

    /// Resolves when all changes appended until now are committed; fails when they never will be.
    pub(crate) async fn flush(&self) -> Result<(), WriteFailed> {
        let sequence = self.sequence();
        self.commit_inline(sequence);
        self.wait_committed(sequence).await
    }

    /// Commits the pending batch on the calling thread unless another thread is committing: to hand it over to the writer thread
    /// takes two context switches. The writer thread commits what is appended meanwhile.
    pub(crate) fn commit_inline(&self, sequence: u64) {
        if self.is_committed(sequence) != Ok(false) {
            return;
        }
        // On a runtime of one thread all other clients would wait, too. On a full disk the writer thread frees space between commits.
        if !may_block() || !self.has_space() {
            return;
        }
        let Some(failures) = self.failures.get() else {
            return;
        };
        let length = |bodies: &[CachedBody]| bodies.iter().map(|body| body.length).sum::<u64>();
        let mut pending = self.pending.lock();
        if pending.is_writing || length(&pending.batch.cached) > INLINE_COMMIT_LIMIT {
            return;
        }
        pending.is_writing = true;
        drop(pending);
        let is_ready = |disk: &dyn Disk| !disk.needs_checkpoint();
        if self.disk.lock().as_deref().is_some_and(is_ready) {
            block_in_place(|| self.commit_next(failures));
        }
        self.end_writing();
    }

    /// Allows other threads to write.
    pub(super) fn end_writing(&self) {
        let mut pending = self.pending.lock();
        pending.is_writing = false;
        if pending.is_awaited || pending.is_closing {
            self.wake.notify_one();
        }
    }

    /// Commits the pending batch if it has changes; drops the disk if that fails.
    fn commit_next(&self, failures: &Failures) {
        let mut disk = self.disk.lock();
        let Some(own) = disk.as_deref_mut() else {
            return;
        };
        let (batch, sequence) = self.take_batch();
        if !batch.is_empty() && self.commit(own, batch, sequence, failures).is_err() {
            *disk = None;
        }
    }

    /// Commits a batch whose last change is `sequence`, and then resolves the waits for it.
    pub(super) fn commit(
        &self,
        disk: &mut dyn Disk,
        mut batch: Batch,
        sequence: u64,
        failures: &Failures,
    ) -> Result<(), WriteFailed> {
        let cached = mem::take(&mut batch.cached);
        self.attempt(failures, || disk.write(batch))?;
        self.committed.send_modify(|last| *last = Ok(sequence));
        self.cache(cached);
        Ok(())
    }

    /// Writes to the disk; if that fails, all waits for commits fail from then on.
    fn attempt(
        &self,
        failures: &Failures,
        write: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), WriteFailed> {
        // The database panics where its file is not as it wrote it.
        let written = catch_unwind(AssertUnwindSafe(write));
        let written = written.unwrap_or_else(|payload| Err(panic_text(&*payload)));
        let written = written.map_err(|reason| WriteFailed(reason.into()));
        if let Err(failed) = &written {
            failures.add(Failure {
                namespace: None,
                entity: None,
                reason: failed.to_string(),
            });
            let failed = failed.clone();
            self.committed.send_modify(|last| *last = Err(failed));
        }
        written
    }

    /// Frees space on a full disk once a second, however much clients do, and then tries to restore the reserve.
    fn free_space(&self, failures: &Failures) {
        if self.space.is_retry_due() {
            self.run_idle(SHRINK_AFTER, failures);
            self.space.fill_reserve();
        }
    }

    /// Checkpoints while no client waits for a commit, and shrinks the disk after enough idle intervals.
    fn run_idle(&self, idle_intervals: u32, failures: &Failures) {
        let mut disk = self.disk.lock();
        let Some(own) = disk.as_deref_mut() else {
            return;
        };
        let steps = Cell::new(0);
        let may_checkpoint = || {
            let pending = self.pending.lock();
            let is_needed = !self.has_space() && steps.replace(steps.get() + 1) < STEPS_WHEN_FULL;
            is_needed || !pending.is_awaited || pending.is_closing
        };
        let may_shrink = || {
            let pending = self.pending.lock();
            !pending.is_awaited && !pending.is_closing
        };
        if (self.attempt(failures, || own.checkpoint(&may_checkpoint))).is_err() {
            *disk = None;
        } else if idle_intervals == SHRINK_AFTER
            && let Err(reason) = own.shrink(&may_shrink)
            // A full disk has been reported.
            && self.has_space()
        {
            tracing::warn!(file = %self.path.display(), reason, "the data file cannot be compacted");
        }
    }

    /// Waits until no other thread writes, and until a client waits for a commit, the store closes or an idle interval has passed.
    /// Returns the number of consecutive idle intervals without changes; none when the store closes with nothing to commit.
    /// No other thread writes until [`Store::end_writing`].
    fn begin_writing(&self) -> Option<u32> {
        let mut pending = self.pending.lock();
        let mut is_idle = false;
        while pending.is_writing || !(is_idle || pending.is_awaited || pending.is_closing) {
            is_idle = self.wake.wait_for(&mut pending, IDLE_INTERVAL).timed_out();
        }
        pending.is_writing = true;
        pending.idle_intervals = match pending.batch.is_empty() {
            true => pending.idle_intervals + 1,
            false => 0,
        };
        (pending.idle_intervals == 0 || !pending.is_closing).then_some(pending.idle_intervals)
    }

    /// The pending batch with the sequence number of its last change.
    pub(super) fn take_batch(&self) -> (Batch, u64) {
        // No unit of work is open meanwhile, so that the batch has whole ones.
        let _between = self.units.write();
        let mut pending = self.pending.lock();
        let batch = mem::take(&mut pending.batch);
        pending.is_awaited = false;
        pending.idle_intervals = 0;
        (batch, self.sequence())
    }
}

fn run(store: &Weak<Store>, failures: &Failures) {
    while let Some(store) = store.upgrade() {
        if store.has_space() {
            store.space.fill_reserve();
        }
        let idle_intervals = store.begin_writing();
        match idle_intervals {
            Some(0) => store.commit_next(failures),
            Some(intervals) => store.run_idle(intervals, failures),
            None => store.run_idle(1, failures),
        }
        if idle_intervals.is_some() {
            store.free_space(failures);
        }
        store.end_writing();
        if idle_intervals.is_none() || store.disk.lock().is_none() {
            return;
        }
    }
}
