//! Queues, topics and subscriptions that are made, changed and removed while a bus runs.
//!
//! An entity is described by the same builder as in a topology. The emulator judges it, and what it refuses is
//! told in the words of a configuration file.

mod change;

use std::{panic::Location, sync::Arc};

use crate::{
    bus::{ServiceBus, or_panic},
    control::{ControlError, Place},
    doors::Doors,
    kind::EntityKind,
    mailbox::{Mailbox, QueueHandle, SubscriptionHandle, TopicHandle, UnknownEntity},
    topology::{Queue, Subscription, Topic},
};

/// Why a queue, topic or subscription was not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// There is one of this name.
    #[error("there is a {kind} \"{name}\" already; update it, or delete it first")]
    Exists {
        /// What has the name.
        kind: EntityKind,
        /// The name.
        name: String,
    },
    /// The topic of the subscription does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
    /// A subscription that is made at run time has the `$Default` rule and no other.
    #[error(
        "the {} \"{name}\" cannot be made with rules of its own while the bus runs: declare it in the topology, or let an SDK exchange its rule $Default",
        EntityKind::Subscription
    )]
    Rules {
        /// The name.
        name: String,
    },
    /// The emulator refused, or did not answer.
    #[error("cannot create the {kind} \"{name}\": {source}")]
    Control {
        /// What was to be made.
        kind: EntityKind,
        /// The name.
        name: String,
        /// What the emulator said.
        source: ControlError,
    },
}

/// Why a queue, topic or subscription was not changed; it is as it was.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// It does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
    /// What was set has a life of its own, and is not changed this way.
    #[error("an update of the {kind} \"{name}\" cannot set its {part}")]
    Part {
        /// What was to be changed.
        kind: EntityKind,
        /// The name.
        name: String,
        /// What was set: the rules of a subscription, or the subscriptions of a topic.
        part: &'static str,
    },
    /// The emulator refused, or did not answer.
    #[error("cannot update the {kind} \"{name}\": {source}")]
    Control {
        /// What was to be changed.
        kind: EntityKind,
        /// The name.
        name: String,
        /// What the emulator said.
        source: ControlError,
    },
}

/// Why a queue, topic or subscription was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteError {
    /// It does not exist.
    #[error(transparent)]
    UnknownEntity(#[from] UnknownEntity),
    /// The emulator refused, or did not answer.
    #[error("cannot delete the {kind} \"{name}\": {source}")]
    Control {
        /// What was to be deleted.
        kind: EntityKind,
        /// The name.
        name: String,
        /// What the emulator said.
        source: ControlError,
    },
}

impl ServiceBus {
    /// Makes a queue.
    ///
    /// # Panics
    ///
    /// When there is one of this name, or the emulator refuses; the text has its words.
    #[track_caller]
    pub fn create_queue(&self, queue: Queue) -> impl Future<Output = QueueHandle> + Send {
        or_panic(Location::caller(), self.try_create_queue(queue))
    }

    /// Makes a queue, or says why not.
    pub fn try_create_queue(
        &self,
        queue: Queue,
    ) -> impl Future<Output = Result<QueueHandle, CreateError>> + Send {
        let handle = self.queue(queue.name());
        async move {
            handle.create(queue.properties()).await?;
            Ok(handle)
        }
    }

    /// Makes a topic with its subscriptions; see [`ServiceBus::create_subscription`] about their rules.
    ///
    /// # Panics
    ///
    /// When there is one of this name, or the emulator refuses; the text has its words.
    #[track_caller]
    pub fn create_topic(&self, topic: Topic) -> impl Future<Output = TopicHandle> + Send {
        or_panic(Location::caller(), self.try_create_topic(topic))
    }

