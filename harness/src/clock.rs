//! The clock of a namespace.
//!
//! It runs with the wall clock, ahead of it by what tests advanced, unless it is frozen. An advance runs everything that
//! falls due on the way, in order, and returns when the namespace is idle again.

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    action::Action,
    connections::Connections,
    error::{Error, ErrorKind},
    text,
};

/// The clock of a namespace.
#[derive(Debug, Clone)]
pub struct Clock {
    connections: Arc<Connections>,
}

impl Clock {
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self { connections }
    }

    /// Advances the time: locks and messages expire and scheduled messages become active in order.
    #[track_caller]
    pub fn advance(&self, by: Duration) -> Action<'_, ()> {
        Action::new(self.advance_by(by))
    }

    /// Advances the time to an instant of the namespace's clock, as [`Clock::now`] returns it.
    ///
    /// # Panics
    ///
    /// Panics if the instant has passed, or the emulator does not answer.
    #[track_caller]
    pub fn advance_to(&self, instant: SystemTime) -> Action<'_, ()> {
        Action::new(async move {
            let by = instant.duration_since(self.read().await?).map_err(|past| {
                let past = text::seconds(past.duration());
                let sentence = format!("the clock cannot be advanced to an instant that is {past} in the past: it only moves forward");
                Error::new(ErrorKind::InvalidArgument, None, sentence)
            })?;
            self.advance_by(by).await
        })
    }

    /// Returns the time of the namespace.
    #[track_caller]
    pub fn now(&self) -> Action<'_, SystemTime> {
        Action::new(self.read())
    }

    /// Stops the clock; only [`Clock::advance`] moves it then.
    #[track_caller]
    pub fn freeze(&self) -> Action<'_, ()> {
        Action::new(self.connections.ask(|backend| backend.freeze()))
    }

    /// Lets a frozen clock run on.
    #[track_caller]
    pub fn resume(&self) -> Action<'_, ()> {
        Action::new(self.connections.ask(|backend| backend.resume()))
    }

    async fn read(&self) -> Result<SystemTime, Error> {
        Ok(self.connections.ask(|backend| backend.clock()).await?.now)
    }

    async fn advance_by(&self, by: Duration) -> Result<(), Error> {
        let advanced = self.connections.ask(move |backend| backend.advance(by));
        advanced.await
    }
}
