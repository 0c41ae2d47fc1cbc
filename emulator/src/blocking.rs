//! Work and locks that may keep a thread for long: its other tasks move to another thread meanwhile.

use std::time::Duration;

use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// How long a thread waits for a lock before its other tasks move. Most locks are held for microseconds.
const PATIENCE: Duration = Duration::from_millis(2);

/// Runs work that may take long on an entity or a namespace; the thread's other tasks move to another thread meanwhile,
/// unless the runtime has only this one.
pub(crate) fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    match may_block() {
        true => block_in_place(work),
        false => work(),
    }
}

/// Whether the runtime has other threads, which tasks run on while this one blocks.
pub(crate) fn may_block() -> bool {
    let has_others = |runtime: Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    Handle::try_current().is_ok_and(has_others)
}

/// Locks a mutex, which another thread may hold for as long as [`run_blocking`].
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    let soon = mutex.try_lock_for(PATIENCE);
    soon.unwrap_or_else(|| run_blocking(|| mutex.lock()))
}

/// Locks for reading, as [`lock`] does.
pub(crate) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    let soon = lock.try_read_for(PATIENCE);
    soon.unwrap_or_else(|| run_blocking(|| lock.read()))
}

/// Locks for writing, as [`lock`] does.
pub(crate) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    let soon = lock.try_write_for(PATIENCE);
    soon.unwrap_or_else(|| run_blocking(|| lock.write()))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::runtime::Builder;

    use super::*;

    #[test]
    fn tasks_run_on_while_one_waits_for_a_lock() {
        let runtime = Builder::new_multi_thread().worker_threads(1).build();
        let runtime = runtime.expect("the runtime starts");
        let mutex = Arc::new(Mutex::new(()));
        let waiting = Arc::clone(&mutex);
        let held = mutex.lock();
        let waiter = runtime.spawn(async move { drop(lock(&waiting)) });
        let other = runtime.spawn(async {});
        runtime.block_on(other).expect("it runs");
        assert!(!waiter.is_finished());
        drop(held);
        runtime.block_on(waiter).expect("it has the lock");
    }
}
