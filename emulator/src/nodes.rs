//! What a link can attach to. Here AMQP meets Service Bus: addresses become entities, outcomes become
//! settlements, maps become calls, and refusals become error conditions.

mod address;
mod cbs;
mod condition;
mod entity;
mod management;
mod request;

pub(crate) use address::{Address, Destination};
pub(crate) use condition::{Condition, Refusal};
pub(crate) use entity::{broker_outcome, message_refusal, send_refusal, settle_refusal};
pub(crate) use management::Management;
pub(crate) use request::{Reply, Request, spelling};

pub(crate) use cbs::put_token;
