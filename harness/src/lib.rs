#![doc = include_str!("../README.md")]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "kinds of events and the errors of the AMQP client are open sets: what has no arm is shown by name"
)]

mod address;
mod amqp;
mod background;
mod bus;
mod catalog;
#[cfg(feature = "azservicebus")]
mod client;
mod clock;
mod connection_string;
mod control;
mod doors;
mod entities;
mod error;
mod fixture;
mod in_process;
mod mailbox;
mod matcher;
mod message;
mod mode;
mod peeked;
mod process;
mod running;
mod settled;
mod text;
mod timeline;
mod topology;

pub mod assertion;

pub use amqp::{AmqpError, Condition};
#[cfg(feature = "azservicebus")]
pub use azservicebus;
pub use bus::{Builder, ServiceBus};
#[cfg(feature = "azservicebus")]
pub use client::ClientError;
pub use clock::Clock;
pub use control::{ControlError, Refusal};
pub use entities::{CreateQueueError, DeleteQueueError, UpdateQueueError};
pub use error::StartError;
pub use fixture::servicebus;
pub use mailbox::{
    CancelError, Counts, CountsError, DeleteMessagesError, Due, Mailbox, PeekError, PurgeError,
    Purged, QueueHandle, ReceiveError, Received, RenewError, ScheduleError, SendError, SettleError,
    TimelineError, UnknownQueue,
};
pub use matcher::{Text, contains};
pub use message::{Message, PropertyValue};
pub use mode::{MODE_VARIABLE, Mode, ModeError};
pub use peeked::{MessageState, PeekedMessage};
pub use process::ReadyError;
pub use running::Endpoints;
pub use settled::SettledError;
pub use timeline::{Event, EventKind, Shown, Timeline};
pub use topology::{
    EntityStatus, Expiry, FailedForwards, LocksOnDetach, Queue, Tier, Topology, TopologyError,
};

/// Everything a test usually needs.
pub mod prelude {
    pub use crate::{
        EntityStatus, Expiry, FailedForwards, LocksOnDetach, Mailbox, Message, Mode, Queue,
        QueueHandle, Received, ServiceBus, Tier, Topology, assert_abandoned, assert_completed,
        assert_dead_lettered, assert_deferred, assert_delivered, assert_empty, assert_expired,
        assert_forwarded, assert_lock_renewed, assert_message_count, assert_never_delivered,
        assert_not_dead_lettered, assert_scheduled, contains, servicebus,
    };
}
