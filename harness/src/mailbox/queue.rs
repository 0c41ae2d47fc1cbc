//! A queue that can be sent to.

use std::{fmt, ops::Deref, panic::Location, sync::Arc};

use super::{
    CancelError, Due, Mailbox, ScheduleError, SendError,
    schedule::schedules,
    send::{collected, sends},
};
use crate::{bus::or_panic, doors::Doors, kind::EntityKind, message::Message};

/// A queue of a bus.
#[derive(Debug, Clone)]
pub struct QueueHandle {
    mailbox: Mailbox,
}

impl QueueHandle {
    pub(crate) fn new(doors: Arc<Doors>, name: String) -> Self {
        let mailbox = Mailbox::new(doors, EntityKind::Queue, name);
        Self { mailbox }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.mailbox.owner
    }

    /// Returns the queue of its dead letters.
    pub fn dead_letters(&self) -> Mailbox {
        self.mailbox.graves()
    }

    /// Returns the queue of the messages it could not forward.
    pub fn transfer_dead_letters(&self) -> Mailbox {
        self.mailbox.transfer_graves()
    }
}

sends!(QueueHandle);
schedules!(QueueHandle);

impl Deref for QueueHandle {
    type Target = Mailbox;

    fn deref(&self) -> &Mailbox {
        &self.mailbox
    }
}

impl AsRef<Mailbox> for QueueHandle {
    fn as_ref(&self) -> &Mailbox {
        &self.mailbox
    }
}

impl fmt::Display for QueueHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mailbox.fmt(f)
    }
}
