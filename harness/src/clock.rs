//! The clock of a namespace.
//!
//! It runs with the wall clock, ahead of it by what tests advanced, unless it is frozen. Advancing does
//! everything that falls due on the way, in order, and returns when that is idle.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{action::Action, connections::Connections};

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
        Action::new(async move {
            let advance = |connections: Arc<Connections>| async move {
                connections.backend.advance(by).await
            };
            Ok(self.connections.run(advance).await?)
        })
    }

    /// Returns the time of the namespace.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn now(&self) -> Action<'_, SystemTime> {
        Action::new(async move {
            let ask =
                |connections: Arc<Connections>| async move { connections.backend.clock().await };
            Ok(self.connections.run(ask).await?.now)
        })
    }

    /// Stops the clock; only [`Clock::advance`] moves it then.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn freeze(&self) -> Action<'_, ()> {
        Action::new(async move {
            let freeze =
                |connections: Arc<Connections>| async move { connections.backend.freeze().await };
            Ok(self.connections.run(freeze).await?)
        })
    }

    /// Lets a frozen clock run on.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn resume(&self) -> Action<'_, ()> {
        Action::new(async move {
            let resume =
                |connections: Arc<Connections>| async move { connections.backend.resume().await };
            Ok(self.connections.run(resume).await?)
        })
    }
}
