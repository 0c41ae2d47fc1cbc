//! The configuration of an emulator, keys and tokens, and the XML of the administration API.
//!
//! The emulator and the harness share this crate, so that a harness that starts an installed emulator does not build one.

mod client_settings;
mod control_token;

pub mod auth;
pub mod config;
pub mod descriptions;
pub mod import;
pub mod sizes;
pub mod xml;

pub use client_settings::{ClientSettings, quoted};
pub use config::{Config, ConfigError, NamespaceConfig};
pub use control_token::{ControlToken, ControlTokenError};

// The default ports of clients.
/// AMQP; connection strings leave it out.
pub const AMQP_PORT: u16 = 5672;
/// AMQP over TLS.
pub const AMQPS_PORT: u16 = 5671;
/// The control API, and the admin API of the official emulator.
pub const HTTP_PORT: u16 = 5300;
/// The service's administration API and WebSockets. Clients with fixed ports use it as they use 5671.
pub const HTTPS_PORT: u16 = 443;
