//! A queue that can be sent to.

use std::{fmt, ops::Deref, panic::Location, sync::Arc};

use super::{Mailbox, SendError};
use crate::{
    bus::or_panic,
    doors::Doors,
    message::{Message, to_amqp},
};

/// A queue of a bus.
#[derive(Debug, Clone)]
pub struct QueueHandle {
    mailbox: Mailbox,
}

impl QueueHandle {
    pub(crate) fn new(doors: Arc<Doors>, name: String) -> Self {
        let mailbox = Mailbox {
            doors,
            path: name.clone(),
            queue: name,
        };
        Self { mailbox }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.mailbox.queue
    }

    /// Returns the queue of its dead letters.
    pub fn dead_letters(&self) -> Mailbox {
        self.below("$DeadLetterQueue")
    }

    /// Returns the queue of the messages it could not forward.
    pub fn transfer_dead_letters(&self) -> Mailbox {
        self.below("$Transfer/$DeadLetterQueue")
    }

    /// Sends a message.
    ///
    /// # Panics
    ///
    /// When the queue is unknown, or the emulator does not take the message; the text has its words.
    #[track_caller]
    pub fn send(&self, message: impl Into<Message>) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.send_now(vec![message.into()]))
    }

    /// Sends a message, or says why not.
    pub fn try_send(
        &self,
        message: impl Into<Message>,
    ) -> impl Future<Output = Result<(), SendError>> + Send {
        self.send_now(vec![message.into()])
    }

    /// Sends messages one after the other.
    ///
    /// # Panics
    ///
    /// When the queue is unknown, or the emulator does not take a message; the text has its words.
    #[track_caller]
    pub fn send_all<M: Into<Message>>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.send_now(collected(messages)))
    }

    /// Sends messages one after the other, up to the first that is not taken.
    pub fn try_send_all<M: Into<Message>>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> impl Future<Output = Result<(), SendError>> + Send {
        self.send_now(collected(messages))
    }

    async fn send_now(&self, messages: Vec<Message>) -> Result<(), SendError> {
        let sent = self
            .run(|mailbox| async move {
                let messages = messages.into_iter().map(to_amqp).collect();
                mailbox.doors.amqp.send(&mailbox.path, messages).await
            })
            .await;
        match sent {
            Ok(()) => Ok(()),
            Err(source) => Err(match self.unknown_by(source.condition()).await {
                Some(unknown) => unknown.into(),
                None => SendError::Amqp {
                    path: self.path.clone(),
                    source,
                },
            }),
        }
    }

    fn below(&self, suffix: &str) -> Mailbox {
        Mailbox {
            path: format!("{}/{suffix}", self.mailbox.queue),
            ..self.mailbox.clone()
        }
    }
}

fn collected<M: Into<Message>>(messages: impl IntoIterator<Item = M>) -> Vec<Message> {
    messages.into_iter().map(Into::into).collect()
}

impl Deref for QueueHandle {
    type Target = Mailbox;

    fn deref(&self) -> &Mailbox {
        &self.mailbox
    }
}

impl AsRef<Mailbox> for QueueHandle {
    fn as_ref(&self) -> &Mailbox {
        &self.mailbox
    }
}

impl fmt::Display for QueueHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mailbox.fmt(f)
    }
}
