//! Assertions about a Service Bus namespace: their meaning, when they wait, and their failure messages.
//!
//! An [`Assertion`] is data; it polls a [`Namespace`] up to its deadline. The harness polls over the network as any client
//! could; an emulator checks assertions for clients in other languages. Both produce the same messages.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "kinds of events are an open set: what has no arm is shown by name"
)]

mod address;
mod applicability;
mod assertion;
mod catalog;
mod check;
mod counts;
mod hint;
mod matcher;
mod message;
mod namespace;
mod property;
mod recorded;
mod report;
mod request;
mod selector;
mod sessions;
mod states;
mod subject;
pub mod text;
mod timeline;
mod unfired;

pub use address::EntityAddress;
pub use assertion::{Assertion, ExpectedState, Number, ScheduledEnqueueTime};
pub use catalog::{
    Catalog, EntityKind, EntitySettings, UnknownEntity, subscription_path, topic_and_name,
};
pub use check::{connecting_hint, describe_remaining};
pub use matcher::{Predicate, Text, contains, matches};
pub use message::{Message, MessageState, summary};
pub use namespace::{BoxFuture, Namespace, TEST_CLIENT, not_idle};
pub use property::PropertyValue;
pub use report::{AssertionFailed, Evidence, listing};
pub use request::{MAX_WITHIN, RequestError};
pub use selector::Selector;
pub use servicebus_control_api::{AssertionKind as Kind, Event, EventKind};
pub use timeline::{Timeline, TitledTimeline, is_at, line, without_tracking};
pub use unfired::{misspelt, near, unfired};
