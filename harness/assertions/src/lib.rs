//! What assertions about a Service Bus namespace mean, what they wait for, and what they say when they fail.
//!
//! An [`Assertion`] is data. It looks at a [`Namespace`] again and again up to its deadline: the harness looks over the
//! network as any client could, an emulator looks at itself on behalf of clients in other languages. Both say the same.

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
