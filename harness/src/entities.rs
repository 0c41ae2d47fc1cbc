//! Creates, changes and deletes queues, topics and subscriptions of a running namespace.
//!
//! The builders of a topology describe entities here too. The emulator validates them, and reports errors as for a
//! configuration file.

use crate::{
    action::Action,
    catalog::{EntityKind, UnknownEntity},
    clients::{QueueClient, SubQueueClient, SubscriptionClient, TopicClient},
    error::control::ControlError,
    error::{Error, ErrorKind},
    service_bus::ServiceBus,
    topology::{Queue, Subscription, Topic},
};

impl ServiceBus {
    /// Creates a queue.
    ///
    /// # Panics
    ///
    /// Panics if an entity of this name exists, or the emulator refuses; the panic quotes its reason.
    #[track_caller]
    pub fn create_queue(&self, queue: Queue) -> Action<'_, QueueClient> {
        let handle = self.queue(queue.name());
        Action::new(async move {
            handle.create(queue.properties()).await?;
            Ok(handle)
        })
    }

    /// Creates a topic with its subscriptions; see [`ServiceBus::create_subscription`] about rules.
    ///
    /// # Panics
    ///
    /// Panics if an entity of this name exists, or the emulator refuses; the panic quotes its reason.
    #[track_caller]
    pub fn create_topic(&self, topic: Topic) -> Action<'_, TopicClient> {
        let handle = self.topic(topic.name());
        Action::new(async move {
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
        })
    }

    /// Creates a subscription with the rule `$Default`, which selects every message. Other rules can be declared in the
    /// topology, or changed by an SDK.
    ///
    /// # Panics
    ///
    /// Panics if an entity of this name exists, the topic does not exist, the subscription declares rules, or the emulator
    /// refuses; the panic quotes its reason.
    #[track_caller]
    pub fn create_subscription(
        &self,
        topic: impl AsRef<str>,
        subscription: Subscription,
    ) -> Action<'_, SubscriptionClient> {
        let handle = self.subscription(topic, subscription.name());
        Action::new(async move {
            without_rules(&handle, &subscription)?;
            handle.create(subscription.properties()).await?;
            Ok(handle)
        })
    }
}

fn without_rules(handle: &SubscriptionClient, declared: &Subscription) -> Result<(), Error> {
    match declared.part() {
        None => Ok(()),
        Some(_rules) => {
            let (kind, path) = (EntityKind::Subscription, handle.path());
            let sentence = format!(
                "the {kind} \"{path}\" cannot be created with rules while the namespace runs: declare it in the topology, or replace its rule $Default with an SDK"
            );
            Err(Error::new(
                ErrorKind::InvalidArgument,
                path.to_owned(),
                sentence,
            ))
        }
    }
}

fn exists(kind: EntityKind, name: String) -> Error {
    let sentence = format!("there is a {kind} \"{name}\" already; update it, or delete it first");
    Error::new(ErrorKind::EntityAlreadyExists, name, sentence)
}

/// Gives a client the methods that change and delete its entity.
macro_rules! changes {
    ($($handle:ty => $builder:ident),+) => {$(
        impl $handle {
            /// Changes the properties that the function sets, and no others.
            ///
            /// ```no_run
            /// # use servicebus_harness::prelude::*;
            /// # async fn test(servicebus: ServiceBus) {
            /// let orders = servicebus.queue("orders");
            /// orders.update(|queue| queue.status(EntityStatus::SendDisabled)).await;
            /// # }
            /// ```
            #[track_caller]
            pub fn update(
                &self,
                change: impl FnOnce($builder) -> $builder,
            ) -> Action<'_, ()> {
                let changes = change($builder::new(self.name()));
                Action::new(async move {
                    let client = self.as_ref();
                    client.update_now(changes.properties(), changes.part()).await
                })
            }

            /// Deletes the entity with its messages. Clients of it remain usable for a new entity of the same name.
            #[track_caller]
            pub fn delete(&self) -> Action<'_, ()> {
                Action::new(self.as_ref().delete_now())
            }
        }
    )+};
}

changes!(
    QueueClient => Queue,
    TopicClient => Topic,
    SubscriptionClient => Subscription
);

impl SubQueueClient {
    async fn create(&self, properties: serde_json::Value) -> Result<(), Error> {
        let (kind, name) = (self.kind(), self.owner_path().to_owned());
        let failed = |source| Error::of(format!("create the {kind} \"{name}\""), &name, source);
        let prepared = self.run(|client| async move {
            client.backend().prepare_creation(client.sub_queue()).await
        });
        prepared.await.map_err(failed)?;
        match self.unknown_entity().await {
            None => return Err(exists(kind, name)),
            Some(unknown) if unknown.kind != kind => return Err(unknown.into()),
            Some(UnknownEntity {
                instead: Some(kind),
                ..
            }) => return Err(exists(kind, name)),
            Some(_) => {}
        }
        self.put(properties).await.map_err(failed)
    }

    async fn update_now(
        &self,
        properties: serde_json::Value,
        part: Option<&'static str>,
    ) -> Result<(), Error> {
        if let Some(unknown) = self.unknown_entity_error_if(true).await {
            return Err(unknown);
        }
        let (kind, name) = (self.kind(), self.owner_path().to_owned());
        if let Some(part) = part {
            let sentence = format!("an update of the {kind} \"{name}\" cannot set its {part}");
            return Err(Error::new(ErrorKind::InvalidArgument, name, sentence));
        }
        let put = self.put(properties).await;
        put.map_err(|source| Error::of(format!("update the {kind} \"{name}\""), &name, source))
    }

    async fn delete_now(&self) -> Result<(), Error> {
        let operation = format!("delete the {} \"{}\"", self.kind(), self.owner_path());
        self.ask(operation, |client| {
            client.backend().delete(client.sub_queue())
        })
        .await
    }

    /// Creates or changes an entity; an existing one keeps the properties that are not set.
    async fn put(&self, properties: serde_json::Value) -> Result<(), ControlError> {
        self.run(
            |client| async move { client.backend().put(client.sub_queue(), &properties).await },
        )
        .await
    }
}
