//! The operations: methods of [`crate::Entity`], one file each, with their errors.
//!
//! Every operation first runs what is due ([`crate::Entity::handle_timeout`]): a lock whose time is over has ended even if
//! no timer has fired yet.

pub(crate) mod accept_session;
pub(crate) mod dead_letter;
pub(crate) mod end;
mod expire;
pub(crate) mod forward;
pub(crate) mod inspect;
pub(crate) mod peek;
pub(crate) mod publish;
pub(crate) mod receive;
pub(crate) mod rules;
pub(crate) mod send;
pub(crate) mod session_lock;
pub(crate) mod session_state;
pub(crate) mod settle;
pub(crate) mod transact;
pub(crate) mod upcoming;
mod update;
