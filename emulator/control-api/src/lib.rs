//! The JSON of the emulator's control API as types.
//!
//! The emulator serializes them and the harness deserializes them, so a field is named in one place. A fault, which people
//! may write by hand, is parsed leniently into [`FaultRequest`] and validated by the emulator; everything else has one form.
//! With the feature `schema` the types have schemas, which `openapi` collects for the description of the API.

mod assertion;
mod clock;
mod connection;
mod encoding;
mod entity;
mod error;
mod explanation;
mod exploration;
mod fault;
mod message;
mod namespace;
#[cfg(feature = "schema")]
pub mod openapi;
mod operations;
mod session;
mod timeline;

pub use assertion::{AssertionKind, AssertionResult};
pub use clock::{Advance, AdvanceTo, Clock, ClockHold, Due, DueEvent, HoldClock, Settle, Settled};
pub use connection::{Change, ChangedEntity, Connection, ConnectionLink, Connections};
pub use entity::{Counts, Entities, EntitySummary, JmsClient};
pub use entity::{Properties, Queue, Queues, Subscription, Subscriptions, Topic, Topics};
pub use error::{ErrorAnswer, ErrorDetails, Problem};
pub use explanation::{Explanation, NamedValue, Reason, RuleExplanation, SubscriptionExplanation};
pub use exploration::{
    ExplorationReport, ExplorationRequest, ExplorationRun, RunResult, StartedExploration,
};
pub use fault::{
    AppliedEffect, Effect, EffectKind, ErrorText, Fault, FaultRequest, Faults, Filter, Operation,
    Pick, Property, Random, ScriptedFault, Wait, When,
};
pub use message::{
    ActOnMessages, ActedOn, AmqpMessage, FailedMessage, HeldMessage, MessageSummary, Messages,
    Resubmit, SendMessages, SentMessages,
};
pub use namespace::{
    DiskState, EndCheck, EndTest, Failure, Health, MemoryUsage, NamespaceInfo, Ready, TestReport,
};
pub use operations::{
    AppliedFault, EntityState, LoggedOperation, Operations, RecordOperations, Released,
};
pub use session::{LoseSessionLock, Receiver, Receivers, Session, Sessions};
pub use timeline::{Event, EventKind, Timeline, UnsettledSends};
