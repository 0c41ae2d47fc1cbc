//! Receives deferred messages by their sequence numbers.

use super::{LockedMessage, SubQueueClient, error::listed, locked_message::SettlementPath};
use crate::{
    action::Action,
    amqp::{LockToken, ReceiveMode},
    error::amqp::{AmqpError, MESSAGE_NOT_FOUND},
    error::{Error, ErrorKind},
    received_message::{MessageState, ReceivedMessage},
};

impl SubQueueClient {
    /// Receives a deferred message with a lock.
    ///
    /// # Panics
    ///
    /// Panics if no deferred message has this sequence number, or it is locked; the panic lists the deferred ones.
    #[track_caller]
    pub fn receive_deferred(&self, sequence_number: i64) -> Action<'_, LockedMessage> {
        Action::new(self.lock_deferred(sequence_number, None))
    }

    /// Receives and deletes a deferred message.
    ///
    /// # Panics
    ///
    /// Panics if no deferred message has this sequence number, or it is locked; the panic lists the deferred ones.
    #[track_caller]
    pub fn receive_deferred_and_delete(&self, sequence_number: i64) -> Action<'_, ReceivedMessage> {
        Action::new(async move {
            let mode = ReceiveMode::ReceiveAndDelete;
            let (_token, message) = self.take_deferred(sequence_number, mode, None).await?;
            Ok(message)
        })
    }

    /// Receives a deferred message with a lock; one of a session needs the id of the session, which the test holds.
    pub(super) async fn lock_deferred(
        &self,
        sequence_number: i64,
        session: Option<String>,
    ) -> Result<LockedMessage, Error> {
        let taken = self.take_deferred(sequence_number, ReceiveMode::PeekLock, session);
        let (token, message) = taken.await?;
        Ok(LockedMessage::new(
            self.clone(),
            SettlementPath::LockToken(token),
            message,
        ))
    }

    async fn take_deferred(
        &self,
        sequence_number: i64,
        mode: ReceiveMode,
        session: Option<String>,
    ) -> Result<(LockToken, ReceivedMessage), Error> {
        let taken = self.exchange(move |amqp, path| {
            Box::pin(amqp.receive_deferred(path, sequence_number, mode, session))
        });
        match taken.await {
            Ok(taken) => Ok(taken),
            Err(source) => Err(self.not_received(sequence_number, source).await),
        }
    }

    async fn not_received(&self, sequence_number: i64, source: AmqpError) -> Error {
        if !source.is(MESSAGE_NOT_FOUND) {
            return self.receive_error(source).await;
        }
        let deferred = self.sequence_numbers_of(MessageState::Deferred).await;
        let why = match deferred.contains(&sequence_number) {
            true => "it is locked".to_owned(),
            false => listed("deferred", &deferred),
        };
        let sentence = format!(
            "{self} holds no deferred message {sequence_number} that can be received; {why}"
        );
        self.error(ErrorKind::MessageNotFound, sentence)
    }

    /// Lists the sequence numbers of the messages in a state, for an error message; empty if the peek fails.
    pub(crate) async fn sequence_numbers_of(&self, state: MessageState) -> Vec<i64> {
        let messages = self.try_peek().await.unwrap_or_default();
        let messages = messages.iter().filter(|message| message.state == state);
        messages.map(|message| message.sequence_number).collect()
    }
}
