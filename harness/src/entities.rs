//! Queues that are made, changed and removed while a bus runs.
//!
//! A queue is described by the same builder as in a topology. The emulator judges it, and what it refuses is
//! told in the words of a configuration file.

use std::{panic::Location, sync::Arc};

use crate::{
    bus::{ServiceBus, or_panic},
    control::{ControlError, Place},
    doors::Doors,
    mailbox::{QueueHandle, UnknownQueue},
    topology::Queue,
};

/// Why a queue was not made.
#[derive(Debug, thiserror::Error)]
pub enum CreateQueueError {
    /// There is one of this name.
    #[error("there is a queue \"{name}\" already; update it, or delete it first")]
    Exists {
        /// The name.
        name: String,
    },
    /// The emulator refused, or did not answer.
    #[error("cannot create the queue \"{name}\": {source}")]
    Control {
        /// The name.
        name: String,
        /// What the emulator said.
        source: ControlError,
    },
}

/// Why a queue was not changed; it is as it was.
#[derive(Debug, thiserror::Error)]
pub enum UpdateQueueError {
    /// The queue does not exist.
    #[error(transparent)]
    UnknownQueue(#[from] UnknownQueue),
    /// The emulator refused, or did not answer.
    #[error("cannot update the queue \"{name}\": {source}")]
    Control {
        /// The name.
        name: String,
        /// What the emulator said.
        source: ControlError,
    },
}

/// Why a queue was not deleted.
#[derive(Debug, thiserror::Error)]
pub enum DeleteQueueError {
    /// The queue does not exist.
    #[error(transparent)]
    UnknownQueue(#[from] UnknownQueue),
    /// The emulator refused, or did not answer.
    #[error("cannot delete the queue \"{name}\": {source}")]
    Control {
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
    ) -> impl Future<Output = Result<QueueHandle, CreateQueueError>> + Send {
        let handle = self.queue(queue.name());
        async move {
            let name = handle.name().to_owned();
            if handle.catalog().await.queue(&name).is_some() {
                return Err(CreateQueueError::Exists { name });
            }
            match handle.put(queue).await {
                Ok(()) => Ok(handle),
                Err(source) => Err(CreateQueueError::Control { name, source }),
            }
        }
    }
}

impl QueueHandle {
    /// Changes the queue: what the function sets, and nothing else.
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
    /// When the queue is unknown, or the emulator refuses; the text has its words.
    #[track_caller]
    pub fn update(&self, change: impl FnOnce(Queue) -> Queue) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_update(change))
    }

    /// Changes the queue, or says why not.
    pub fn try_update(
        &self,
        change: impl FnOnce(Queue) -> Queue,
    ) -> impl Future<Output = Result<(), UpdateQueueError>> + Send {
        let changes = change(Queue::new(self.name()));
        async move {
            let name = self.name().to_owned();
            if let Some(unknown) = self.catalog().await.missing(&name) {
                return Err(unknown.into());
            }
            let put = self.put(changes).await;
            put.map_err(|source| UpdateQueueError::Control { name, source })
        }
    }

    /// Deletes the queue with everything in it. Handles stay, and act on what is made in its place.
    ///
    /// # Panics
    ///
    /// When the queue is unknown, or the emulator does not answer.
    #[track_caller]
    pub fn delete(&self) -> impl Future<Output = ()> + Send {
        or_panic(Location::caller(), self.try_delete())
    }

    /// Deletes the queue with everything in it, or says why not.
    pub async fn try_delete(&self) -> Result<(), DeleteQueueError> {
        let name = self.name().to_owned();
        let delete =
            |doors: Arc<Doors>| async move { doors.control.delete(Place::Queue(&name)).await };
        let Err(source) = self.doors.run(delete).await else {
            return Ok(());
        };
        let name = self.name().to_owned();
        if let Some(unknown) = self.unknown_if(source.status() == Some(404)).await {
            return Err(unknown.into());
        }
        Err(DeleteQueueError::Control { name, source })
    }

    /// Puts what a queue is to be; one that exists keeps what is not said.
    async fn put(&self, queue: Queue) -> Result<(), ControlError> {
        let put = |doors: Arc<Doors>| async move {
            let place = Place::Queue(queue.name());
            doors.control.put(place, &queue.properties()).await
        };
        self.doors.run(put).await
    }
}
