//! Sending, which queues and topics share.
//!
//! A macro and not a trait, so that a test needs no import and a panic names the line of the test.

use super::{Mailbox, SendError};
use crate::{
    comparison::observe,
    message::{Message, to_amqp},
};

/// Lets a handle send what a test says.
macro_rules! sends {
    ($handle:ty) => {
        impl $handle {
            /// Sends a message.
            ///
            /// # Panics
            ///
            /// When it is unknown, or the emulator does not take the message; the text has its words.
            #[track_caller]
            pub fn send(&self, message: impl Into<Message>) -> impl Future<Output = ()> + Send {
                or_panic(
                    Location::caller(),
                    self.mailbox.send_now(vec![message.into()]),
                )
            }

            /// Sends a message, or says why not.
            pub fn try_send(
                &self,
                message: impl Into<Message>,
            ) -> impl Future<Output = Result<(), SendError>> + Send {
                self.mailbox.send_now(vec![message.into()])
            }

            /// Sends messages one after the other.
            ///
            /// # Panics
            ///
            /// When it is unknown, or the emulator does not take a message; the text has its words.
            #[track_caller]
            pub fn send_all<M: Into<Message>>(
                &self,
                messages: impl IntoIterator<Item = M>,
            ) -> impl Future<Output = ()> + Send {
                or_panic(
                    Location::caller(),
                    self.mailbox.send_now(collected(messages)),
                )
            }

            /// Sends messages one after the other, up to the first that is not taken.
            pub fn try_send_all<M: Into<Message>>(
                &self,
                messages: impl IntoIterator<Item = M>,
            ) -> impl Future<Output = Result<(), SendError>> + Send {
                self.mailbox.send_now(collected(messages))
            }
        }
    };
}

pub(super) use sends;

impl Mailbox {
    pub(super) async fn send_now(&self, messages: Vec<Message>) -> Result<(), SendError> {
        let sent = self
            .run(|mailbox| async move {
                let messages = messages.into_iter().map(to_amqp).collect();
                mailbox.doors.amqp.send(&mailbox.path, messages).await
            })
            .await;
        let told = sent
            .as_ref()
            .map_or_else(ToString::to_string, |()| "accepted".to_owned());
        observe(format!("send to {self}"), told);
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
}

pub(super) fn collected<M: Into<Message>>(messages: impl IntoIterator<Item = M>) -> Vec<Message> {
    messages.into_iter().map(Into::into).collect()
}
