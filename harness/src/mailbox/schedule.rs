//! Messages that become active later.
//!
//! A scheduled message has a number that is good for one thing, to take it back; when it becomes active it gets
//! another. Times are those of a client's clock: `now` is the test's own, however far the bus was advanced.

use std::time::{Duration, SystemTime};

use super::{CancelError, Mailbox, ScheduleError};
use crate::{
    message::{Message, to_amqp},
    peeked::MessageState,
};

/// The condition by which the emulator says that there is no such message.
const NOT_FOUND: &str = "com.microsoft:message-not-found";

/// When a scheduled message is to become active.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// At this time of the client's clock.
    At(SystemTime),
    /// So long from now.
    In(Duration),
}

impl Due {
    pub(crate) fn instant(self) -> SystemTime {
        match self {
            Self::At(instant) => instant,
            Self::In(delay) => SystemTime::now() + delay,
        }
    }
}

impl From<SystemTime> for Due {
    fn from(instant: SystemTime) -> Self {
        Self::At(instant)
    }
}

impl From<Duration> for Due {
    fn from(delay: Duration) -> Self {
        Self::In(delay)
    }
}

/// Lets a handle schedule what a test says; see [`sends`](super::send).
macro_rules! schedules {
    ($handle:ty) => {
        impl $handle {
            /// Schedules a message, at a time or in a while, and returns the number by which it can be taken back.
            ///
            /// # Panics
            ///
            /// When it is unknown, or the emulator does not take the message; the text has its words.
            #[track_caller]
            pub fn schedule(
                &self,
                message: impl Into<Message>,
                due: impl Into<Due>,
            ) -> impl Future<Output = i64> + Send {
                or_panic(Location::caller(), self.try_schedule(message, due))
            }

            /// Schedules a message and returns its number, or says why not.
            pub fn try_schedule(
                &self,
                message: impl Into<Message>,
                due: impl Into<Due>,
            ) -> impl Future<Output = Result<i64, ScheduleError>> + Send {
                let scheduled = self.try_schedule_all([message], due);
                async move { Ok(scheduled.await?.remove(0)) }
            }

            /// Schedules messages for the same time, all or none, and returns their numbers in order.
            ///
            /// # Panics
            ///
            /// When it is unknown, or the emulator does not take them; the text has its words.
            #[track_caller]
            pub fn schedule_all<M: Into<Message>>(
                &self,
                messages: impl IntoIterator<Item = M>,
                due: impl Into<Due>,
            ) -> impl Future<Output = Vec<i64>> + Send {
                or_panic(Location::caller(), self.try_schedule_all(messages, due))
            }

            /// Schedules messages and returns their numbers in order, or says why not.
            pub fn try_schedule_all<M: Into<Message>>(
                &self,
                messages: impl IntoIterator<Item = M>,
                due: impl Into<Due>,
            ) -> impl Future<Output = Result<Vec<i64>, ScheduleError>> + Send {
                let due = due.into().instant();
                let messages = messages.into_iter().map(Into::into);
                let messages = messages.map(|message: Message| message.scheduled_at(due));
                self.mailbox.schedule_now(messages.collect())
            }

            /// Takes a scheduled message back.
            ///
            /// # Panics
            ///
            /// When no scheduled message has this number; the text says which there are.
            #[track_caller]
            pub fn cancel_scheduled(&self, number: i64) -> impl Future<Output = ()> + Send {
                or_panic(Location::caller(), self.try_cancel_scheduled(number))
            }

            /// Takes a scheduled message back, or says why not.
            pub async fn try_cancel_scheduled(&self, number: i64) -> Result<(), CancelError> {
                self.mailbox.cancel_now(number).await
            }
        }
    };
}

pub(super) use schedules;

impl Mailbox {
    pub(super) async fn schedule_now(
        &self,
        messages: Vec<Message>,
    ) -> Result<Vec<i64>, ScheduleError> {
        let expected = messages.len();
        let scheduled = self
            .run(|mailbox| async move {
                let messages = messages.into_iter().map(to_amqp).collect();
                mailbox.doors.amqp.schedule(&mailbox.path, messages).await
            })
            .await;
        let path = || self.path.clone();
        match scheduled {
            Ok(numbers) if numbers.len() == expected => Ok(numbers),
            Ok(numbers) => Err(ScheduleError::Miscounted {
                path: path(),
                expected,
                found: numbers.len(),
            }),
            Err(source) => Err(match self.unknown_by(source.condition()).await {
                Some(unknown) => unknown.into(),
                None => ScheduleError::Amqp {
                    path: path(),
                    source,
                },
            }),
        }
    }

    pub(super) async fn cancel_now(&self, number: i64) -> Result<(), CancelError> {
        let cancelled = self
            .run(move |mailbox| async move {
                let amqp = &mailbox.doors.amqp;
                amqp.cancel_scheduled(&mailbox.path, number).await
            })
            .await;
        let Err(source) = cancelled else {
            return Ok(());
        };
        if let Some(unknown) = self.unknown_by(source.condition()).await {
            return Err(unknown.into());
        }
        let path = self.path.clone();
        let not_found = source.condition().is_some_and(|c| c.condition == NOT_FOUND);
        Err(match not_found {
            true => CancelError::NotScheduled {
                path,
                number,
                scheduled: self.numbers_of(MessageState::Scheduled).await,
            },
            false => CancelError::Amqp {
                path,
                number,
                source,
            },
        })
    }
}
