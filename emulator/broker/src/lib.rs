//! Service Bus semantics as a pure, synchronous library.
//!
//! Nothing here knows a socket, a task, a clock or a random number: an operation is told what time it is
//! and where fresh ids come from ([`Context`]), changes an [`Entity`], and appends what the shell must do
//! ([`Effect`]) and what happened ([`Event`]). The same inputs give the same outputs, byte for byte.
//!
//! Reading order: an [`Entity`] is a queue, topic or subscription, with its store and its dead-letter stores;
//! [`MessageStore`] is the only place where messages live. The verbs
//! are methods of [`Entity`], one file each under `operation/`. What happens when a lock ends stands in
//! `operation/expire.rs`. A [`Transaction`] collects sends and settlements until [`commit`] lets them happen together.

mod context;
mod duplicates;
mod effect;
mod entity;
mod event;
pub mod filter;
mod ids;
mod message;
mod operation;
mod partition;
mod policy;
mod rules;
mod session_name;
mod settings;
mod size_in_use;
mod store;
mod time;
mod timeline;
mod transaction;

pub use context::Context;
pub use effect::{Effect, Effects};
pub use entity::description::{EntityStatus, Problem, QueueDescription};
pub use entity::role::EntityKind;
pub use entity::topic::{SubscriptionDescription, TopicDescription};
pub use entity::{Counts, Entity};
pub use event::{Event, EventKind, Events, Text};
pub use ids::{
    ClientId, EntityId, EntityPath, IdSource, LockToken, MAX_NAME_LENGTH, MAX_PATH_LENGTH,
    NameError, PathError, ReceiverId, SequenceNumber, SubQueue, check_name,
};
pub use message::{BrokerProperties, Message, MessageError, PropertyChanges};
pub use operation::accept_session::{AcceptSessionError, AcceptedSession, SessionAccess};
pub use operation::forward::{Entities, RETRY_INTERVAL, TransferFailure, forward};
pub use operation::list_sessions::SessionView;
pub use operation::peek::Peeked;
pub use operation::receive::{Delivery, ReceiveMode};
pub use operation::receive_deferred::ReceiveDeferredError;
pub use operation::renew::RenewError;
pub use operation::rules::ChangeRuleError;
pub use operation::schedule::CancelError;
pub use operation::send::SendError;
pub use operation::session_lock::SessionError;
pub use operation::settle::{Outcome, SettleError};
pub use operation::transact::TransactError;
pub use operation::transact::commit::{CommitError, commit};
pub use policy::StorePolicy;
pub use rules::RuleSet;
pub use session_name::SessionName;
pub use settings::{
    BatchLimit, Expiry, FailedForwards, ForwardToDisabled, IdleTimeouts, LocksOnDetach,
    NamespaceSettings, Tier,
};
pub use size_in_use::SizeInUse;
pub use store::MessageStore;
pub use time::Timestamp;
pub use timeline::{Counter, Timeline};
pub use transaction::{Transaction, TransactionId};
