//! The configuration of an emulator, keys and tokens, and the XML of the administration API.
//!
//! The emulator and the harness share this crate, so that a harness that starts an installed emulator does not build one.

mod client_settings;
mod control_token;
mod ports;

pub mod auth;
pub mod config;
pub mod descriptions;
pub mod import;
pub mod sizes;
pub mod xml;

pub use client_settings::{ClientSettings, quoted};
pub use config::{Config, ConfigError, NamespaceConfig};
pub use control_token::{ControlToken, ControlTokenError};
pub use ports::{AMQP_PORT, AMQPS_PORT, HTTP_PORT, HTTPS_PORT};
