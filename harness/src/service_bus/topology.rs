//! Exports the topology of a running namespace, and puts the messages of a topology into a started one.

use serde_json::Value;

use super::ServiceBus;
use crate::{
    action::Action,
    catalog::{EntityKind, topic_and_name},
    clients::{LockedMessage, SubQueueClient},
    end_check::EndCheck,
    error::Error,
    keys,
    shared::is_generated,
    topology::{DeclaredMessage, NAMESPACE, Topology},
};

/// The largest number of messages that one request deletes.
const MAX_DELETED: u32 = 500;

impl ServiceBus {
    /// Returns the current entities as a topology, to start another namespace with, or to store in a file.
    ///
    /// It does not include how this namespace is reached: its key, its address, and its name if that was generated. It
    /// includes further keys that its own topology declared.
    ///
    /// # Panics
    ///
    /// Panics if the emulator does not answer.
    #[track_caller]
    pub fn topology(&self) -> Action<'_, Topology> {
        Action::new(async move {
            let mut document = self.connections.ask(|backend| backend.topology()).await?;
            remove_access_settings(&mut document, self.connections.amqp.key_name());
            Ok(Topology::exported(format!("{document:#}")))
        })
    }
}

/// Removes how the namespace is reached, which another namespace must not share.
fn remove_access_settings(document: &mut Value, own: &str) {
    let Some(namespace) = document.pointer_mut("/UserConfig/Namespaces/0") else {
        return;
    };
    if namespace["Name"].as_str().is_some_and(is_generated) {
        namespace["Name"] = NAMESPACE.into();
    }
    let Some(block) = namespace["Emulator"].as_object_mut() else {
        return;
    };
    block.remove("Address");
    let Some(Value::Array(mut declared)) = block.remove("Keys") else {
        return;
    };
    declared.retain(|key| {
        let name = key["Name"].as_str().unwrap_or_default();
        name != own && !keys::is_own(name)
    });
    if !declared.is_empty() {
        block.insert("Keys".to_owned(), declared.into());
    }
}

impl ServiceBus {
    /// Sends the messages of a topology, if any.
    pub(crate) async fn with_declared_messages(
        mut self,
        topology: Option<&Topology>,
    ) -> Result<Self, Error> {
        let sent = match topology {
            Some(topology) => self.send_declared_messages(topology).await,
            None => Ok(()),
        };
        if sent.is_err() {
            // Their failures would hide the error: a start that fails leaves messages.
            self.end_checks.iter_mut().for_each(EndCheck::cancel);
        }
        sent.map(|()| self)
    }

    /// Sends the declared messages: dead letters first, while their queues are empty.
    async fn send_declared_messages(&self, topology: &Topology) -> Result<(), Error> {
        let (dead, live): (Vec<_>, Vec<_>) = topology
            .messages
            .iter()
            .partition(|declared| declared.dead_letter.is_some());
        for declared in dead.into_iter().chain(live) {
            let put = send_declared(declared, self).await;
            put.map_err(|error| {
                let what = "cannot send the messages of the topology";
                Error::start(format!("{what}: {error}"))
            })?;
        }
        Ok(())
    }
}

async fn send_declared(declared: &DeclaredMessage, servicebus: &ServiceBus) -> Result<(), Error> {
    let subscription = topic_and_name(&declared.entity);
    let name = subscription.map_or(&*declared.entity, |(topic, _)| topic);
    let (queue, topic) = (servicebus.queue(name), servicebus.topic(name));
    let entities = &servicebus.connections.declared;
    let is_topic =
        subscription.is_some() || entities.find(EntityKind::Topic, topic.path()).is_some();
    let message = declared.message.clone();
    match is_topic {
        true => topic.send(message).result().await?,
        false => queue.send(message).result().await?,
    }
    let Some((reason, description)) = &declared.dead_letter else {
        return Ok(());
    };
    let session = declared.message.session_id.as_deref();
    let locked = match subscription {
        None => receive_only(&queue, session).await?,
        Some((topic, name)) => {
            let subscription = servicebus.subscription(topic, name);
            let locked = receive_only(&subscription, session).await?;
            delete_from_other_subscriptions(&subscription, servicebus).await?;
            locked
        }
    };
    let (reason, description) = (reason.clone(), description.clone());
    locked.dead_letter(reason, description).result().await
}

/// Receives the only message of a queue, subscription or session.
async fn receive_only(
    client: &SubQueueClient,
    session: Option<&str>,
) -> Result<LockedMessage, Error> {
    let declared = client.declared().await;
    match session.filter(|_| declared.is_some_and(|declared| declared.requires_session)) {
        None => client.receive().result().await,
        Some(session) => {
            let session = client.accept_session(session).result().await?;
            session.receive().result().await
        }
    }
}

/// Deletes the messages of the topic's other subscriptions.
async fn delete_from_other_subscriptions(
    client: &SubQueueClient,
    servicebus: &ServiceBus,
) -> Result<(), Error> {
    let topic_of = |path| topic_and_name(path).map(|(topic, _)| topic);
    let catalog = client.catalog().await;
    for beside in catalog.of_kind(EntityKind::Subscription) {
        let is_beside = topic_of(&beside.name) == topic_of(client.path());
        if !is_beside || beside.name == client.path() || beside.forwards_to.is_some() {
            continue;
        }
        let (topic, name) = topic_and_name(&beside.name).expect("it is beside a subscription");
        let beside = servicebus.subscription(topic, name);
        beside.delete_messages(MAX_DELETED).result().await?;
    }
    Ok(())
}
