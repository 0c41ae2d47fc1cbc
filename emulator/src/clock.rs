//! The clocks: real time, which never runs backwards, and a namespace's own time, which tests move.
//!
//! Protocol time (tokens, idle time-outs) is real time; entity time (locks, time to live) is the namespace's (decision
//! D19). What passes is measured by the runtime's clock, so that a runtime whose time is paused drives everything. This
//! is the only file that asks the operating system what time it is.
//!
//! Instants as dates. The calendar of RFC 3339 ends with the year 9999, the time of a namespace does not: what lies beyond
//! is shown as the last instant.
//!
//! Wakes the task that fires what is due.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jiff::Timestamp as Date;
use parking_lot::{Mutex, MutexGuard};
use servicebus_broker::Timestamp;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::durable::ClockState;

/// How far wall time must be ahead of what has passed to have jumped: less is how two clocks differ, and how long a
/// thread may be kept from its processor between reading them.
const JUMP: i64 = 1000;
/// Longest wait for an instant of wall time. Timers stand still while a machine sleeps, so that none is trusted with
/// more: what came due meanwhile happens within this time.
pub(crate) const RECHECK: Duration = Duration::from_secs(5);

/// Where an emulator reads wall time: by default from the operating system. Tests hand in their own.
#[derive(Clone)]
pub struct WallClock {
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Milliseconds since the Unix epoch that tokens are judged by for good, where their issuers do not follow this clock.
    tokens: Option<i64>,
}

/// Wall time: carried on by the runtime's clock, and moved forward when the wall clock jumps.
#[derive(Debug, Clone)]
pub(crate) struct RealClock {
    wall: WallClock,
    started: Instant,
    /// Milliseconds since the Unix epoch when the clock was started, as seen after the last jump. Grows only.
    origin: Arc<AtomicI64>,
}

/// A namespace's time: real time plus an offset, or an instant at which it stands still.
#[derive(Debug)]
pub(crate) struct NamespaceClock {
    real: RealClock,
    state: Mutex<State>,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// Milliseconds ahead of real time while it flows.
    offset: i64,
    frozen_at: Option<Timestamp>,
    /// Whether it stands only for a walk.
    flows_after: bool,
}

/// What a clock shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) now: Timestamp,
    /// Milliseconds ahead of real time.
    pub(crate) ahead: i64,
    pub(crate) frozen: bool,
}

/// A clock that stands still while an advance walks from deadline to deadline. Dropped, it has been advanced to where
/// it stands then: time flows again if it did before, and what passed in real time meanwhile has passed here too.
#[derive(Debug)]
pub(crate) struct Walk<'a> {
    clock: &'a NamespaceClock,
    before: State,
    start: Timestamp,
    /// Where the walk ends.
    pub(crate) target: Timestamp,
}

impl WallClock {
    /// A clock that shows what `now` returns each time it is asked. What it shows may jump; backwards it is not followed.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            now: Arc::new(now),
            tokens: None,
        }
    }

    /// A clock that shows `wall` now and goes on as the runtime's clock does; within a runtime whose time is paused it
    /// stands still.
    pub fn starting_at(wall: SystemTime) -> Self {
        let begun = Instant::now();
        Self::new(move || wall + begun.elapsed())
    }

    /// Judges tokens by what it shows now for good: for clients that issue them by the clock of the operating system.
    pub fn with_lasting_tokens(self) -> Self {
        Self {
            tokens: Some(self.now()),
            ..self
        }
    }

    #[inline]
    fn now(&self) -> i64 {
        let since = (self.now)().duration_since(UNIX_EPOCH);
        since.map_or(0, |since| {
            i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
        })
    }
}

impl Default for WallClock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for WallClock {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("WallClock").finish_non_exhaustive()
    }
}

impl RealClock {
    pub(crate) fn start(wall: WallClock) -> Self {
        Self {
            origin: Arc::new(AtomicI64::new(wall.now())),
            wall,
            started: Instant::now(),
        }
    }

