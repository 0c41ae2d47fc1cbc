//! Virtual time that advances only when nothing else can happen.
//!
//! A run has one thread with a runtime whose time is paused; the emulator, its clients and the test all run on it. Tokio
//! advances paused time to the next timer when it parks, although a socket may hold an answer, so the driver lets it park
//! only when nothing is in flight. Whenever no task can run, the driver makes the runtime poll the sockets once more.
//! After [`QUIET_POLLS`] polls without an increase of the emulator's activity counter, no bytes are in flight: bytes that one end
//! of a loopback connection has written can be read at the other end at once, and an exchange of any length passes the
//! emulator in every second round. A blocking task of the code under test keeps tokio from advancing time, as always.

use std::{
    io,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
};

use tokio::{
    runtime::{Builder, Runtime},
    sync::Notify,
};

/// How many polls of the sockets without activity precede an advance of time.
const QUIET_POLLS: u32 = 6;

/// Controls the advance of time.
#[derive(Default)]
pub(crate) struct VirtualTimeDriver {
    /// The activity counter of the emulator.
    activity: Arc<AtomicU64>,
    last_activity: AtomicU64,
    quiet_polls: AtomicU32,
    is_parked: AtomicBool,
    on_idle: OnceLock<IdleHook>,
    progress: Notify,
}

/// Receives whether only time can make progress, and returns whether it has started something.
type IdleHook = Box<dyn Fn(bool) -> bool + Send + Sync>;

impl VirtualTimeDriver {
    /// Builds a runtime whose time the driver controls.
    pub(crate) fn runtime(self: &Arc<Self>) -> io::Result<Runtime> {
        let (parks, unparks) = (Arc::clone(self), Arc::clone(self));
        Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .on_thread_park(move || parks.before_park())
            .on_thread_unpark(move || unparks.is_parked.store(false, Ordering::Relaxed))
            .build()
    }

    /// Returns whether only an advance of time can make progress. If time does not advance then, a blocking task is running.
    pub(crate) fn is_parked(&self) -> bool {
        self.is_parked.load(Ordering::Relaxed)
    }

    /// Returns the counter for the emulator's activity.
    pub(crate) fn activity(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.activity)
    }

    /// Calls `on_idle` whenever no task can run: with `false` before the sockets are polled again, and with `true` before time
    /// advances.
    pub(crate) fn on_idle(&self, on_idle: impl Fn(bool) -> bool + Send + Sync + 'static) {
        // Each run sets it once.
        let _ = self.on_idle.set(Box::new(on_idle));
    }

    /// Waits until `on_idle` has started something.
    pub(crate) async fn progress(&self) {
        self.progress.notified().await;
    }

    /// Called when no task can run: either spawns an empty task, so that the sockets are polled again, or lets the thread
    /// park.
    fn before_park(&self) {
        if self.has_progress(false) {
            return;
        }
        let activity = self.activity.load(Ordering::Relaxed);
        if self.last_activity.swap(activity, Ordering::Relaxed) != activity {
            self.quiet_polls.store(0, Ordering::Relaxed);
        }
        if self.quiet_polls.fetch_add(1, Ordering::Relaxed) < QUIET_POLLS {
            drop(tokio::spawn(async {}));
            return;
        }
        self.quiet_polls.store(0, Ordering::Relaxed);
        let is_parked = !self.has_progress(true);
        self.is_parked.store(is_parked, Ordering::Relaxed);
    }

    fn has_progress(&self, is_quiet: bool) -> bool {
        let has_progress = self.on_idle.get().is_some_and(|on_idle| on_idle(is_quiet));
        if has_progress {
            self.progress.notify_one();
        }
        has_progress
    }
}
