//! Consumers and producers with one bug each, beside the same without it: exploration finds each bug by the fault that its
//! author did not think of, and nothing in the twin.

#![expect(clippy::large_futures, reason = "the futures of the SDK are")]

mod connections;
mod examples;
mod handling;
mod losing;
mod meta;
mod order;
mod page;
mod sending;
mod sessions;
mod settings;
mod support;
mod transactions;
mod virtual_time;