    /// Time since the clock was started: what the AMQP engine is told. Stands still while the machine sleeps.
    #[inline]
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = self.elapsed().as_millis() as i64;
        Timestamp::from_millis(self.origin(elapsed).saturating_add(elapsed))
    }

    /// Nanoseconds since the Unix epoch.
    #[cfg(feature = "otlp")]
    fn nanoseconds(&self) -> u64 {
        let elapsed = self.elapsed();
        let origin = self.origin(elapsed.as_millis() as i64);
        let since = Duration::from_millis(origin.unsigned_abs()).saturating_add(elapsed);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// When the clock was started as it looks after so many milliseconds, in milliseconds since the Unix epoch.
    fn origin(&self, elapsed: i64) -> i64 {
        let origin = self.origin.load(Ordering::Relaxed);
        let shown = self.wall.now().saturating_sub(elapsed);
        match shown >= origin.saturating_add(JUMP) {
            true => self.origin.fetch_max(shown, Ordering::Relaxed).max(shown),
            false => origin,
        }
    }

    /// Seconds since the Unix epoch, in which tokens speak.
    pub(crate) fn unix_seconds(&self) -> i64 {
        self.token_time().as_millis().div_euclid(1000)
    }

    fn token_time(&self) -> Timestamp {
        let fixed = self.wall.tokens.map(Timestamp::from_millis);
        fixed.unwrap_or_else(|| self.now())
    }

    /// What [`RealClock::elapsed`] says when it is time to look whether this second since the Unix epoch has begun.
    pub(crate) fn look_at(&self, unix_seconds: i64) -> Duration {
        let at = Timestamp::from_millis(unix_seconds.saturating_mul(1000));
        let now = self.token_time();
        self.elapsed() + at.since(now).min(RECHECK)
    }

    /// The instant that [`RealClock::elapsed`] calls `at`.
    #[inline]
    pub(crate) fn instant(&self, at: Duration) -> Instant {
        self.started + at
    }
}

