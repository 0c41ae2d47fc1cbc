//! `$management` of a store: a map comes in, a call is made, a map goes out (wire.md §6).

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `any other` is what is meant"
)]

mod call;
mod messages;
mod rules;
mod scheduling;
mod sessions;

pub(crate) use call::Management;
pub(crate) use rules::{
    change_refusal, enumerate_rules, is_about_rules, is_batch_delete, rule_change,
};
