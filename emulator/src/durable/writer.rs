//! What is to be written: everything that has come meanwhile, as one transaction, by one thread at a time.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use super::{Batch, Disk, Fresh, Store, WriteFailed};
use crate::failures::{Failure, Failures, told};

/// How long rows may wait for which no client does: when an entity was last used, and what its namespace's clock shows.
const LEISURE: Duration = Duration::from_secs(1);

/// Bytes of messages that a client's thread writes itself; more keep it for too long.
const SHORT: u64 = 256 << 10;

/// For how many times that long there is nothing to write before the disk is made smaller.
const REST: u32 = 5;

impl Store {
    /// Looks into the disk before anything is written.
    pub(super) fn with_disk<T>(&self, look: impl FnOnce(&dyn Disk) -> T) -> Option<T> {
        match self.thread.lock().is_some() {
            true => None,
            false => self.disk.lock().as_deref().map(look),
        }
    }

    /// Begins to write; from now on nothing is read any more.
    pub(crate) fn start(self: &Arc<Self>, failures: Failures) -> std::io::Result<()> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let store = Arc::downgrade(self);
            self.room.set_patient(true);
            let failures = self.failures.get_or_init(|| failures).clone();
            let named = thread::Builder::new().name("store".to_owned());
            *thread = Some(named.spawn(move || run(&store, &failures))?);
        }
        Ok(())
    }

    /// How many changes were said until now.
    pub(crate) fn said(&self) -> u64 {
        self.said.load(Ordering::Acquire)
    }

    /// Whether so many changes are written; fails when they never will be.
    pub(crate) fn is_written(&self, until: u64) -> Result<bool, WriteFailed> {
        match &*self.written.borrow() {
            Ok(written) => Ok(*written >= until),
            Err(failed) => Err(failed.clone()),
        }
    }

    /// Resolves when so many changes are written; fails when they never will be.
    pub(crate) async fn written_until(&self, until: u64) -> Result<(), WriteFailed> {
        let mut written = self.written.subscribe();
        let waited = written.wait_for(|written| written.as_ref().map_or(true, |at| *at >= until));
        match waited.await.as_deref() {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(failed)) => Err(failed.clone()),
            Err(_) => Err(WriteFailed("the emulator has stopped".into())),
        }
    }

    /// Resolves when all that was changed until now is written; fails when it never will be.
    pub(crate) async fn written(&self) -> Result<(), WriteFailed> {
        let said = self.said();
        self.write_until(said);
        self.written_until(said).await
    }

    /// Writes what waits on the thread of a client that waits for so many changes, where nothing is being written: to have another
    /// thread do so takes two changes of threads. What is said meanwhile is written by the store's thread.
    pub(crate) fn write_until(&self, until: u64) {
        if self.is_written(until) != Ok(false) {
            return;
        }
        let runtime = Handle::try_current().map(|handle| handle.runtime_flavor());
        // Elsewhere other clients would wait, too.
        if !matches!(runtime, Ok(RuntimeFlavor::MultiThread)) {
            return;
        }
        let Some(failures) = self.failures.get() else {
            return;
        };
        let mut pending = self.pending.lock();
        let is_short = |fresh: &[Fresh]| fresh.iter().map(|one| one.length).sum::<u64>() <= SHORT;
        if pending.is_writing || !is_short(&pending.batch.fresh) {
            return;
        }
        pending.is_writing = true;
        drop(pending);
        let is_ready = |disk: &dyn Disk| !disk.is_much();
        if self.disk.lock().as_deref().is_some_and(is_ready) {
            block_in_place(|| self.write_next(failures));
        }
        self.end_writing();
    }

    /// Lets others write.
    fn end_writing(&self) {
        let mut pending = self.pending.lock();
        pending.is_writing = false;
        if pending.is_awaited || pending.is_closing {
            self.wake.notify_one();
        }
    }

    /// Writes what waits, if anything does; nothing more where that fails.
    fn write_next(&self, failures: &Failures) {
        let mut disk = self.disk.lock();
        let Some(own) = disk.as_deref_mut() else {
            return;
        };
        let (batch, said) = self.next_batch();
        if !batch.is_empty() && self.write(own, batch, said, failures).is_err() {
            *disk = None;
        }
    }

    /// Writes what was taken, and then tells those who wait for it.
    pub(super) fn write(
        &self,
        disk: &mut dyn Disk,
        mut batch: Batch,
        said: u64,
        failures: &Failures,
    ) -> Result<(), WriteFailed> {
        let fresh = mem::take(&mut batch.fresh);
        self.attempt(failures, || disk.write(batch))?;
        self.written.send_modify(|last| *last = Ok(said));
        self.leave_out(fresh);
        Ok(())
    }

    /// Does something to the disk; nothing is written any more where that fails.
    fn attempt(
        &self,
        failures: &Failures,
        act: impl FnOnce() -> Result<(), String>,
    ) -> Result<(), WriteFailed> {
        // The file may be other than it was written, and then a panic is what tells.
        let done = catch_unwind(AssertUnwindSafe(act));
        let done = done.unwrap_or_else(|payload| Err(told(&*payload)));
        let done = done.map_err(|reason| WriteFailed(reason.into()));
        if let Err(failed) = &done {
            failures.add(Failure {
                namespace: None,
                entity: None,
                reason: failed.to_string(),
            });
            let failed = failed.clone();
            self.written.send_modify(|last| *last = Err(failed));
        }
        done
    }

    /// Puts what was written where it is to stay, and gives room back after a rest, since nothing is to be written.
    fn rest(&self, times: u32, failures: &Failures) {
        let mut disk = self.disk.lock();
        let Some(own) = disk.as_deref_mut() else {
            return;
        };
        let is_wanted = || {
            let pending = self.pending.lock();
            !pending.is_awaited || pending.is_closing
        };
        if self.attempt(failures, || own.settle(&is_wanted)).is_err() {
            *disk = None;
        } else if times == REST {
            self.shrink(own);
        }
    }

    /// Has the disk give room back until something is to be written that is waited for.
    fn shrink(&self, disk: &mut dyn Disk) {
        let is_wanted = || {
            let pending = self.pending.lock();
            !pending.is_awaited && !pending.is_closing
        };
        if let Err(reason) = disk.shrink(&is_wanted) {
            tracing::warn!(file = %self.place.display(), reason, "the data's file cannot be made smaller");
        }
    }

    /// Waits until no other thread writes and something is to be written, or a moment of leisure has passed; says how many have
    /// passed with nothing to write, and none when the store has closed. No other thread writes until [`Store::end_writing`].
    fn begin_writing(&self) -> Option<u32> {
        let mut pending = self.pending.lock();
        let mut is_leisure = false;
        while pending.is_writing || !(is_leisure || pending.is_awaited || pending.is_closing) {
            is_leisure = self.wake.wait_for(&mut pending, LEISURE).timed_out();
        }
        pending.is_writing = true;
        pending.rests = match pending.batch.is_empty() {
            true => pending.rests + 1,
            false => 0,
        };
        (pending.rests == 0 || !pending.is_closing).then_some(pending.rests)
    }

    /// What is to be written next, with how many changes it makes that clients may wait for.
    pub(super) fn next_batch(&self) -> (Batch, u64) {
        // Every operation has ended, and none begins: what there is now is whole.
        let _between = self.units.write();
        let mut pending = self.pending.lock();
        let batch = mem::take(&mut pending.batch);
        pending.is_awaited = false;
        pending.rests = 0;
        (batch, self.said.load(Ordering::Acquire))
    }
}

fn run(store: &Weak<Store>, failures: &Failures) {
    while let Some(store) = store.upgrade() {
        store.room.fill();
        let rests = store.begin_writing();
        match rests {
            Some(0) => store.write_next(failures),
            Some(times) => store.rest(times, failures),
            None => store.rest(1, failures),
        }
        store.end_writing();
        if rests.is_none() || store.disk.lock().is_none() {
            return;
        }
    }
}
