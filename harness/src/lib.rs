// `tests/first_hour/run` runs its code blocks as they are.
#![cfg_attr(not(doctest), doc = include_str!("../README.md"))]
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "kinds of events and the errors of the AMQP client are open sets: what has no arm is shown by name"
)]

mod action;
mod address;
mod amqp;
mod backend;
mod background;
mod catalog;
mod clients;
mod clock;
mod connections;
#[cfg(feature = "container")]
mod container;
mod control;
mod data;
mod end_check;
mod endpoints;
mod entities;
mod env;
mod error;
mod explain;
#[cfg(feature = "explore")]
pub mod explore;
mod faults;
mod file_lock;
mod fixture;
#[cfg(feature = "in-process")]
mod in_process;
mod inspector;
mod keep;
mod keys;
mod liveness;
mod message;
mod mode;
mod process;
mod received_message;
mod record_history;
mod remote;
mod report;
mod running;
mod scripted_faults;
#[cfg(feature = "azservicebus")]
mod sdk_client;
mod service_bus;
mod shared;
mod stream;
mod topology;
mod variables;

pub mod assertion;
pub mod observer;

use servicebus_assertions::text;

pub use action::Action;
#[cfg(feature = "azservicebus")]
pub use azservicebus;
pub use clients::{
    Counts, EntityClient, LockedMessage, Purged, QueueClient, ScheduledEnqueueTime, SessionInfo,
    SessionReceiver, SubQueueClient, SubscriptionClient, TopicClient,
};
pub use clock::Clock;
pub use endpoints::Endpoints;
pub use error::{Error, ErrorKind, amqp::Condition};
pub use explain::{Explanation, NamedValue, Reason, RuleExplanation, RuleOutcome};
pub use faults::{Effect, Fault, FaultBuilder, Faults, Operation, RandomFaults};
pub use fixture::servicebus;
#[cfg(feature = "macros")]
#[doc(hidden)]
pub use fixture::{returned, run_test};
pub use message::{Message, PropertyValue};
pub use mode::Mode;
pub use observer::observe;
pub use received_message::{MessageState, ReceivedMessage};
pub use service_bus::{Builder, ServiceBus};
pub use servicebus_assertions::{
    EntityKind, Event, EventKind, Predicate, Text, Timeline, TitledTimeline, contains, matches,
};
pub use servicebus_config::{ClientSettings, auth::Claims};
/// Turns an `async fn` with one argument, a namespace, into a test that starts the namespace (feature `macros`).
///
/// The namespace is that of `topology = …` or of `builder = …`, else that of [`ServiceBus::start`]. The test runs on a
/// single-threaded tokio runtime, which the harness starts, and may return a `Result`.
///
/// ```
/// use servicebus_harness::prelude::*;
///
/// #[servicebus_harness::test(topology = Topology::new().queue(Queue::new("orders")))]
/// async fn an_order_is_kept(servicebus: ServiceBus) {
///     let orders = servicebus.queue("orders");
///     orders.send("an order").await;
///     assert_message_count!(orders, active = 1).await;
/// }
/// ```
#[cfg(feature = "macros")]
pub use servicebus_harness_macros::test;
pub use topology::{
    BatchLimit, Correlation, EntityStatus, Expiry, FailedForwards, ForwardToDisabled, IdleTimeouts,
    LocksOnDetach, Queue, Rule, Subscription, Tier, Topic, Topology,
};
pub use variables::{
    ADDRESS_VARIABLE, CONNECTION_STRING_VARIABLE, KEEP_VARIABLE, MAX_REAL_WAIT_VARIABLE,
    MODE_VARIABLE, REPORT_VARIABLE, UNCHECKED_VARIABLE, WITHIN_VARIABLE,
};

/// The items that most tests need.
pub mod prelude {
    pub use crate::{
        BatchLimit, Claims, Correlation, Effect, EntityStatus, ErrorKind, Expiry, FailedForwards,
        ForwardToDisabled, IdleTimeouts, LockedMessage, LocksOnDetach, Message, Mode, Operation,
        Queue, QueueClient, Rule, ServiceBus, SessionReceiver, SubQueueClient, Subscription,
        SubscriptionClient, Tier, Topic, TopicClient, Topology, assertion::macros::*, contains,
        matches, servicebus,
    };
}
