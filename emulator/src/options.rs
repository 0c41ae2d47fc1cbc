//! What an emulator is started with, where it listens, and why it does not start.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use servicebus_broker::Tier;
use servicebus_config::{AMQP_PORT, AMQPS_PORT, HTTP_PORT};
use thiserror::Error;

use crate::access::AccessOptions;
use crate::clock::WallClock;
use crate::config::{Config, ConfigError};
use crate::durable::Sync;
use crate::tls::{TlsError, TlsOptions};
#[cfg(feature = "otlp")]
use crate::traces::TraceOptions;

/// Receive requests at the same time on one entity, as many as the service takes (semantics §1).
const WAITING_REQUESTS: u32 = 5_000;
/// Peers at the same time, as many as a namespace of the service takes (semantics §1).
const CONNECTIONS: usize = 5_000;
/// Memory of a connection, and of all.
const CONNECTION_MEMORY: u64 = 64 << 20;
const PROCESS_MEMORY: u64 = 1 << 30;
const TIMEOUT: Duration = Duration::from_secs(20);

/// What an emulator is started with.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address to listen on, and the host in connection strings. `localhost` listens on 127.0.0.1
    /// and ::1.
    pub host: String,
    /// Port of AMQP; 0 for any that is free.
    pub amqp_port: u16,
    /// Port of AMQP over TLS, if there is to be one; 0 for any that is free. Every other port takes TLS too.
    pub amqps_port: Option<u16>,
    /// Port of HTTP; 0 for any that is free.
    pub http_port: u16,
    /// Port of HTTP over TLS, if there is to be one; 0 for any that is free. Some clients know only 443.
    pub https_port: Option<u16>,
    /// Which certificate clients are shown.
    pub tls: TlsOptions,
    /// What to serve.
    pub config: Config,
    /// The tier of namespaces that are made while it serves and name none.
    pub tier: Tier,
    /// Makes lock tokens, message ids and tracking ids the same in every run.
    pub seed: Option<u64>,
    /// Whether messages are kept behind the record, up to 64 MiB a namespace, for timelines that ask for them.
    pub record_messages: bool,
    /// Whether outcomes to `fe2o3-amqp` 0.14 peers are repeated until the peer has proved that it knows the delivery,
    /// without which one send in a thousand hangs there (decision D31).
    pub outcome_delay: bool,
    /// How long a peer may take to send its first byte, to finish a TLS handshake, to send the head of an HTTP request
    /// and then its body to the control API, and to put a first token; each is 20 s as in the service, by the real clock.
    pub patience: Duration,
    /// How many REST requests may wait for messages of one queue or topic at the same time; more are answered 503.
    /// 5,000 as in the service.
    pub waiting_requests: u32,
    /// Who may use the control API.
    pub access: AccessOptions,
    /// Where wall time is read; by default from the operating system.
    pub wall_clock: WallClock,
    /// Counts what connections do, for one who drives the runtime and must know when nothing moves any more: it grows with
    /// every turn of a connection and every request.
    pub activity: Option<Arc<AtomicU64>>,
    /// Most bytes that a connection may make the emulator keep in unfinished messages, unread output, links and other state;
    /// more closes it with `amqp:resource-limit-exceeded`. At least twice the largest message of its namespace; 1 MiB until
    /// a token was accepted. 64 MiB unless set. Messages that entities hold do not count.
    pub connection_memory: u64,
    /// The same for all connections together: the one that asks for more is closed. 1 GiB unless set.
    pub process_memory: u64,
    /// How many peers may be connected at the same time, of any protocol; of one address beyond the loopback four of five.
    /// For `/health` there are 50 places more. 5,000 as in a namespace of the service.
    pub connections: usize,
    /// Where what namespaces hold outlives the process; none for memory alone, where nothing is kept.
    pub data: Option<DataOptions>,
    /// Where spans of messages are sent; none unless set. There with the feature `otlp`.
    #[cfg(feature = "otlp")]
    pub traces: Option<TraceOptions>,
}