    /// Makes a topic with its subscriptions, or says why not. When a subscription is refused, the topic stays, with
    /// the subscriptions before that one.
    pub fn try_create_topic(
        &self,
        topic: Topic,
    ) -> impl Future<Output = Result<TopicHandle, CreateError>> + Send {
        let handle = self.topic(topic.name());
        async move {
            let declared = topic.subscriptions().iter();
            let subscriptions = declared.map(|it| (handle.subscription(it.name()), it));
            let subscriptions = Vec::from_iter(subscriptions);
            for (subscription, declared) in &subscriptions {
                without_rules(subscription, declared)?;
            }
            handle.as_ref().create(topic.properties()).await?;
            for (subscription, declared) in subscriptions {
                subscription.create(declared.properties()).await?;
            }
            Ok(handle)
        }
    }

    /// Makes a subscription, which has the rule `$Default` and so gets every message: rules of its own can be
    /// declared in the topology, and changed by an SDK.
    ///
    /// # Panics
    ///
    /// When there is one of this name, the topic is unknown, the subscription has rules, or the emulator refuses;
    /// the text has its words.
    #[track_caller]
    pub fn create_subscription(
        &self,
        topic: impl AsRef<str>,
        subscription: Subscription,
    ) -> impl Future<Output = SubscriptionHandle> + Send {
        let created = self.try_create_subscription(topic, subscription);
        or_panic(Location::caller(), created)
    }

    /// Makes a subscription, or says why not.
    pub fn try_create_subscription(
        &self,
        topic: impl AsRef<str>,
        subscription: Subscription,
    ) -> impl Future<Output = Result<SubscriptionHandle, CreateError>> + Send {
        let handle = self.subscription(topic, subscription.name());
        async move {
            without_rules(&handle, &subscription)?;
            handle.create(subscription.properties()).await?;
            Ok(handle)
        }
    }
}

fn without_rules(handle: &SubscriptionHandle, declared: &Subscription) -> Result<(), CreateError> {
    match declared.part() {
        None => Ok(()),
        Some(_rules) => Err(CreateError::Rules {
            name: handle.path().to_owned(),
        }),
    }
}

impl Mailbox {
    async fn create(&self, properties: serde_json::Value) -> Result<(), CreateError> {
        let (kind, name) = (self.kind(), self.owner_path().to_owned());
        match self.unknown_if(true).await {
            None => return Err(CreateError::Exists { kind, name }),
            Some(unknown) if unknown.kind != kind => return Err(unknown.into()),
            Some(UnknownEntity {
                instead: Some(kind),
                ..
            }) => return Err(CreateError::Exists { kind, name }),
            Some(_) => {}
        }
        let put = self.put(properties).await;
        put.map_err(|source| CreateError::Control { kind, name, source })
    }

    async fn update_now(
        &self,
        properties: serde_json::Value,
        part: Option<&'static str>,
    ) -> Result<(), UpdateError> {
        if let Some(unknown) = self.unknown_if(true).await {
            return Err(unknown.into());
        }
        let (kind, name) = (self.kind(), self.owner_path().to_owned());
        if let Some(part) = part {
            return Err(UpdateError::Part { kind, name, part });
        }
        let put = self.put(properties).await;
        put.map_err(|source| UpdateError::Control { kind, name, source })
    }

    async fn delete_now(&self) -> Result<(), DeleteError> {
        let (kind, name) = (self.kind(), self.owner_path().to_owned());
        let place = name.clone();
        let delete = |doors: Arc<Doors>| async move {
            let place = Place { kind, name: &place };
            doors.control.delete(place).await
        };
        let Err(source) = self.doors.run(delete).await else {
            return Ok(());
        };
        if let Some(unknown) = self.unknown_if(source.status() == Some(404)).await {
            return Err(unknown.into());
        }
        Err(DeleteError::Control { kind, name, source })
    }

    /// Puts what an entity is to be; one that exists keeps what is not said.
    async fn put(&self, properties: serde_json::Value) -> Result<(), ControlError> {
        let put = |mailbox: Self| async move {
            let place = Place {
                kind: mailbox.kind(),
                name: mailbox.owner_path(),
            };
            mailbox.doors.control.put(place, &properties).await
        };
        self.run(put).await
    }
}
