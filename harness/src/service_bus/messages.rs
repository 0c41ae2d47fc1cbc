//! Puts the messages that a topology declares into a namespace that has started.

use super::ServiceBus;
use crate::{
    catalog::{EntityKind, topic_and_name},
    clients::{LockedMessage, SubQueueClient},
    error::Error,
    topology::{Declared, Topology},
};

/// The most that one request deletes.
const MOST_DELETED: u32 = 500;

impl ServiceBus {
    /// Puts the messages where they are declared: the dead letters first, while their queues are empty.
    pub(super) async fn put_messages(&self, topology: &Topology) -> Result<(), Error> {
        let (dead, live): (Vec<_>, Vec<_>) = topology
            .messages
            .iter()
            .partition(|declared| declared.dead_letter.is_some());
        for declared in dead.into_iter().chain(live) {
            let put = put(declared, self).await;
            put.map_err(|error| {
                let what = "cannot put the messages of the topology into the namespace";
                Error::start(format!("{what}: {error}"))
            })?;
        }
        Ok(())
    }
}

async fn put(declared: &Declared, servicebus: &ServiceBus) -> Result<(), Error> {
    let subscription = topic_and_name(&declared.entity);
    let sent_to = servicebus.queue(subscription.map_or(&*declared.entity, |(topic, _)| topic));
    let Some((reason, description)) = &declared.dead_letter else {
        return sent_to.send_declared(declared.message.clone()).await;
    };
    let session = declared.message.session();
    sent_to.send_declared(declared.message.clone()).await?;
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
