//! The emulator from outside, as scripts, testers and SDKs use it: the process, the control API and the wire.
//!
//! These tests assert the promises of `interfaces.md` and the wire contract with hand-made requests and frames, so that no
//! client library hides a wrong answer. No test sleeps: tests advance the emulator's clock, or wait for a condition with a
//! deadline.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `anything else` is what a test fails on"
)]

mod support;

/// The HTTP administration API, as SDKs and Service Bus Explorer use it (admin-http.md).
mod admin {
    mod authorization;
    mod bodies;
    mod flowing;
    mod observed;
    mod paging;
    mod paths;
    mod properties;
    mod queues;
    mod rules;
    mod topics;
    mod validation;
}
mod arm;
/// The control API, by which tests control time and read state.
mod control {
    mod assertions;
    mod changes;
    mod clock;
    mod connections;
    mod errors;
    mod explain;
    mod explorations;
    mod faults;
    mod messages;
    mod metrics;
    mod odd_messages;
    mod openapi;
    mod operations;
    mod page;
    mod queues;
    mod sessions;
    mod settled;
    mod timeline;
    mod topics;
    mod virtual_namespaces;
}
/// Clients of JMS 2.0 in premium namespaces (spec/jms.md).
mod jms {
    mod administration;
    mod creation;
    mod messages;
    mod selectors;
    mod subscriptions;
    mod switch;
    mod temporary;
}
mod listeners;
/// The binary, as scripts rely on it.
mod process {
    mod arguments;
    mod client_settings;
    mod configuration;
    mod data;
    mod health;
    mod killed;
    mod ready;
    mod stop;
    mod traces;
}
/// The REST data plane, request by request (Microsoft's "Service Bus runtime REST").
mod rest {
    mod addresses;
    mod authorisation;
    mod mapping;
    mod receiving;
    mod sending;
    mod waiting;
}
mod simulation;
/// AMQP, frame by frame.
mod wire {
    mod attach;
    mod authorisation;
    mod batches;
    mod credit;
    mod deferral;
    mod deliveries;
    mod entities;
    mod expiry;
    mod forwarding;
    mod garbage;
    mod handshake;
    mod headers;
    mod long_polls;
    mod management;
    mod memory;
    mod namespaces;
    mod observed;
    mod outcomes;
    mod partitions;
    mod replies;
    mod rules;
    mod scheduling;
    mod sends;
    /// Sessions: accepted, waited for, held, lost, and listed (semantics §6, wire.md §5).
    mod sessions {
        mod accept;
        mod management;
        mod order;
        mod state;
        mod waiting;
    }
    mod settlement;
    mod slow;
    mod subscriptions;
    mod topics;
    mod transactions;
}
mod words;
