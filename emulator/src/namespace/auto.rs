//! The automatic clock: it stands still, and steps to the next deadline when nothing else can happen.
//!
//! Nothing else can happen if no connection had a turn for some time; a client that works for longer holds the clock. Only
//! deadlines that a client may wait for cause a step: a scheduled message, a delayed operation, the end of a lock.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use servicebus_broker::{Entities as _, Timestamp};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::Namespace;

/// How long the namespace must be quiet before a step.
const QUIET: Duration = Duration::from_millis(25);
/// The same before the end of a lock whose holder is attached and may be working.
const WORKING: Duration = Duration::from_secs(1);
pub(crate) const MAX_HOLDS: usize = 1000;

/// Whether the clock steps automatically, and what prevents that.
#[derive(Debug, Default)]
pub(crate) struct AutoClock {
    is_on: AtomicBool,
    changed: Notify,
    holds: Mutex<Holds>,
}

#[derive(Debug, Default)]
struct Holds {
    ever: u64,
    /// When each hold ends by itself.
    until: BTreeMap<u64, Instant>,
}

impl AutoClock {
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    pub(super) fn switch(&self, is_on: bool) {
        self.is_on.store(is_on, Ordering::Relaxed);
        self.changed.notify_one();
    }

    /// Keeps the clock from stepping for at most `length`; returns the number by which to release it, `None` if there are
    /// too many holds.
    pub(crate) fn hold(&self, length: Duration) -> Option<u64> {
        let mut holds = self.holds.lock();
        let now = Instant::now();
        holds.until.retain(|_, until| *until > now);
        if holds.until.len() >= MAX_HOLDS {
            return None;
        }
        holds.ever += 1;
        let number = holds.ever;
        holds.until.insert(number, now + length);
        Some(number)
    }

    /// Ends a hold; returns whether it existed.
    pub(crate) fn release(&self, number: u64) -> bool {
        self.holds.lock().until.remove(&number).is_some()
    }

    fn is_held(&self) -> bool {
        let now = Instant::now();
        let holds = self.holds.lock();
        holds.until.values().any(|until| *until > now)
    }
}

impl Namespace {
    /// Stops time, and lets it step automatically from now on.
    pub(crate) async fn automate_clock(&self) {
        self.stop_clock().await;
        self.auto.switch(true);
        self.append_clock();
    }

    /// Ends automatic steps.
    pub(crate) fn end_automatic_clock(&self) {
        self.auto.switch(false);
    }

    /// Steps for as long as the namespace is served.
    pub(crate) async fn run_automatic_clock(&self) {
        loop {
            if !self.auto.is_on() {
                self.auto.changed.notified().await;
            } else if self.is_quiet_for(QUIET).await && self.may_step() {
                self.step().await;
            }
        }
    }

    /// Takes the next step: releases a postponed operation, or moves time.
    async fn step(&self) {
        if self.release_postponed() {
            return;
        }
        let Some((at, is_held)) = self.next_awaited() else {
            // Requests over HTTP cause no turn.
            sleep(QUIET).await;
            return;
        };
        if is_held && !(self.is_quiet_for(WORKING - QUIET).await && self.may_step()) {
            return;
        }
        self.step_by(at.since(self.clock.now())).await;
    }

    fn may_step(&self) -> bool {
        self.auto.is_on() && !self.auto.is_held() && self.is_idle()
    }

    /// Returns whether no connection had a turn for `length`.
    async fn is_quiet_for(&self, length: Duration) -> bool {
        timeout(length, self.turns.notified()).await.is_err()
    }

    /// Returns the next deadline that a client may wait for, and whether it is the end of a lock whose holder is attached.
    fn next_awaited(&self) -> Option<(Timestamp, bool)> {
        let waits = self.faults.waits.next().map(|at| (at, false));
        let entities = self.with_entities(|entities| entities.with_deadlines());
        let entities = entities.iter();
        let each = entities.filter_map(|entity| self.read(entity, |entity| entity.next_awaited()));
        each.chain(waits).min_by_key(|(at, _)| *at)
    }
}
