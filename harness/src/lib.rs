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
#[cfg(feature = "container")]
mod container;
mod control;
mod doors;
mod entities;
mod env;
mod error;
mod exchange;
mod explain;
mod faults;
mod fixture;
mod health;
mod in_process;
mod keep;
mod keys;
mod kind;
mod leaks;
mod liveness;
mod mailbox;
mod matcher;
mod message;
mod mode;
mod output;
mod peeked;
mod process;
mod recorder;
mod remote;
mod running;
mod secret;
mod secured;
mod settled;
mod shared;
mod stream;
mod text;
mod timeline;
mod topology;
mod turn;
mod virtual_namespace;

pub mod assertion;
pub mod comparison;

pub use address::ADDRESS_VARIABLE;
pub use amqp::{AmqpError, Condition};
#[cfg(feature = "azservicebus")]
pub use azservicebus;
pub use bus::{Builder, ServiceBus};
#[cfg(feature = "azservicebus")]
pub use client::ClientError;
pub use clock::Clock;
#[cfg(feature = "container")]
pub use container::ContainerError;
pub use control::{ControlError, Refusal};
pub use entities::{CreateError, DeleteError, UpdateError};
pub use error::StartError;
pub use explain::{ExplainError, Explanation, NamedValue, Reason, RuleExplanation, Verdict};
pub use faults::{Effect, Fault, FaultOn, Faults, Operation, RandomFaults};
pub use fixture::servicebus;
pub use keep::KEEP_VARIABLE;
pub use kind::EntityKind;
pub use mailbox::{
    AcceptSessionError, CancelError, Counts, CountsError, DeleteMessagesError, Due, HeldSession,
    LoseSessionError, Mailbox, PeekError, PurgeError, Purged, QueueHandle, ReceiveError, Received,
    RenewError, ScheduleError, SendError, SessionError, SessionInfo, SessionsError, SettleError,
    SubscriptionHandle, TimelineError, TopicHandle, UnknownEntity,
};
pub use matcher::{Text, contains, predicate::Predicate, satisfies};
pub use message::{Message, PropertyValue};
pub use mode::{MODE_VARIABLE, Mode, ModeError};
pub use peeked::{MessageState, PeekedMessage};
pub use process::ReadyError;
pub use remote::{CONNECTION_STRING_VARIABLE, LONGEST_WAIT_VARIABLE, RemoteError};
pub use running::Endpoints;
pub use servicebus_emulator::{ClientSettings, auth::Claims};
pub use settled::SettledError;
pub use timeline::{Event, EventKind, Shown, Timeline};
pub use topology::{
    BatchLimit, Correlation, EntityStatus, Expiry, FailedForwards, ForwardToDisabled, IdleTimeouts,
    LocksOnDetach, Queue, Rule, Subscription, Tier, Topic, Topology, TopologyError,
};
pub use turn::TurnError;

/// Everything a test usually needs.
pub mod prelude {
    pub use crate::{
        BatchLimit, Claims, Correlation, Effect, EntityStatus, Expiry, FailedForwards,
        ForwardToDisabled, HeldSession, IdleTimeouts, LocksOnDetach, Mailbox, Message, Mode,
        Operation, Queue, QueueHandle, Received, Rule, ServiceBus, Subscription,
        SubscriptionHandle, Tier, Topic, TopicHandle, Topology, assert_abandoned, assert_completed,
        assert_dead_lettered, assert_deferred, assert_delivered, assert_empty, assert_expired,
        assert_forwarded, assert_in_flight, assert_in_order, assert_lock_not_renewed,
        assert_lock_renewed, assert_message_count, assert_never_delivered, assert_not_abandoned,
        assert_not_completed, assert_not_dead_lettered, assert_not_deferred, assert_not_expired,
        assert_not_forwarded, assert_not_scheduled, assert_scheduled, assert_session_state,
        contains, satisfies, servicebus,
    };
}
