//! Assertions about a Service Bus namespace: their meaning, when they wait, and their failure messages.
//!
//! An [`Assertion`] is data; it polls a [`Namespace`] up to its deadline. The harness polls over the network as any client
//! could; an emulator checks assertions for clients in other languages. Both produce the same messages.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "kinds of events are an open set: what has no arm is shown by name"
)]

mod assertion;
mod catalog;
mod check;
mod counts;
mod held;
mod hint;
mod kind;
mod matcher;
mod meaning;
mod message;
mod namespace;
mod place;
mod property;
mod receivers;
mod recorded;
mod report;
mod request;
mod selector;
mod sessions;
pub mod text;
mod timeline;
mod unfired;
mod unsettled_sends;

pub use assertion::{Assertion, Number, ScheduledEnqueueTime, WantedState};
pub use catalog::{
    Catalog, Declared, EntityKind, UnknownEntity, subscription_path, topic_and_name,
};
pub use check::{connecting_hint, left_behind};
pub use kind::Kind;
pub use matcher::{Predicate, Text, contains, matches};
pub use message::{Message, MessageState, summary};
pub use namespace::{Answer, Namespace, TEST_CLIENT, not_idle};
pub use place::Place;
pub use property::PropertyValue;
pub use report::{AssertionFailed, Evidence};
pub use request::{MAX_WITHIN, RequestError};
pub use selector::Selector;
pub use servicebus_control_api::{Event, EventKind};
pub use timeline::{Timeline, TitledTimeline, is_at, line};
pub use unfired::{near, unfired};
