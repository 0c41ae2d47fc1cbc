//! The thread that writes: everything that has come meanwhile, as one transaction.

use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use super::{Batch, Disk, Store, WriteFailed};
use crate::failures::{Failure, Failures, told};

/// How long rows may wait for which no client does: when an entity was last used, and what its namespace's clock shows.
const LEISURE: Duration = Duration::from_secs(1);

/// For how many times that long there is nothing to write before the disk is made smaller.
const REST: u32 = 5;

/// What writes, before it does and while it does.
pub(super) enum Writer {
    Waiting(Box<dyn Disk>),
    Writing(JoinHandle<()>),
}

impl Writer {
    pub(super) fn new(disk: Box<dyn Disk>) -> Self {
        Self::Waiting(disk)
    }

    pub(super) fn join(self) {
        match self {
            // A thread that has panicked has told of it.
            Self::Writing(thread) => drop(thread.join()),
            Self::Waiting(_) => {}
        }
    }
}

impl Store {
    /// Looks into the disk before anything is written.
    pub(super) fn with_disk<T>(&self, look: impl FnOnce(&dyn Disk) -> T) -> Option<T> {
        match self.writer.lock().as_ref()? {
            Writer::Waiting(disk) => Some(look(disk.as_ref())),
            Writer::Writing(_) => None,
        }
    }

    /// Begins to write; from now on nothing is read any more.
    pub(crate) fn start(self: &Arc<Self>, failures: Failures) -> std::io::Result<()> {
        let mut writer = self.writer.lock();
        *writer = match writer.take() {
            Some(Writer::Waiting(disk)) => {
                let store = Arc::downgrade(self);
                self.room.set_patient(true);
                let thread = thread::Builder::new().name("store".to_owned());
                Some(Writer::Writing(
                    thread.spawn(move || run(&store, disk, &failures))?,
                ))
            }
            other => other,
        };
        Ok(())
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

    /// What is to be written next, with how many changes it makes that clients may wait for; none when the store has closed.
    pub(super) fn next_batch(&self) -> Option<(Batch, u64)> {
        let mut pending = self.pending.lock();
        if !pending.is_awaited && !pending.is_closing {
            self.wake.wait_for(&mut pending, LEISURE);
        }
        let is_closing = pending.is_closing;
        if pending.batch.is_empty() {
            return (!is_closing).then(Default::default);
        }
        drop(pending);
        // Every operation has ended, and none begins: what there is now is whole.
        let _between = self.units.write();
        let mut pending = self.pending.lock();
        let batch = mem::take(&mut pending.batch);
        pending.is_awaited = false;
        let said = self.said.load(Ordering::Acquire);
        Some((batch, said))
    }
}

fn run(store: &Weak<Store>, mut disk: Box<dyn Disk>, failures: &Failures) {
    let mut at_leisure = 0;
    while let Some(store) = store.upgrade() {
        store.room.fill();
        let next = store.next_batch();
        let is_closed = next.is_none();
        let (batch, said) = next.unwrap_or_default();
        if !batch.is_empty() {
            at_leisure = 0;
            if store.write(disk.as_mut(), batch, said, failures).is_err() {
                return;
            }
            continue;
        }
        at_leisure += 1;
        let settled = match at_leisure == 1 || is_closed {
            true => store.attempt(failures, || disk.settle()),
            false => Ok(()),
        };
        if is_closed || settled.is_err() {
            return;
        }
        if at_leisure == REST {
            store.shrink(disk.as_mut());
        }
    }
}
