//! How a queue of a test is declared.

use std::time::Duration;

use servicebus_broker::{
    EntityDescription, EntityStatus, Expiry, FailedForwards, LocksOnDetach, NamespaceSettings,
};

use super::Bus;

/// How a queue differs from the one that is declared with nothing but a name.
#[derive(Debug, Clone, Default)]
pub(crate) struct Rules {
    pub(crate) queue: EntityDescription,
    pub(crate) settings: NamespaceSettings,
}

impl Rules {
    pub(crate) fn max_delivery_count(mut self, count: u32) -> Self {
        self.queue.max_delivery_count = count;
        self
    }

    pub(crate) fn default_time_to_live(mut self, time_to_live: Duration) -> Self {
        self.queue.default_message_time_to_live = Some(time_to_live);
        self
    }

    pub(crate) fn dead_lettering_on_expiration(mut self) -> Self {
        self.queue.dead_lettering_on_message_expiration = true;
        self
    }

    pub(crate) fn expiry_on_receive(mut self) -> Self {
        self.settings.expiry = Expiry::OnReceive;
        self
    }

    pub(crate) fn release_on_detach(mut self) -> Self {
        self.settings.locks_on_detach = LocksOnDetach::Release;
        self
    }

    pub(crate) fn status(mut self, status: EntityStatus) -> Self {
        self.queue.status = status;
        self
    }

    pub(crate) fn duplicate_detection(mut self, window: Duration) -> Self {
        self.queue.requires_duplicate_detection = true;
        self.queue.duplicate_detection_history_time_window = window;
        self
    }

    pub(crate) fn forward_to(mut self, target: &str) -> Self {
        self.queue.forward_to = Some(target.parse().unwrap());
        self
    }

    pub(crate) fn forward_dead_letters_to(mut self, target: &str) -> Self {
        self.queue.forward_dead_lettered_messages_to = Some(target.parse().unwrap());
        self
    }

    pub(crate) fn auto_delete_on_idle(mut self, idle: Duration) -> Self {
        self.queue.auto_delete_on_idle = Some(idle);
        self
    }

    pub(crate) fn sessions(mut self) -> Self {
        self.queue.requires_session = true;
        self
    }

    pub(crate) fn partitioned(mut self) -> Self {
        self.queue.enable_partitioning = true;
        self
    }

    /// The smallest entity there is.
    pub(crate) fn of_one_megabyte(mut self) -> Self {
        self.queue.max_size_in_megabytes = 1;
        self
    }

    pub(crate) fn failed_forwards_to_dead_letters(mut self) -> Self {
        self.settings.failed_forwards = FailedForwards::DeadLetter;
        self
    }

    pub(crate) fn bus(self) -> Bus {
        Bus::of(self)
    }
}
