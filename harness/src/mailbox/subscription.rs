//! A subscription, which can be received from and not sent to.

use std::{fmt, ops::Deref, sync::Arc};

use super::Mailbox;
use crate::{
    doors::Doors,
    kind::{EntityKind, topic_and_name},
};

/// A subscription of a topic.
#[derive(Debug, Clone)]
pub struct SubscriptionHandle {
    mailbox: Mailbox,
}

impl SubscriptionHandle {
    pub(crate) fn new(doors: Arc<Doors>, path: String) -> Self {
        let mailbox = Mailbox::new(doors, EntityKind::Subscription, path);
        Self { mailbox }
    }

    /// Returns the name, without that of its topic.
    pub fn name(&self) -> &str {
        self.names().1
    }

    /// Returns the name of its topic.
    pub fn topic_name(&self) -> &str {
        self.names().0
    }

    /// Returns the queue of its dead letters.
    pub fn dead_letters(&self) -> Mailbox {
        self.mailbox.graves()
    }

    /// Returns the queue of the messages it could not forward.
    pub fn transfer_dead_letters(&self) -> Mailbox {
        self.mailbox.transfer_graves()
    }

    fn names(&self) -> (&str, &str) {
        let names = topic_and_name(&self.mailbox.owner);
        names.expect("the path of a subscription names its topic")
    }
}

impl Deref for SubscriptionHandle {
    type Target = Mailbox;

    fn deref(&self) -> &Mailbox {
        &self.mailbox
    }
}

impl AsRef<Mailbox> for SubscriptionHandle {
    fn as_ref(&self) -> &Mailbox {
        &self.mailbox
    }
}

impl fmt::Display for SubscriptionHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mailbox.fmt(f)
    }
}
