//! The server side of one AMQP 1.0 connection, as a state machine without I/O.
//!
//! Bytes go in through [`Connection::receive`], [`Event`]s come out of [`Connection::poll_event`],
//! intents such as [`Connection::accept_attach`] or [`Connection::deliver`] append frames to one
//! [`Output`], and time is an argument. The engine knows SASL framing, channels, handles, session
//! windows, link credit, drain, transfers of many frames, ranges of dispositions and heartbeats. It
//! does not know what an address or a message means, holds no socket, clock, task or lock, and never
//! panics on what a peer sends: every offence is answered with the error that AMQP names for it.
//!
//! ```
//! use std::time::Duration;
//! use bytes::BytesMut;
//! use servicebus_amqp::{Config, Connection, Event};
//!
//! let mut connection = Connection::new(Config::default(), Duration::ZERO);
//! let mut input = BytesMut::from(&b"AMQP\x03\x01\x00\x00"[..]);
//! connection.receive(Duration::ZERO, &mut input);
//! while let Some(event) = connection.poll_event() {
//!     if let Event::Sasl { .. } = event {
//!         connection.sasl_outcome(true);
//!     }
//! }
//! connection.flush();
//! assert!(!connection.output().is_empty());
//! ```
//!
//! Events about clients are cited as "spec/wire.md §n", sections of the standard as "AMQP 1.0 §n".

mod attach;
mod config;
mod connection;
mod error;
mod event;
mod ids;
mod output;

mod link;
mod session;
mod unsettled;
mod wire;

pub use attach::{AttachReply, AttachRequest, ReceiverSettleMode, SenderSettleMode};
pub use config::Config;
pub use connection::{Connection, Delivery};
pub use error::Error;
pub use event::{Event, SaslResponse, Settlement, Transfer};
pub use ids::{DeliveryNumber, LinkId, LinkRole, SessionId};
pub use output::Output;
pub use serde_amqp::Value;
pub use unsettled::{DeliveryState, Outcome};
pub use wire::cold::{PeerOpen, TerminusLifetime};
pub use wire::value::decode;
