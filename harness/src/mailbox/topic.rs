//! A topic, which can be sent to and not received from.

use std::{fmt, panic::Location, sync::Arc};

use super::{
    CancelError, Counts, CountsError, Due, Mailbox, ScheduleError, SendError, SubscriptionHandle,
    schedule::schedules,
    send::{collected, sends},
};
use crate::{
    bus::or_panic,
    doors::Doors,
    kind::{EntityKind, subscription_path},
    message::Message,
};

/// A topic of a bus.
///
/// It holds what waits for its time and nothing else: each subscription has its own copies. Assertions take it, and
/// [`ServiceBus::timeline`](crate::ServiceBus::timeline) does.
#[derive(Debug, Clone)]
pub struct TopicHandle {
    mailbox: Mailbox,
}

impl TopicHandle {
    pub(crate) fn new(doors: Arc<Doors>, name: String) -> Self {
        let mailbox = Mailbox::new(doors, EntityKind::Topic, name);
        Self { mailbox }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.mailbox.owner
    }

    /// Returns the address, which is the name.
    pub fn path(&self) -> &str {
        self.mailbox.path()
    }

    /// Returns a handle to one of its subscriptions. Nothing is checked before it is used.
    pub fn subscription(&self, name: impl AsRef<str>) -> SubscriptionHandle {
        let path = subscription_path(self.name(), name.as_ref());
        SubscriptionHandle::new(Arc::clone(&self.mailbox.doors), path)
    }

    /// Returns the queue of the messages that could not go on to a subscription.
    pub fn transfer_dead_letters(&self) -> Mailbox {
        self.mailbox.transfer_graves()
    }

    /// Counts the messages: those that are scheduled, and those that could not go on.
    ///
    /// # Panics
    ///
    /// When the topic is unknown or the emulator does not answer.
    #[track_caller]
    pub fn counts(&self) -> impl Future<Output = Counts> + Send {
        self.mailbox.counts()
    }

    /// Counts the messages, or says why not.
    pub async fn try_counts(&self) -> Result<Counts, CountsError> {
        self.mailbox.try_counts().await
    }
}

sends!(TopicHandle);
schedules!(TopicHandle);

impl AsRef<Mailbox> for TopicHandle {
    fn as_ref(&self) -> &Mailbox {
        &self.mailbox
    }
}

impl fmt::Display for TopicHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mailbox.fmt(f)
    }
}
