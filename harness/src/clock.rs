//! The clock of a namespace.
//!
//! It runs with the wall clock, ahead of it by what tests advanced, unless it is frozen. Advancing does
//! everything that falls due on the way, in order, and returns when that is idle.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{action::Action, connections::Connections, error::Error, timeline::instant};

/// The time of one namespace.
#[derive(Debug, Clone)]
pub struct Clock {
    connections: Arc<Connections>,
}

impl Clock {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections }
    }

    /// Moves the time forward: every lock, message and schedule that falls due on the way does so.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn advance(&self, by: Duration) -> Action<'_, ()> {
        Action::new(self.control("clock/advance", json!({ "seconds": by.as_secs_f64() })))
    }

    /// Returns the time of the namespace.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn now(&self) -> Action<'_, SystemTime> {
        Action::new(async move {
            let ask = |connections: Arc<Connections>| async move {
                connections.control.get::<Reading>("clock", &[]).await
            };
            let reading = self.connections.run(ask).await?;
            Ok(reading.now)
        })
    }

    /// Stops the clock; only [`Clock::advance`] moves it then.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn freeze(&self) -> Action<'_, ()> {
        Action::new(self.control("clock/freeze", json!({})))
    }

    /// Lets a frozen clock run on.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn resume(&self) -> Action<'_, ()> {
        Action::new(self.control("clock/resume", json!({})))
    }

    async fn control(&self, path: &'static str, body: Value) -> Result<(), Error> {
        let order = move |connections: Arc<Connections>| async move {
            connections.control.post::<Reading>(path, &body).await
        };
        self.connections.run(order).await?;
        Ok(())
    }
}

#[derive(Debug, Deserialize)]
struct Reading {
    #[serde(with = "instant")]
    now: SystemTime,
}
