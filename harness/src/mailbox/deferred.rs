//! Messages that were put aside, received by their numbers.

use std::panic::Location;

use super::{Mailbox, ReceiveError, Received};
use crate::{
    amqp::{AmqpError, LockToken, ReceiveMode},
    bus::or_panic,
    peeked::{MessageState, PeekedMessage},
};

/// The condition by which the emulator says that there is no such message.
const NOT_FOUND: &str = "com.microsoft:message-not-found";

impl Mailbox {
    /// Receives a deferred message with a lock.
    ///
    /// # Panics
    ///
    /// When no deferred message has this number, or it is locked; the text says which there are.
    #[track_caller]
    pub fn receive_deferred(&self, number: i64) -> impl Future<Output = Received> + Send {
        or_panic(Location::caller(), self.try_receive_deferred(number))
    }

    /// Receives a deferred message with a lock, or says why not.
    pub async fn try_receive_deferred(&self, number: i64) -> Result<Received, ReceiveError> {
        let received = self.by_number(number, ReceiveMode::PeekLock).await;
        match received {
            Ok((token, message)) => Ok(Received::by_number(self.clone(), token, message)),
            Err(source) => Err(self.not_received(number, source).await),
        }
    }

    /// Receives a deferred message and deletes it at once.
    ///
    /// # Panics
    ///
    /// When no deferred message has this number, or it is locked; the text says which there are.
    #[track_caller]
    pub fn receive_deferred_and_delete(
        &self,
        number: i64,
    ) -> impl Future<Output = PeekedMessage> + Send {
        let received = self.try_receive_deferred_and_delete(number);
        or_panic(Location::caller(), received)
    }

    /// Receives a deferred message and deletes it at once, or says why not.
    pub async fn try_receive_deferred_and_delete(
        &self,
        number: i64,
    ) -> Result<PeekedMessage, ReceiveError> {
        match self.by_number(number, ReceiveMode::ReceiveAndDelete).await {
            Ok((_token, message)) => Ok(message),
            Err(source) => Err(self.not_received(number, source).await),
        }
    }

    async fn by_number(
        &self,
        number: i64,
        mode: ReceiveMode,
    ) -> Result<(LockToken, PeekedMessage), AmqpError> {
        self.run(move |mailbox| async move {
            let amqp = &mailbox.doors.amqp;
            amqp.receive_deferred(&mailbox.path, number, mode).await
        })
        .await
    }

    pub(super) async fn not_received(&self, number: i64, source: AmqpError) -> ReceiveError {
        if source.condition().is_none_or(|c| c.condition != NOT_FOUND) {
            return self.receive_error(source).await;
        }
        ReceiveError::NotDeferred {
            path: self.path.clone(),
            number,
            deferred: self.numbers_of(MessageState::Deferred).await,
        }
    }

    /// Lists the messages in a state, for the text of an error: what cannot be had is left out.
    pub(super) async fn numbers_of(&self, state: MessageState) -> Vec<i64> {
        let messages = self.try_peek().await.unwrap_or_default();
        let messages = messages.iter().filter(|message| message.state == state);
        messages.map(|message| message.sequence_number).collect()
    }
}
