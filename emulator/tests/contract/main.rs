//! The emulator from outside, as scripts, testers and SDKs meet it: the process, the control API and the wire.
//!
//! What `interfaces.md` and the wire contract promise is asserted here with hand-made requests and frames, so
//! that no client library hides a wrong answer. Nothing sleeps to let something happen: tests move the
//! emulator's clock, or wait for a condition with a deadline.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `anything else` is what a test fails on"
)]

mod support;

mod admin;
mod arm;
mod control;
mod listeners;
mod process;
mod rest;
mod simulation;
mod wire;
mod words;
