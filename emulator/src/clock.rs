//! The clocks: real time, which never runs backwards, and the time of a namespace, which tests control.
//!
//! Protocol time (tokens, idle time-outs) is real time; entity time (locks, time to live) is the namespace's (decision D19).
//! The runtime's clock measures elapsed time, so that a runtime with paused time drives everything. No other file asks the
//! operating system for the time.
//!
//! The calendar of RFC 3339 ends with the year 9999, but a namespace's time does not: later instants are shown as the last
//! date.
//!
//! The file also has the alarm that wakes the timers task.

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

/// How many milliseconds wall time must be ahead of elapsed time to count as a jump. Smaller differences come from the drift
/// of two clocks, and from a thread that loses its processor between reading them.
const JUMP: i64 = 1000;
/// Longest wait for an instant of wall time. Timers stand still while a machine sleeps; after that, what became due happens
/// within this time.
pub(crate) const RECHECK: Duration = Duration::from_secs(5);

/// The source of wall time: by default the operating system. Tests supply their own.
#[derive(Clone)]
pub struct WallClock {
    now: Arc<dyn Fn() -> SystemTime + Send + Sync>,
    /// Milliseconds since the Unix epoch at which tokens are judged permanently, for clients whose tokens do not follow this
    /// clock.
    tokens: Option<i64>,
}

/// Wall time: advanced by the runtime's clock, and moved forward when the wall clock jumps.
#[derive(Debug, Clone)]
pub(crate) struct RealClock {
    wall: WallClock,
    started: Instant,
    /// Milliseconds since the Unix epoch at the clock's start, corrected by the last jump. Never decreases.
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
    /// Milliseconds ahead of real time while time flows, without the correction by `origin`.
    offset: i64,
    frozen_at: Option<Timestamp>,
    /// Whether time flows again after the advance that stopped it.
    flows_after: bool,
    /// By how many milliseconds the present advance has moved time.
    advanced: i64,
    /// The lowest wall time of the real clock's start, in milliseconds since the Unix epoch, if wall time was set back between two
    /// processes.
    origin: Option<i64>,
}

/// A reading of a namespace's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) now: Timestamp,
    /// Milliseconds ahead of real time.
    pub(crate) ahead: i64,
    pub(crate) frozen: bool,
}

/// A clock that is stopped while an advance moves it from deadline to deadline. Dropping it ends the advance at the current
/// instant: time flows again if it did before, and the real time that passed meanwhile is added.
#[derive(Debug)]
pub(crate) struct ClockAdvance<'a> {
    clock: &'a NamespaceClock,
    before: State,
    start: Timestamp,
    /// The instant at which the advance ends.
    pub(crate) target: Timestamp,
}

