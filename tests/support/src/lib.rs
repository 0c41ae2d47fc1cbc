//! Support shared by test programs of this workspace: AMQP values, frames and messages, a raw client, a browser, programs
//! that tests start, tests in a process of their own, normalized failure texts, temporary files, and the matrix of messages that must arrive
//! bit by bit.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "the kinds of AMQP values are closed, and `anything else` is what a test fails on"
)]

#[cfg(feature = "browser")]
pub mod browser;
pub mod built;
#[cfg(feature = "client")]
pub mod client;
pub mod comparison;
pub mod frame;
pub mod matrix;
pub mod message;
pub mod normalised;
#[cfg(feature = "stream")]
pub mod stream;
pub mod temporary;
pub mod value;
