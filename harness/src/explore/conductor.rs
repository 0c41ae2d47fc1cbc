//! Time that only goes on when nothing else can happen.
//!
//! A run has one thread with a runtime whose time is paused, and the emulator, its clients and the test are all on it. Tokio
//! moves paused time to the next timer when it parks, though an answer may lie in a socket; so the conductor lets it park
//! only when nothing is under way. Each time no task can run it has the sockets polled once more; when that has been done
//! [`ROUNDS`] times and the emulator's count of what it did has not grown, no bytes are on their way: what one end of a
//! loopback connection has written, the other can read at once, and an exchange of any length goes through the emulator in
//! every second round. A blocking task of the code under test keeps tokio from moving time, as ever.

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

/// How often sockets are polled without news before time goes on.
const ROUNDS: u32 = 6;

/// What lets time go on.
#[derive(Default)]
pub(crate) struct Conductor {
    /// Grows with what the emulator does.
    activity: Arc<AtomicU64>,
    seen: AtomicU64,
    quiet_rounds: AtomicU32,
    is_parked: AtomicBool,
    watch: OnceLock<Watch>,
    news: Notify,
}

/// Is told whether anything but time can still happen, and says whether it has set something going.
type Watch = Box<dyn Fn(bool) -> bool + Send + Sync>;

impl Conductor {
    /// Makes a runtime whose time it conducts.
    pub(crate) fn runtime(self: &Arc<Self>) -> io::Result<Runtime> {
        let (parks, unparks) = (Arc::clone(self), Arc::clone(self));
        Builder::new_current_thread()
            .enable_all()
            .start_paused(true)
            .on_thread_park(move || parks.before_park())
            .on_thread_unpark(move || unparks.is_parked.store(false, Ordering::Relaxed))
            .build()
    }

    /// Whether nothing can happen but that time goes on. While that is so and time stands, a blocking task runs.
    pub(crate) fn is_parked(&self) -> bool {
        self.is_parked.load(Ordering::Relaxed)
    }

    /// Returns what the emulator is to count in.
    pub(crate) fn activity(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.activity)
    }

    /// Asks this from now on each time no task can run: before any socket is polled again with false, and before time goes on
    /// with true.
    pub(crate) fn watch(&self, watch: impl Fn(bool) -> bool + Send + Sync + 'static) {
        // A run sets it once.
        let _ = self.watch.set(Box::new(watch));
    }

    /// Waits until that has set something going.
    pub(crate) async fn news(&self) {
        self.news.notified().await;
    }

    /// No task can run. Either the sockets are polled again, by a task that does nothing, or the thread parks.
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
