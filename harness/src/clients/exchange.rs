//! Exchanges over AMQP, which end early if a fault has taken their reply, because none will come.

use std::{pin::Pin, time::Duration};

use servicebus_assertions::Event;
use servicebus_control_api::Effect;

use super::SubQueueClient;
use crate::{
    amqp::{Amqp, CONTAINER},
    error::amqp::AmqpError,
};

/// The interval between two polls of the record.
const PAUSE: Duration = Duration::from_millis(50);

/// The answer to a running exchange.
pub(crate) type Exchange<'a, T> = Pin<Box<dyn Future<Output = Result<T, AmqpError>> + Send + 'a>>;

impl SubQueueClient {
    /// Runs an exchange at this address on the background runtime.
    pub(crate) async fn exchange<T: Send + 'static>(
        &self,
        exchange: impl for<'a> FnOnce(&'a Amqp, &'a str) -> Exchange<'a, T> + Send + 'static,
    ) -> Result<T, AmqpError> {
        self.run(|client| async move {
            let exchange = exchange(&client.connections.amqp, client.path());
            client.unless_reply_lost(exchange).await
        })
        .await
    }

    /// Waits for an exchange. If faults may fire, also polls for one that has taken its reply.
    pub(super) async fn unless_reply_lost<T>(
        &self,
        mut exchange: Exchange<'_, T>,
    ) -> Result<T, AmqpError> {
        if !self.connections.scripted_faults.may_fire() {
            return exchange.await;
        }
        let before = self.lost_replies().await.len();
        loop {
            if let Ok(ended) = tokio::time::timeout(PAUSE, &mut exchange).await {
                return ended;
            }
            if let Some(lost) = self.lost_replies().await.into_iter().nth(before) {
                return Err(AmqpError::Lost(lost.detail.unwrap_or_default()));
            }
        }
    }

    /// Lists the events of faults that took the reply to an operation of the test, oldest first.
    async fn lost_replies(&self) -> Vec<Event> {
        let timeline = self.try_timeline().await.unwrap_or_default();
        let lost = timeline.events().iter().filter(|event| {
            let effect = event.fault.as_ref().map(|fault| &fault.effect);
            effect == Some(&Effect::LoseReply) && event.client.as_deref() == Some(CONTAINER)
        });
        lost.cloned().collect()
    }
}
