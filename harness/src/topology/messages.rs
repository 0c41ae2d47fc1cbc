//! Messages that are there when a test begins, declared beside the entities.
//!
//! They are sent by the test when the namespace has started, so that every mode has them, and their record begins as that
//! of any message.

use crate::{
    catalog::{EntityKind, topic_and_name},
    clients::{LockedMessage, SubQueueClient},
    error::Error,
    message::Message,
    service_bus::ServiceBus,
    start_error::StartError,
};

use super::Topology;

/// The most that one request deletes.
const MOST_DELETED: u32 = 500;

/// One message, and where it is to be.
#[derive(Debug, Clone)]
pub(super) struct Declared {
    /// The queue or topic that it is sent to; of a dead letter, the queue or subscription that it is in.
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
    ///     .dead_letter("orders", "not json", "Rejected", "it is no order")
    ///     .dead_letter("prices/Subscriptions/eu", "-1", "Rejected", "it is no price");
    /// ```
    pub fn message(mut self, entity: impl Into<String>, message: impl Into<Message>) -> Self {
        self.messages.push(Declared {
            entity: entity.into(),
            message: message.into(),
            dead_letter: None,
        });
        self
    }

    /// Declares a message in the dead-letter queue of a queue or subscription.
    ///
    /// That of a subscription is published to its topic, so that a rule must select it. What other subscriptions get of it
    /// is deleted, unless they forward it.
    pub fn dead_letter(
        mut self,
        entity: impl Into<String>,
        message: impl Into<Message>,
        reason: impl Into<String>,
        description: impl Into<String>,
    ) -> Self {
        self.messages.push(Declared {
            entity: entity.into(),
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
        let subscription = topic_and_name(&self.entity);
        let sent_to = servicebus.queue(subscription.map_or(&*self.entity, |(topic, _)| topic));
        let Some((reason, description)) = &self.dead_letter else {
            return sent_to.send_declared(self.message.clone()).await;
        };
        let session = self.message.session();
        sent_to.send_declared(self.message.clone()).await?;
        let locked = match subscription {
            None => received(&sent_to, session).await?,
            Some((topic, name)) => {
                let subscription = servicebus.subscription(topic, name);
                let locked = received(&subscription, session).await?;
                delete_beside(&subscription, servicebus).await?;
                locked
            }
        };
        let (reason, description) = (reason.clone(), description.clone());
        locked.dead_letter(reason, description).result().await
    }
}

/// Receives the only message of a queue or subscription, or of a session of it.
async fn received(client: &SubQueueClient, session: Option<&str>) -> Result<LockedMessage, Error> {
    let declared = client.declared().await;
    match session.filter(|_| declared.is_some_and(|declared| declared.requires_session)) {
        None => client.receive().result().await,
        Some(session) => {
            let session = client.accept_session(session).result().await?;
            session.receive().result().await
        }
    }
}

/// Deletes what the other subscriptions of the same topic hold.
async fn delete_beside(client: &SubQueueClient, servicebus: &ServiceBus) -> Result<(), Error> {
    let topic_of = |path| topic_and_name(path).map(|(topic, _)| topic);
    let catalog = client.catalog().await;
    for beside in catalog.of_kind(EntityKind::Subscription) {
        let is_beside = topic_of(&beside.name) == topic_of(client.path());
        if !is_beside || beside.name == client.path() || beside.forwards_to.is_some() {
            continue;
        }
        let (topic, name) = topic_and_name(&beside.name).expect("it is beside a subscription");
        let beside = servicebus.subscription(topic, name);
        beside.delete_messages(MOST_DELETED).result().await?;
    }
    Ok(())
}
