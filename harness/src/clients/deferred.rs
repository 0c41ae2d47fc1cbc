//! Messages that were deferred, received by their sequence numbers.

use super::{LockedMessage, SubQueueClient, error::listed, locked_message::Hold};
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
    /// When no deferred message has this sequence number, or it is locked; the text says which there are.
    #[track_caller]
    pub fn receive_deferred(&self, sequence_number: i64) -> Action<'_, LockedMessage> {
        Action::new(async move {
            let received = self
                .by_sequence_number(sequence_number, ReceiveMode::PeekLock, None)
                .await;
            match received {
                Ok((token, message)) => {
                    let hold = Hold::LockToken(token);
                    Ok(LockedMessage::new(self.clone(), hold, message))
                }
                Err(source) => Err(self.not_received(sequence_number, source).await),
            }
        })
    }

    /// Receives a deferred message and deletes it at once.
    ///
    /// # Panics
    ///
    /// When no deferred message has this sequence number, or it is locked; the text says which there are.
    #[track_caller]
    pub fn receive_deferred_and_delete(&self, sequence_number: i64) -> Action<'_, ReceivedMessage> {
        Action::new(async move {
            let received = self
                .by_sequence_number(sequence_number, ReceiveMode::ReceiveAndDelete, None)
                .await;
            match received {
                Ok((_token, message)) => Ok(message),
                Err(source) => Err(self.not_received(sequence_number, source).await),
            }
        })
    }

    pub(crate) async fn by_sequence_number(
        &self,
        sequence_number: i64,
        mode: ReceiveMode,
        session: Option<String>,
    ) -> Result<(LockToken, ReceivedMessage), AmqpError> {
        self.run(move |client| async move {
            let amqp = &client.connections.amqp;
            amqp.receive_deferred(client.path(), sequence_number, mode, session.as_deref())
                .await
        })
        .await
    }

    pub(crate) async fn not_received(&self, sequence_number: i64, source: AmqpError) -> Error {
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

    /// Lists the messages in a state, for the text of an error: what cannot be had is left out.
    pub(crate) async fn sequence_numbers_of(&self, state: MessageState) -> Vec<i64> {
        let messages = self.try_peek().await.unwrap_or_default();
        let messages = messages.iter().filter(|message| message.state == state);
        messages.map(|message| message.sequence_number).collect()
    }
}