impl WallClock {
    /// Creates a clock that reads `now`, whose result may jump; backward jumps are ignored.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self {
            now: Arc::new(now),
            tokens: None,
        }
    }

    /// Creates a clock that shows `wall` now and advances with the runtime's clock; it stands still in a runtime with paused
    /// time.
    pub fn starting_at(wall: SystemTime) -> Self {
        let begun = Instant::now();
        Self::new(move || wall + begun.elapsed())
    }

    /// Judges tokens permanently by the current reading, for clients that issue tokens by the clock of the operating system.
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

    /// Returns the time since the clock's start, which the AMQP engine takes as its time. Stands still while the machine
    /// sleeps.
    #[inline]
    pub(crate) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    #[inline]
    pub(crate) fn now(&self) -> Timestamp {
        let elapsed = self.elapsed().as_millis() as i64;
        Timestamp::from_millis(self.origin(elapsed).saturating_add(elapsed))
    }

    /// Returns nanoseconds since the Unix epoch.
    #[cfg(feature = "otlp")]
    fn nanoseconds(&self) -> u64 {
        let elapsed = self.elapsed();
        let origin = self.origin(elapsed.as_millis() as i64);
        let since = Duration::from_millis(origin.unsigned_abs()).saturating_add(elapsed);
        u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Returns the wall time of the clock's start, in milliseconds since the Unix epoch, as it appears after `elapsed`
    /// milliseconds.
    fn origin(&self, elapsed: i64) -> i64 {
        let origin = self.origin.load(Ordering::Relaxed);
        let shown = self.wall.now().saturating_sub(elapsed);
        match shown >= origin.saturating_add(JUMP) {
            true => self.origin.fetch_max(shown, Ordering::Relaxed).max(shown),
            false => origin,
        }
    }

    /// Returns seconds since the Unix epoch, the unit of tokens.
    pub(crate) fn unix_seconds(&self) -> i64 {
        self.token_time().as_millis().div_euclid(1000)
    }

    fn token_time(&self) -> Timestamp {
        let fixed = self.wall.tokens.map(Timestamp::from_millis);
        fixed.unwrap_or_else(|| self.now())
    }

    /// Returns the [`RealClock::elapsed`] at which to check whether this second since the Unix epoch has begun.
    pub(crate) fn check_at(&self, unix_seconds: i64) -> Duration {
        let at = Timestamp::from_millis(unix_seconds.saturating_mul(1000));
        let now = self.token_time();
        self.elapsed() + at.since(now).min(RECHECK)
    }

    /// Converts a time of [`RealClock::elapsed`] into an instant of the runtime.
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

    /// Returns the milliseconds ahead of real time.
    pub(crate) fn ahead(&self) -> i64 {
        let state = self.state();
        match (state.frozen_at, state.origin) {
            (None, None) => state.offset,
            _ => self.reading(&state).ahead,
        }
    }

    #[inline]
    pub(crate) fn read(&self) -> Reading {
        self.reading(&self.state())
    }

    /// Returns real time, in nanoseconds since the Unix epoch.
    #[cfg(feature = "otlp")]
    pub(crate) fn real_nanoseconds(&self) -> u64 {
        self.real.nanoseconds()
    }

    /// Stops time; has no effect on a stopped clock.
    pub(crate) fn freeze(&self) {
        let mut state = self.state();
        state.frozen_at = Some(self.reading(&state).now);
    }

    /// Lets time flow on from its current instant.
    pub(crate) fn resume(&self) {
        let mut state = self.state();
        *state = State {
            offset: self.offset(&state),
            frozen_at: None,
            origin: state.origin,
            ..State::default()
        };
    }

    /// Returns the state from which [`NamespaceClock::restore`] continues in another process. Its namespace knows whether it steps
    /// automatically.
    pub(crate) fn stored_state(&self) -> ClockState {
        let state = self.state();
        let frozen_at = state.frozen_at.filter(|_| !state.flows_after);
        ClockState {
            offset: match state.flows_after {
                true => self.offset(&state),
                false => state.offset.saturating_add(state.advanced),
            },
            frozen_at: frozen_at.map(Timestamp::as_millis),
            is_automatic: false,
            now: self.reading(&state).now.as_millis(),
        }
    }

    /// Continues from the state of another process, never backwards; returns by how many milliseconds real time went back
    /// since.
    pub(crate) fn restore(&self, stored: ClockState) -> i64 {
        // Real time when time was stored or frozen.
        let before = stored.now.saturating_sub(stored.offset);
        let back = before.saturating_sub(self.real.now().as_millis()).max(0);
        *self.state() = State {
            offset: stored.offset,
            frozen_at: stored.frozen_at.map(Timestamp::from_millis),
            origin: (back > 0).then(|| before.saturating_sub(self.elapsed_millis())),
            ..State::default()
        };
        back
    }

    /// Stops time for an advance by `by`. Only one exists at a time, and nothing else stops or resumes time meanwhile.
    pub(crate) fn begin_advance(&self, by: Duration) -> ClockAdvance<'_> {
        let mut state = self.state();
        let (before, start) = (*state, self.reading(&state).now);
        state.frozen_at = Some(start);
        state.flows_after = before.frozen_at.is_none();
        ClockAdvance {
            clock: self,
            before,
            start,
            target: start + by,
        }
    }

    /// Returns the real time until `instant`; `None` while time stands still.
    pub(crate) fn until(&self, instant: Timestamp) -> Option<Duration> {
        let reading = self.read();
        (!reading.frozen).then(|| instant.since(reading.now))
    }

    fn reading(&self, state: &State) -> Reading {
        let (real, corrected) = self.real_times(state);
        let flowing = Timestamp::from_millis(corrected.saturating_add(state.offset));
        let now = state.frozen_at.unwrap_or(flowing);
        Reading {
            now,
            ahead: now.as_millis().saturating_sub(real),
            frozen: state.frozen_at.is_some(),
        }
    }

    /// Returns the offset with which time flows on from its current instant.
    fn offset(&self, state: &State) -> i64 {
        let (_, corrected) = self.real_times(state);
        state
            .frozen_at
            .map_or(state.offset, |at| at.as_millis().saturating_sub(corrected))
    }

    /// Returns real time, and real time corrected for wall time that was set back between two processes: it goes on from the last
    /// time of the earlier one until wall time has reached it. The correction is not part of the offset and not stored: otherwise it
    /// would remain when wall time is right again.
    #[inline]
    fn real_times(&self, state: &State) -> (i64, i64) {
        let elapsed = self.elapsed_millis();
        let origin = self.real.origin(elapsed);
        let corrected = state.origin.map_or(origin, |lowest| lowest.max(origin));
        (
            origin.saturating_add(elapsed),
            corrected.saturating_add(elapsed),
        )
    }

    fn elapsed_millis(&self) -> i64 {
        self.real.elapsed().as_millis() as i64
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

impl ClockAdvance<'_> {
    /// Returns how far the advance has come.
    pub(crate) fn passed(&self) -> Duration {
        self.clock.now().since(self.start)
    }

    /// Advances to `instant`, never backwards.
    pub(crate) fn step_to(&self, instant: Timestamp) {
        let mut state = self.clock.state();
        let reached = self.start.max(instant);
        let reached = state.frozen_at.map_or(reached, |at| at.max(reached));
        state.frozen_at = Some(reached);
        state.advanced = reached.as_millis().saturating_sub(self.start.as_millis());
    }
}

