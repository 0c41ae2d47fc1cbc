//! Messages that are there when a test begins, declared beside the entities.
//!
//! They are sent by the test when the namespace has started, so that every mode has them, and their record begins as that
//! of any message.

use crate::{
    clients::QueueClient, error::Error, message::Message, service_bus::ServiceBus,
    start_error::StartError,
};

use super::Topology;

/// One message, and where it is to be.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    /// The queue or topic that it is sent to.
    entity: String,
    message: Message,
    /// The reason and description, where it is to be dead-lettered.
    dead_letter: Option<(String, String)>,
}

impl Topology {
    /// Declares a message in a queue, or one that is published to a topic. One that says when it becomes active is
    /// scheduled.
    ///
    /// ```no_run
    /// # use std::time::Duration;
    /// # use servicebus_harness::prelude::*;
    /// let topology = Topology::file("fixtures/orders.json")
    ///     .message("orders", "the first")
    ///     .message("orders", Message::from("later").scheduled_in(Duration::from_secs(600)))
    ///     .dead_letter("orders", "not json", "Rejected", "it is no order");
    /// ```
    pub fn message(mut self, entity: impl Into<String>, message: impl Into<Message>) -> Self {
        self.messages.push(Declared {
            entity: entity.into(),
            message: message.into(),
            dead_letter: None,
        });
        self
    }

    /// Declares a message in the dead-letter queue of a queue.
    pub fn dead_letter(
        mut self,
        queue: impl Into<String>,
        message: impl Into<Message>,
        reason: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        self.messages.push(Declared {
            entity: queue.into(),
            message: message.into(),
            dead_letter: Some((reason.into(), description.into())),
        });
        self
    }

    /// Puts the messages where they are declared: the dead letters first, while their queues are empty.
    pub(crate) async fn put_messages(&self, servicebus: &ServiceBus) -> Result<(), StartError> {
        let (dead, live): (Vec<_>, Vec<_>) = self
            .messages
            .iter()
            .partition(|declared| declared.dead_letter.is_some());
        for declared in dead.into_iter().chain(live) {
            let put = declared.put(servicebus).await;
            put.map_err(|error| StartError::Messages(Box::new(error)))?;
        }
        Ok(())
    }
}

impl Declared {
    async fn put(&self, servicebus: &ServiceBus) -> Result<(), Error> {
        let queue = servicebus.queue(&self.entity);
        let Some((reason, description)) = &self.dead_letter else {
            return queue.send_declared(self.message.clone()).await;
        };
        let session = self.message.session().map(str::to_owned);
        queue.send_declared(self.message.clone()).await?;
        let locked = received(&queue, session.as_deref()).await?;
        let (reason, description) = (reason.clone(), description.clone());
        locked.dead_letter(reason, description).result().await
    }
}

/// Receives the only message of a queue, or of a session of it.
async fn received(
    queue: &QueueClient,
    session: Option<&str>,
) -> Result<crate::LockedMessage, Error> {
    match session {
        None => queue.receive().result().await,
        Some(session) => {
            let session = queue.accept_session(session).result().await?;
            session.receive().result().await
        }
    }
}
