//! The clocks: real time, which never runs backwards, and a namespace's own time, which tests move.
//!
//! Protocol time (tokens, idle time-outs) is real time; entity time (locks, time to live) is the
//! namespace's (decision D19). This is the only file that asks the operating system what time it is.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use servicebus_broker::Timestamp;
use tokio::time::Instant;

const A_DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Wall time, asked once and carried on by the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RealClock {
    wall: i64,
    anchor: Instant,
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
}

/// What a clock shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reading {
    pub(crate) now: Timestamp,
    /// Milliseconds ahead of real time.
    pub(crate) ahead: i64,
    pub(crate) frozen: bool,
}

/// A clock that stands still while an advance walks from deadline to deadline.
#[derive(Debug)]
pub(crate) struct Walk {
    before: State,
    by: i64,
    /// Where the walk ends.
    pub(crate) target: Timestamp,
}

impl RealClock {
    pub(crate) fn start() -> Self {
        Self::starting_at(SystemTime::now())
    }

    /// A clock that shows `wall` now.
    pub(crate) fn starting_at(wall: SystemTime) -> Self {
        let wall = wall
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_millis() as i64);
        Self {
            wall,
            anchor: Instant::now(),
        }
    }

    /// Time since the clock was started: what the AMQP engine is told.
    pub(crate) fn elapsed(&self) -> Duration {
        self.anchor.elapsed()
    }

    pub(crate) fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.wall + self.elapsed().as_millis() as i64)
    }

    /// Seconds since the Unix epoch, in which tokens speak.
    pub(crate) fn unix_seconds(&self) -> i64 {
        self.now().as_millis().div_euclid(1000)
    }

    /// What [`RealClock::elapsed`] says when this second since the Unix epoch begins; no later than a timer can wait.
    pub(crate) fn elapsed_at(&self, unix_seconds: i64) -> Duration {
        let since = unix_seconds.saturating_mul(1000).saturating_sub(self.wall);
        Duration::from_millis(u64::try_from(since).unwrap_or(0)).min(self.elapsed() + A_DAY)
    }

    /// The monotonic instant that [`RealClock::elapsed`] calls `at`.
    pub(crate) fn instant(&self, at: Duration) -> Instant {
        self.anchor + at
    }
}

impl NamespaceClock {
    pub(crate) fn new(real: RealClock) -> Self {
        Self {
            real,
            state: Mutex::default(),
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.read().now
    }

    pub(crate) fn read(&self) -> Reading {
        let State { offset, frozen_at } = *self.state();
        let real = self.real.now().as_millis();
        let now = frozen_at.unwrap_or_else(|| Timestamp::from_millis(real + offset));
        Reading {
            now,
            ahead: now.as_millis() - real,
            frozen: frozen_at.is_some(),
        }
    }

    /// Stops time; does nothing when it stands already.
    pub(crate) fn freeze(&self) {
        let now = self.now();
        self.state().frozen_at.get_or_insert(now);
    }

    /// Lets time flow on from where it stands.
    pub(crate) fn resume(&self) {
        let reading = self.read();
        *self.state() = State {
            offset: reading.ahead,
            frozen_at: None,
        };
    }

    /// Stops time for a walk of `by`.
    pub(crate) fn begin_walk(&self, by: Duration) -> Walk {
        let now = self.now();
        let before = *self.state();
        self.state().frozen_at = Some(now);
        Walk {
            before,
            by: i64::try_from(by.as_millis()).unwrap_or(i64::MAX),
            target: now + by,
        }
    }

    /// Goes on to `instant`, never back.
    pub(crate) fn step_to(&self, instant: Timestamp) {
        let mut state = self.state();
        state.frozen_at = state.frozen_at.max(Some(instant));
    }

    /// Time flows again if it did before; what passed in real time during the walk has passed here too.
    pub(crate) fn end_walk(&self, walk: &Walk) {
        *self.state() = State {
            offset: walk.before.offset.saturating_add(walk.by),
            frozen_at: walk.before.frozen_at.map(|_| walk.target),
        };
    }

    /// How long in real time until `instant`; none while time stands still.
    pub(crate) fn until(&self, instant: Timestamp) -> Option<Duration> {
        let reading = self.read();
        (!reading.frozen).then(|| instant.since(reading.now))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_ends_exactly_where_it_should() {
        let clock = NamespaceClock::new(RealClock::start());
        clock.freeze();
        let start = clock.now();
        let walk = clock.begin_walk(Duration::from_secs(60));
        clock.step_to(start + Duration::from_secs(20));
        assert_eq!(clock.now(), start + Duration::from_secs(20));
        clock.step_to(start + Duration::from_secs(10));
        assert_eq!(
            clock.now(),
            start + Duration::from_secs(20),
            "time ran back"
        );
        clock.end_walk(&walk);
        assert_eq!(clock.now(), start + Duration::from_secs(60));
        assert!(clock.read().frozen);
        clock.resume();
        assert!(clock.now() >= start + Duration::from_secs(60));
        assert!(!clock.read().frozen);
    }

    #[test]
    fn flowing_time_is_ahead_by_what_it_was_advanced() {
        let clock = NamespaceClock::new(RealClock::start());
        let walk = clock.begin_walk(Duration::from_secs(61));
        assert_eq!(clock.until(walk.target), None);
        clock.end_walk(&walk);
        assert_eq!(clock.read().ahead, 61_000);
    }
}
