#![doc = include_str!("../README.md")]

mod clock;
mod connection;
mod emulator;
mod http;
mod namespace;
mod namespaces;
mod nodes;
mod router;
mod server;
mod timers;

pub mod auth;
pub mod cli;
pub mod config;

pub use config::{Config, ConfigError, NamespaceConfig};
pub use emulator::{AMQP_PORT, Emulator, Endpoints, HTTP_PORT, NamespaceInfo, Options, StartError};
pub use servicebus_broker as broker;
