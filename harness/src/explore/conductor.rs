//! Virtual time that advances only when nothing else can happen.
//!
//! A run has one thread with a runtime whose time is paused; the emulator, its clients and the test all run on it. Tokio
//! advances paused time to the next timer when it parks, although a socket may hold an answer, so the conductor lets it park
//! only when nothing is under way. Whenever no task can run, the conductor makes the runtime poll the sockets once more.
//! After [`ROUNDS`] polls without an increase of the emulator's activity counter, no bytes are in flight: bytes that one end
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
const ROUNDS: u32 = 6;

/// Controls the advance of time.
#[derive(Default)]
pub(crate) struct Conductor {
    /// The activity counter of the emulator.
    activity: Arc<AtomicU64>,
    seen: AtomicU64,
    quiet_rounds: AtomicU32,
    is_parked: AtomicBool,
    watch: OnceLock<Watch>,
    news: Notify,
}

/// Receives whether only time can make progress, and returns whether it has started something.
type Watch = Box<dyn Fn(bool) -> bool + Send + Sync>;

impl Conductor {
    /// Builds a runtime whose time the conductor controls.
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

    /// Calls `watch` whenever no task can run: with `false` before the sockets are polled again, and with `true` before time
    /// advances.
    pub(crate) fn watch(&self, watch: impl Fn(bool) -> bool + Send + Sync + 'static) {
        // Each run sets it once.
        let _ = self.watch.set(Box::new(watch));
    }

    /// Waits until `watch` has started something.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// Called when no task can run: either spawns an empty task, so that the sockets are polled again, or lets the thread
    /// park.
    fn before_park(&self) {
        if self.has_news(false) {
            return;
        }
        let activity = self.activity.load(Ordering::Relaxed);
        if self.seen.swap(activity, Ordering::Relaxed) != activity {
            self.quiet_rounds.store(0, Ordering::Relaxed);
        }
        if self.quiet_rounds.fetch_add(1, Ordering::Relaxed) < ROUNDS {
            drop(tokio::spawn(async {}));
            return;
        }
        self.quiet_rounds.store(0, Ordering::Relaxed);
        let is_parked = !self.has_news(true);
        self.is_parked.store(is_parked, Ordering::Relaxed);
    }

    fn has_news(&self, is_quiet: bool) -> bool {
        let has_news = self.watch.get().is_some_and(|watch| watch(is_quiet));
        if has_news {
            self.news.notify_one();
        }
        has_news
    }
}
