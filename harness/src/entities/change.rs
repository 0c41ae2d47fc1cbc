//! Changing and deleting, by the handle of what is changed.

use std::panic::Location;

use super::{DeleteError, UpdateError};
use crate::{
    bus::or_panic,
    mailbox::{QueueHandle, SubscriptionHandle, TopicHandle},
    topology::{Queue, Subscription, Topic},
};

/// Lets a handle change and delete what it is of.
macro_rules! changes {
    ($($handle:ty => $builder:ident),+) => {$(
        impl $handle {
            /// Changes it: what the function sets, and nothing else.
            ///
            /// ```no_run
            /// # use servicebus_harness::prelude::*;
            /// # async fn test(servicebus: ServiceBus) {
            /// let orders = servicebus.queue("orders");
            /// orders.update(|queue| queue.status(EntityStatus::SendDisabled)).await;
            /// # }
            /// ```
            ///
            /// # Panics
            ///
            /// When it is unknown, or the emulator refuses; the text has its words.
            #[track_caller]
            pub fn update(
                &self,
                change: impl FnOnce($builder) -> $builder,
            ) -> impl Future<Output = ()> + Send {
                or_panic(Location::caller(), self.try_update(change))
            }

            /// Changes it, or says why not.
            pub fn try_update(
                &self,
                change: impl FnOnce($builder) -> $builder,
            ) -> impl Future<Output = Result<(), UpdateError>> + Send {
                let changes = change($builder::new(self.name()));
                async move {
                    let mailbox = self.as_ref();
                    mailbox.update_now(changes.properties(), changes.part()).await
                }
            }

            /// Deletes it with everything in it. Handles stay, and act on what is made in its place.
            ///
            /// # Panics
            ///
            /// When it is unknown, or the emulator does not answer.
            #[track_caller]
            pub fn delete(&self) -> impl Future<Output = ()> + Send {
                or_panic(Location::caller(), self.try_delete())
            }

            /// Deletes it with everything in it, or says why not.
            pub async fn try_delete(&self) -> Result<(), DeleteError> {
                self.as_ref().delete_now().await
            }
        }
    )+};
}

changes!(
    QueueHandle => Queue,
    TopicHandle => Topic,
    SubscriptionHandle => Subscription
);
