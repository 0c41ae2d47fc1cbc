#![doc = include_str!("../README.md")]

mod access;
mod admin;
mod arm;
mod blocking;
mod body_account;
mod clock;
mod conducted;
mod connection;
mod connection_limit;
#[cfg_attr(
    not(feature = "durable"),
    expect(dead_code, reason = "a build that cannot write has no store")
)]
mod durable;
mod emulator;
mod failures;
mod faults;
mod http;
mod idle;
mod listen;
mod listeners;
mod lock_order;
mod memory;
mod namespace;
mod namespaces;
mod nodes;
mod options;
mod resource_state;
mod rest;
mod router;
mod server;
mod service_http;
mod shared;
#[cfg(feature = "simulation")]
mod simulation;
mod timers;
mod tls;
#[cfg(feature = "otlp")]
mod traces;
#[cfg(not(feature = "otlp"))]
#[path = "traces/disabled.rs"]
mod traces;
mod watchdog;

#[cfg(feature = "cli")]
pub mod cli;
#[cfg(feature = "fuzz")]
#[doc(hidden)]
pub mod fuzz;

pub use access::{AccessError, AccessOptions, HostName, Origin};
pub use clock::WallClock;
pub use conducted::ConductedNamespace;
pub use durable::Sync;
pub use emulator::Emulator;
pub use namespaces::NamespaceInfo;
pub use options::{DataError, DataOptions, Endpoints, Options, StartError};
pub use servicebus_broker as broker;
pub use servicebus_config::{
    AMQP_PORT, AMQPS_PORT, ClientSettings, Config, ConfigError, ControlToken, ControlTokenError,
    HTTP_PORT, NamespaceConfig, auth, config, import, xml,
};
pub use tls::{
    IssuedCertificate, TlsError, TlsOptions, UserCertificate, authority_file, issue_certificate,
};
#[cfg(feature = "otlp")]
pub use traces::TraceOptions;
