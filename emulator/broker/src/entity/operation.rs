//! The verbs: methods of [`crate::Entity`], one file each, with the errors each can give.
//!
//! Every verb first does what is due ([`crate::Entity::handle_timeout`]): a lock that has ended is
//! over even when no timer has fired yet.

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
