//! The verbs: methods of [`crate::Mailbox`], one file each, with the errors each can give.
//!
//! Every verb first lets happen what is due ([`crate::Mailbox::handle_timeout`]): a lock that has ended is
//! over even when no timer has fired yet.

pub(crate) mod browse;
mod consume;
mod dead_letter;
mod expire;
pub(crate) mod receive;
pub(crate) mod renew;
mod reset;
mod send;
pub(crate) mod settle;