impl NamespaceClock {
    pub(crate) fn new(real: RealClock) -> Self {
        Self {
            real,
            state: Mutex::default(),
        }
    }

    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        self.read().now
    }

    /// Milliseconds ahead of real time.
    pub(crate) fn ahead(&self) -> i64 {
        let state = self.state();
        match state.frozen_at {
            None => state.offset,
            Some(_) => self.reading(&state).ahead,
        }
    }

    #[inline]
    pub(crate) fn read(&self) -> Reading {
        self.reading(&self.state())
    }

    /// Real time, in nanoseconds since the Unix epoch.
    #[cfg(feature = "otlp")]
    pub(crate) fn real_nanoseconds(&self) -> u64 {
        self.real.nanoseconds()
    }

    /// Stops time; does nothing when it stands already.
    pub(crate) fn freeze(&self) {
        let mut state = self.state();
        state.frozen_at = Some(self.reading(&state).now);
    }

    /// Lets time flow on from where it stands.
    pub(crate) fn resume(&self) {
        let mut state = self.state();
        *state = State {
            offset: self.reading(&state).ahead,
            ..State::default()
        };
    }

    /// Its state, from which [`NamespaceClock::restore`] goes on in another process.
    pub(crate) fn stored_state(&self) -> ClockState {
        let state = self.state();
        let Reading { now, ahead, .. } = self.reading(&state);
        let frozen_at = state.frozen_at.filter(|_| !state.flows_after);
        ClockState {
            offset: if state.flows_after {
                ahead
            } else {
                state.offset
            },
            frozen_at: frozen_at.map(Timestamp::as_millis),
            now: now.as_millis(),
        }
    }

    /// Goes on from where it stood in another process, never back; returns by how many milliseconds real time went back since.
    pub(crate) fn restore(&self, stored: ClockState) -> i64 {
        let mut state = self.state();
        *state = State {
            offset: stored.offset,
            frozen_at: stored.frozen_at.map(Timestamp::from_millis),
            flows_after: false,
        };
        let shown = self.reading(&state).now.as_millis();
        let back = stored.now.saturating_sub(shown).max(0);
        state.offset = state.offset.saturating_add(back);
        back
    }

    /// Stops time for a walk of `by`. There is one at a time, and meanwhile nothing else stops time or lets it flow.
    pub(crate) fn begin_walk(&self, by: Duration) -> Walk<'_> {
        let mut state = self.state();
        let (before, start) = (*state, self.reading(&state).now);
        state.frozen_at = Some(start);
        state.flows_after = before.frozen_at.is_none();
        Walk {
            clock: self,
            before,
            start,
            target: start + by,
        }
    }

    /// How long in real time until `instant`; none while time stands still.
    pub(crate) fn until(&self, instant: Timestamp) -> Option<Duration> {
        let reading = self.read();
        (!reading.frozen).then(|| instant.since(reading.now))
    }

    fn reading(&self, state: &State) -> Reading {
        let real = self.real.now().as_millis();
        let flowing = Timestamp::from_millis(real.saturating_add(state.offset));
        let now = state.frozen_at.unwrap_or(flowing);
        Reading {
            now,
            ahead: now.as_millis().saturating_sub(real),
            frozen: state.frozen_at.is_some(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl Walk<'_> {
    /// How far the walk has come.
    pub(crate) fn passed(&self) -> Duration {
        self.clock.now().since(self.start)
    }

    /// Goes on to `instant`, never back.
    pub(crate) fn step_to(&self, instant: Timestamp) {
        let mut state = self.clock.state();
        state.frozen_at = state.frozen_at.max(Some(instant));
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        let mut state = self.clock.state();
        let reached = state.frozen_at.unwrap_or(self.start);
        let by = reached.as_millis().saturating_sub(self.start.as_millis());
        *state = State {
            offset: self.before.offset.saturating_add(by),
            frozen_at: self.before.frozen_at.map(|_| reached),
            flows_after: false,
        };
    }
}

/// The date of an instant; the last one there is for what comes after it.
pub(crate) fn date(instant: Timestamp) -> Date {
    from_millis(instant.as_millis())
}

/// The same as the standard library has it.
pub(crate) fn system_time(instant: Timestamp) -> SystemTime {
    date(instant).into()
}

/// The same of milliseconds since the Unix epoch.
pub(crate) fn from_millis(millis: i64) -> Date {
    let beyond = if millis < 0 { Date::MIN } else { Date::MAX };
    Date::from_millisecond(millis).unwrap_or(beyond)
}

/// The last instant that has a date.
pub(crate) fn last() -> Timestamp {
    Timestamp::from_millis(Date::MAX.as_millisecond())
}

/// The earliest deadline that the task knows of.
#[derive(Debug)]
pub(crate) struct Alarm {
    armed: AtomicI64,
    notify: Notify,
}

impl Default for Alarm {
    fn default() -> Self {
        Self {
            armed: AtomicI64::new(i64::MAX),
            notify: Notify::new(),
        }
    }
}

impl Alarm {
    /// Makes sure that the task is awake by `deadline`.
    pub(crate) fn arm(&self, deadline: Timestamp) {
        let deadline = deadline.as_millis();
        if deadline < self.armed.load(Ordering::Relaxed)
            && deadline < self.armed.fetch_min(deadline, Ordering::AcqRel)
        {
            self.notify.notify_one();
        }
    }

    /// The clock was changed, so that what the task sleeps for may be wrong, or there is something to forward.
    pub(crate) fn notify(&self) {
        self.notify.notify_one();
    }

    /// Forgets what it was armed for: a deadline that appears from now on arms it again.
    pub(crate) fn disarm(&self) {
        self.armed.store(i64::MAX, Ordering::Release);
    }

    /// Notes a deadline that the task itself has seen.
    pub(crate) fn expect(&self, deadline: Timestamp) {
        self.armed.fetch_min(deadline.as_millis(), Ordering::AcqRel);
    }

    /// Resolves when it was armed for an earlier deadline or notified.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }
}

#[cfg(test)]
pub(crate) mod tests;
