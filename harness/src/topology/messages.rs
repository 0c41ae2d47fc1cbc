//! Messages that are there when a test begins, declared beside the entities.
//!
//! `ServiceBus` sends them when the namespace has started, so that every mode has them, and their record begins as that
//! of any message.

use super::Topology;
use crate::message::Message;

/// One message, and where it is to be.
#[derive(Debug, Clone)]
pub(crate) struct Declared {
    /// The queue or topic that it is sent to; of a dead letter, the queue or subscription that it is in.
    pub(crate) entity: String,
    pub(crate) message: Message,
    /// The reason and description, where it is to be dead-lettered.
    pub(crate) dead_letter: Option<(String, String)>,
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
}
