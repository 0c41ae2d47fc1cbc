//! Service Bus semantics as a pure, synchronous library.
//!
//! This crate has no socket, task, clock or random number. The caller passes the time and the source of new ids in a
//! [`Context`]. An operation changes an [`Entity`] and appends what the shell must do ([`Effect`]) and what happened
//! ([`Event`]). The same inputs give the same outputs, byte for byte.
//!
//! Reading order: an [`Entity`] is a queue, topic or subscription with its store and its dead-letter stores. Messages live
//! in a [`MessageStore`] only. The operations are methods of [`Entity`], one file each under `entity/operation/`;
//! `entity/operation/expire.rs` has what happens when a lock ends. A [`Transaction`] collects sends and settlements, and
//! [`commit`] applies them together.

mod changes;
mod context;
mod description;
mod duplicates;
mod entity;
mod event;
mod events;
pub mod filter;
mod ids;
mod message;
mod namespace;
mod policy;
mod property;
mod rules;
mod settings;
mod size_in_use;
mod store;
mod time;
mod timeline;

pub use changes::{BodyChange, BodyCounts, BodyId, BodyReference, Changes, DamagedRow, RowKey};
pub use context::{Context, Effect, Effects};
pub use description::{ClientAffinity, EntityDescription, EntityKind, EntityStatus, Problem};
pub use entity::operation::accept_session::{AcceptSessionError, AcceptedSession, SessionAccess};
pub use entity::operation::dead_letter::TransferFailure;
pub use entity::operation::forward::RETRY_INTERVAL;
pub use entity::operation::inspect::{
    InspectedMessage, MessageAction, MessageActionError, MessageLocation, MessageState,
    ResubmitError, resubmit,
};
pub use entity::operation::peek::Peeked;
pub use entity::operation::receive::{Delivery, DeliveryView, ReceiveDeferredError};
pub use entity::operation::rules::{ChangeRuleError, RuleChange};
pub use entity::operation::send::{CancelError, SendError};
pub use entity::operation::session_lock::SessionError;
pub use entity::operation::session_state::SessionView;
pub use entity::operation::settle::{Outcome, RenewError, SettleError};
pub use entity::operation::transact::commit::{CommitError, commit};
pub use entity::operation::transact::{TransactError, Transaction};
pub use entity::operation::upcoming::Upcoming;
pub use entity::{Counts, Entity};
pub use event::{Counter, Event, EventKind, Text};
pub use events::Events;
pub use ids::{
    ClientId, EntityId, EntityPath, IdSource, LockToken, MAX_NAME_LENGTH, MAX_PATH_LENGTH,
    NameError, PathError, ReceiverId, SequenceNumber, SessionName, SplitMix64, SubQueue,
    TransactionId, check_name,
};
pub use message::{BrokerProperties, Message, MessageError, PropertyChanges};
pub use namespace::entities::{Entities, FollowUps, Notice};
pub use namespace::follow_ups::{
    create, delete, delete_idle, follow_up, forward, lose_locks_of_subscriptions,
};
pub use namespace::{EntityCell, Namespace};
pub use property::{Audience, PROPERTIES, Property, PropertyType, PropertyValue};
pub use rules::RuleSet;
pub use settings::{
    BatchLimit, Expiry, FailedForwards, ForwardToDisabled, IdleTimeouts, LocksOnDetach,
    NamespaceSettings, Tier,
};
pub use size_in_use::SizeInUse;
pub use store::MessageStore;
pub use store::receivers::ReceiveMode;
pub use time::Timestamp;
pub use timeline::Timeline;
