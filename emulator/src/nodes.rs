//! The nodes that links attach to. This module maps AMQP to Service Bus: addresses to entities, outcomes to settlements,
//! maps to `$management` calls, and errors to error conditions.

mod address;
mod cbs;
mod condition;
mod coordinator;
mod entity;
mod management;
mod request;
mod session;

pub(crate) use address::{Address, Destination};
pub(crate) use cbs::put_token;
pub(crate) use condition::{
    Condition, LOCK_LOST, SESSION_LOCK_LOST, ServiceError, no_namespace, quote,
};
pub(crate) use coordinator::CoordinatorRequest;
pub(crate) use entity::{
    broker_outcome, commit_refusal, message_refusal, send_refusal, settle_refusal, transact_refusal,
};
pub(crate) use management::{
    Management, ReplyMessages, change_refusal, enumerate_rules, is_about_rules, is_batch_delete,
    rule_change,
};
pub(crate) use request::{Reply, Request, spelling};
pub(crate) use session::SessionRequest;
