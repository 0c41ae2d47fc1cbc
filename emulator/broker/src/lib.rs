//! Service Bus semantics as a pure, synchronous library.
//!
//! Nothing here knows a socket, a task, a clock or a random number: an operation is told what time it is
//! and where fresh ids come from ([`Context`]), changes a [`Queue`], and appends what the shell must do
//! ([`Effect`]) and what happened ([`Fact`]). The same inputs give the same outputs, byte for byte.
//!
//! Reading order: [`Queue`] is what is declared; a [`Mailbox`] is what can be received from, with
//! its store and its dead-letter store; [`MessageStore`] is the only place where messages live. The verbs
//! are methods of [`Mailbox`], one file each under `operation/`. What happens when a lock ends stands in
//! `operation/expire.rs`.

mod context;
mod duplicates;
mod effect;
mod entity;
mod fact;
mod ids;
mod mailbox;
mod message;
mod operation;
mod partition;
mod policy;
mod settings;
mod store;
mod time;
mod timeline;

pub use context::Context;
pub use effect::{Effect, Effects};
pub use entity::Queue;
pub use entity::description::{EntityStatus, Problem, QueueDescription};
pub use fact::{Fact, FactKind, Facts, Text};
pub use ids::{
    ClientId, ConsumerId, EntityId, EntityPath, IdSource, LockToken, MAX_PATH_LENGTH, PathError,
    SequenceNumber, StoreKind,
};
pub use mailbox::{Counts, Mailbox};
pub use message::{Message, MessageError, PropertyChanges, Stamp};
pub use operation::browse::Browsed;
pub use operation::forward::{Entities, TransferFailure, forward};
pub use operation::receive::{Delivery, ReceiveMode};
pub use operation::receive_deferred::ReceiveDeferredError;
pub use operation::renew::RenewError;
pub use operation::schedule::CancelError;
pub use operation::send::SendError;
pub use operation::settle::{Outcome, SettleError};
pub use policy::StorePolicy;
pub use settings::{Expiry, FailedForwards, LocksOnDetach, NamespaceSettings, Tier};
pub use store::MessageStore;
pub use time::Timestamp;
pub use timeline::{Counter, Timeline};
