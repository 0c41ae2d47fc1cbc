//! The clock of a namespace.
//!
//! It runs with the wall clock, ahead of it by what tests advanced, unless it is frozen. Advancing does
//! everything that falls due on the way, in order, and returns when that has come to rest.

use std::{
    panic::Location,
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{bus::or_panic, control::ControlError, doors::Doors, timeline::instant};

/// The time of one namespace.
#[derive(Debug, Clone)]
pub struct Clock {
    doors: Arc<Doors>,
}

impl Clock {
    pub(crate) fn new(doors: Arc<Doors>) -> Self {
        Self { doors }
    }

    /// Moves the time forward: every lock, message and schedule that falls due on the way does so.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn advance(&self, by: Duration) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_advance(by))
    }

    /// Moves the time forward, or says why not.
    pub async fn try_advance(&self, by: Duration) -> Result<(), ControlError> {
        self.turn("clock/advance", json!({ "seconds": by.as_secs_f64() }))
            .await
    }

    /// Returns the time of the namespace.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn now(&self) -> impl Future<Output = SystemTime> + Send {
        or_panic(Location::caller(), self.try_now())
    }

    /// Returns the time of the namespace, or says why not.
    pub async fn try_now(&self) -> Result<SystemTime, ControlError> {
        let ask =
            |doors: Arc<Doors>| async move { doors.control.get::<Reading>("clock", &[]).await };
        self.doors.run(ask).await.map(|reading| reading.now)
    }

    /// Stops the clock; only [`Clock::advance`] moves it then.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn freeze(&self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.turn("clock/freeze", json!({})))
    }

    /// Lets a frozen clock run on.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn resume(&self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.turn("clock/resume", json!({})))
    }

    async fn turn(&self, path: &'static str, body: Value) -> Result<(), ControlError> {
        let turn = move |doors: Arc<Doors>| async move {
            doors.control.post::<Reading>(path, &body).await
        };
        self.doors.run(turn).await.map(|_reading| ())
    }
}

#[derive(Debug, Deserialize)]
struct Reading {
    #[serde(with = "instant")]
    now: SystemTime,
}
