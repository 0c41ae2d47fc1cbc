//! Sending and scheduling, for queues and topics.
//!
//! A macro instead of a trait, so that a test needs no import and a panic names the line of the test.
//!
//! The sequence number of a scheduled message only serves to cancel it; the message gets another one when it becomes active.
//! Times are by the client's clock: `now` is the test's own, however far the namespace was advanced.

use super::{SubQueueClient, error::listed};
use crate::{
    amqp::to_amqp,
    error::{Error, ErrorKind, amqp::MESSAGE_NOT_FOUND},
    message::Message,
    observer::observe,
    received_message::MessageState,
};

/// Gives a client the methods that send.
macro_rules! sends {
    ($handle:ty) => {
        impl $handle {
            /// Sends a message.
            #[track_caller]
            pub fn send(&self, message: impl Into<Message>) -> Action<'_, ()> {
                Action::new(self.client.send_now(vec![message.into()]))
            }

            /// Sends messages one after the other, and stops at the first failure.
            #[track_caller]
            pub fn send_all<M: Into<Message>>(
                &self,
                messages: impl IntoIterator<Item = M>,
            ) -> impl Future<Output = ()> + Send {
                Action::new(self.client.send_now(collected(messages)))
            }
        }
    };
}

pub(crate) use sends;

impl SubQueueClient {
    pub(crate) async fn send_now(&self, messages: Vec<Message>) -> Result<(), Error> {
        self.check_kind().await?;
        let messages = messages.into_iter().map(to_amqp).collect();
        let sent = self
            .exchange(|amqp, path| Box::pin(amqp.send(path, messages)))
            .await;
        let rendered = sent
            .as_ref()
            .map_or_else(ToString::to_string, |()| "accepted".to_owned());
        observe(format!("send to {self}"), rendered);
        self.outcome(format!("send to {self}"), sent).await
    }
}

impl SubQueueClient {
    /// Rejects a queue where a topic is meant and vice versa: a send to either would work under the same address.
    async fn check_kind(&self) -> Result<(), Error> {
        let (kind, path) = (self.kind(), self.path());
        if self.connections.declared.find(kind, path).is_some() {
            return Ok(());
        }
        match self.unknown_entity().await {
            Some(unknown) if unknown.instead.is_some() => Err(unknown.into()),
            _ => Ok(()),
        }
    }
}

pub(crate) fn collected<M: Into<Message>>(messages: impl IntoIterator<Item = M>) -> Vec<Message> {
    messages.into_iter().map(Into::into).collect()
}

/// Gives a client the methods that schedule; see [`sends`].
macro_rules! schedules {
    ($handle:ty) => {
        impl $handle {
            /// Schedules a message for a time or after a delay, and returns the sequence number by which it can be
            /// cancelled.
            #[track_caller]
            pub fn schedule(
                &self,
                message: impl Into<Message>,
                due: impl Into<ScheduledEnqueueTime>,
            ) -> Action<'_, i64> {
                let due = due.into().instant();
                let message: Message = message.into();
                let scheduled = self.client.schedule_now(vec![message.scheduled_at(due)]);
                Action::new(async move { Ok(scheduled.await?.remove(0)) })
            }

            /// Schedules messages for the same time, all or none, and returns their sequence numbers in order.
            #[track_caller]
            pub fn schedule_all<M: Into<Message>>(
                &self,
                messages: impl IntoIterator<Item = M>,
                due: impl Into<ScheduledEnqueueTime>,
            ) -> impl Future<Output = Vec<i64>> + Send {
                let due = due.into().instant();
                let messages = messages.into_iter().map(Into::into);
                let messages = messages.map(|message: Message| message.scheduled_at(due));
                Action::new(self.client.schedule_now(messages.collect()))
            }

            /// Cancels a scheduled message.
            ///
            /// # Panics
            ///
            /// Panics if no scheduled message has this sequence number; the panic lists the scheduled ones.
            #[track_caller]
            pub fn cancel_scheduled(&self, sequence_number: i64) -> Action<'_, ()> {
                Action::new(self.client.cancel_now(sequence_number))
            }
        }
    };
}

pub(crate) use schedules;

impl SubQueueClient {
    pub(crate) async fn schedule_now(&self, messages: Vec<Message>) -> Result<Vec<i64>, Error> {
        self.check_kind().await?;
        let expected = messages.len();
        let messages = messages.into_iter().map(to_amqp).collect();
        let scheduled = self.exchange(|amqp, path| Box::pin(amqp.schedule(path, messages)));
        match scheduled.await {
            Ok(numbers) if numbers.len() == expected => Ok(numbers),
            Ok(numbers) => {
                let found = numbers.len();
                let sentence = format!(
                    "{self} answered with {found} numbers for {expected} scheduled messages"
                );
                Err(self.error(ErrorKind::Malformed, sentence))
            }
            Err(source) => Err(self.amqp_error(format!("schedule to {self}"), source).await),
        }
    }

    pub(crate) async fn cancel_now(&self, sequence_number: i64) -> Result<(), Error> {
        let cancel =
            self.exchange(move |amqp, path| Box::pin(amqp.cancel_scheduled(path, sequence_number)));
        let Err(source) = cancel.await else {
            return Ok(());
        };
        if !source.is(MESSAGE_NOT_FOUND) {
            let operation = format!("cancel the scheduled message {sequence_number} of {self}");
            return Err(self.amqp_error(operation, source).await);
        }
        let scheduled = self.sequence_numbers_of(MessageState::Scheduled).await;
        let scheduled = listed("scheduled", &scheduled);
        let sentence = format!("{self} holds no scheduled message {sequence_number}; {scheduled}");
        Err(self.error(ErrorKind::MessageNotFound, sentence))
    }
}