impl Drop for ClockAdvance<'_> {
    fn drop(&mut self) {
        let mut state = self.clock.state();
        *state = State {
            offset: self.before.offset.saturating_add(state.advanced),
            frozen_at: self.before.frozen_at.and(state.frozen_at),
            ..self.before
        };
    }
}

/// Converts an instant into a date; instants after the last date become the last one.
pub(crate) fn date(instant: Timestamp) -> Date {
    from_millis(instant.as_millis())
}

/// Converts an instant into the standard library's type.
pub(crate) fn system_time(instant: Timestamp) -> SystemTime {
    date(instant).into()
}

/// Converts milliseconds since the Unix epoch into a date.
pub(crate) fn from_millis(millis: i64) -> Date {
    let beyond = if millis < 0 { Date::MIN } else { Date::MAX };
    Date::from_millisecond(millis).unwrap_or(beyond)
}

/// Returns the last instant that has a date.
pub(crate) fn last() -> Timestamp {
    Timestamp::from_millis(Date::MAX.as_millisecond())
}

/// The earliest deadline that the timers task waits for.
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
    /// Wakes the task by `deadline`.
    pub(crate) fn arm(&self, deadline: Timestamp) {
        let deadline = deadline.as_millis();
        if deadline < self.armed.load(Ordering::Relaxed)
            && deadline < self.armed.fetch_min(deadline, Ordering::AcqRel)
        {
            self.notify.notify_one();
        }
    }

    /// Wakes the task because the clock changed, which can invalidate its sleep, or a message waits to be forwarded.
    pub(crate) fn notify(&self) {
        self.notify.notify_one();
    }

    /// Clears the armed deadline: a deadline that appears from now on arms the alarm again.
    pub(crate) fn disarm(&self) {
        self.armed.store(i64::MAX, Ordering::Release);
    }

    /// Records a deadline that the task itself has seen.
    pub(crate) fn expect(&self, deadline: Timestamp) {
        self.armed.fetch_min(deadline.as_millis(), Ordering::AcqRel);
    }

    /// Resolves when the alarm was armed for an earlier deadline or notified.
    pub(crate) async fn notified(&self) {
        self.notify.notified().await;
    }
}

#[cfg(test)]
pub(crate) mod tests;