/// A directory in which what namespaces hold outlives the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataOptions {
    /// The directory; it is made if it is not there. One emulator has it at a time.
    pub directory: PathBuf,
    /// How safe what a client was told is.
    pub sync: Sync,
    /// Whether entities that are kept and not declared are removed at the start.
    pub prune: bool,
}

impl DataOptions {
    /// This directory, in which what a client was told survives loss of power, and nothing is removed.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            sync: Sync::Always,
            prune: false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: "localhost".into(),
            amqp_port: AMQP_PORT,
            amqps_port: Some(AMQPS_PORT),
            http_port: HTTP_PORT,
            https_port: None,
            tls: TlsOptions::default(),
            config: Config::default(),
            tier: Tier::default(),
            seed: None,
            record_messages: false,
            outcome_delay: true,
            patience: TIMEOUT,
            waiting_requests: WAITING_REQUESTS,
            access: AccessOptions::default(),
            wall_clock: WallClock::default(),
            activity: None,
            connection_memory: CONNECTION_MEMORY,
            process_memory: PROCESS_MEMORY,
            connections: CONNECTIONS,
            data: None,
            #[cfg(feature = "otlp")]
            traces: None,
        }
    }
}

/// Why an emulator does not start.
#[derive(Debug, Error)]
pub enum StartError {
    /// The address does not name a place to listen on.
    #[error("cannot find the address {host:?}: {source}")]
    Host {
        /// What was asked for.
        host: String,
        /// What the system says.
        source: io::Error,
    },
    /// Another process has the port, or it is not ours to take.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// What the system says.
        source: io::Error,
    },
    /// A port for TLS was asked for, and there is no TLS.
    #[error(transparent)]
    Tls(Arc<TlsError>),
    /// The configuration was made in code, and would be refused in a file.
    #[error(transparent)]
    Config(ConfigError),
    /// A namespace was declared with a name, a key name or an address that another one has.
    #[error("namespace {namespace:?}: {reason}")]
    Namespace {
        /// The namespace.
        namespace: String,
        /// What is wrong with it.
        reason: String,
    },
    /// What a directory holds cannot be served.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// Why the data of a directory cannot be served.
#[derive(Debug, Error)]
pub enum DataError {
    /// It cannot be read or written.
    #[error("cannot use the data directory {directory:?}: {source}")]
    Directory {
        /// Which.
        directory: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Another process has it.
    #[error("the data directory {0:?} is used by another process; one emulator has it at a time")]
    InUse(PathBuf),
    /// A newer emulator wrote it.
    #[error(
        "the data directory {directory:?} has the format {version} of a newer emulator; this one knows up to {known}"
    )]
    Version {
        /// Which.
        directory: PathBuf,
        /// What it has.
        version: u32,
        /// What is known here.
        known: u32,
    },
    /// It was there, and is not any more.
    #[error(
        "the file {0:?} is missing; put it back from a copy, or empty the data directory to begin anew"
    )]
    Missing(PathBuf),
    /// It is not as it was written.
    #[error(
        "the file {file:?} is damaged: {reason}; `servicebus-emulator data DIR check` tells what is. Put it back from a copy, or empty the data directory to begin anew"
    )]
    Damaged {
        /// Which.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A declared entity cannot become what it is declared as.
    #[error(
        "namespace {namespace:?}: {entity:?} is kept with other settings than are declared, and they cannot change: {reason}; delete it, or declare it as it is kept"
    )]
    Differs {
        /// The namespace.
        namespace: String,
        /// The entity.
        entity: String,
        /// What is declared, and what is kept.
        reason: String,
    },
    /// It was built without the part that writes.
    #[error(
        "this emulator was built without the feature \"durable\", so that it cannot keep data in a directory"
    )]
    NotBuilt,
}

/// Where an emulator listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// AMQP over TCP.
    pub amqp: SocketAddr,
    /// AMQP over TLS.
    pub amqps: Option<SocketAddr>,
    /// The control API, and AMQP over WebSocket.
    pub http: SocketAddr,
    /// The same over TLS.
    pub https: Option<SocketAddr>,
}
