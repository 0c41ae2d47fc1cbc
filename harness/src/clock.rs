//! The clock of a namespace.
//!
//! It runs with the wall clock, ahead of it by what tests advanced, unless it is frozen. Advancing does
//! everything that falls due on the way, in order, and returns when that is idle.

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
        Action::new(self.move_on(by))
    }

    /// Moves the time forward to an instant of the namespace's clock, as [`Clock::now`] tells it.
    ///
    /// # Panics
    ///
    /// When the instant is past already, or the emulator does not answer.
    #[track_caller]
    pub fn advance_to(&self, instant: SystemTime) -> Action<'_, ()> {
        Action::new(async move {
            let by = instant.duration_since(self.reading().await?).map_err(|past| {
                let past = text::seconds(past.duration());
                let sentence = format!("the clock cannot be advanced to an instant that is {past} past: it only goes forward");
                Error::new(ErrorKind::InvalidArgument, None, sentence)
            })?;
            self.move_on(by).await
        })
    }

    /// Returns the time of the namespace.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn now(&self) -> Action<'_, SystemTime> {
        Action::new(self.reading())
    }

    /// Stops the clock; only [`Clock::advance`] moves it then.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn freeze(&self) -> Action<'_, ()> {
        Action::new(self.connections.ask(|backend| backend.freeze()))
    }

    /// Lets a frozen clock run on.
    ///
    /// # Panics
    ///
    /// When the emulator does not answer.
    #[track_caller]
    pub fn resume(&self) -> Action<'_, ()> {
        Action::new(self.connections.ask(|backend| backend.resume()))
    }

    async fn reading(&self) -> Result<SystemTime, Error> {
        Ok(self.connections.ask(|backend| backend.clock()).await?.now)
    }

    async fn move_on(&self, by: Duration) -> Result<(), Error> {
        let advanced = self.connections.ask(move |backend| backend.advance(by));
        advanced.await
    }
}
