//! Options of an emulator, its endpoints, and the errors of its start.

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

/// REST receive requests that may wait on one entity at a time, as in the service (semantics §1).
const WAITING_REQUESTS: u32 = 5_000;
/// Concurrent connections, as a namespace of the service allows (semantics §1).
const CONNECTIONS: usize = 5_000;
/// Memory limits in bytes: of one connection, and of all connections together.
const CONNECTION_MEMORY: u64 = 64 << 20;
const PROCESS_MEMORY: u64 = 1 << 30;
const TIMEOUT: Duration = Duration::from_secs(20);

/// Options with which an emulator starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// The address to listen on, which is also the host in connection strings. `localhost` listens on 127.0.0.1 and ::1.
    pub host: String,
    /// Port for AMQP; 0 chooses a free one.
    pub amqp_port: u16,
    /// Port for AMQP over TLS, if any; 0 chooses a free one. Every other port accepts TLS too.
    pub amqps_port: Option<u16>,
    /// Port for HTTP; 0 chooses a free one.
    pub http_port: u16,
    /// Port for HTTP over TLS, if any; 0 chooses a free one. Some clients only know 443.
    pub https_port: Option<u16>,
    /// The server certificate.
    pub tls: TlsOptions,
    /// The namespaces and entities to serve.
    pub config: Config,
    /// The tier of namespaces that are created at run time without one.
    pub tier: Tier,
    /// Makes lock tokens, message ids and tracking ids the same in every run.
    pub seed: Option<u64>,
    /// Whether message bodies are recorded, up to 64 MiB per namespace, for timelines that ask for them.
    pub record_messages: bool,
    /// Whether outcomes to `fe2o3-amqp` clients are repeated until the client has shown that it knows the delivery.
    /// Without this, one send in a thousand hangs there (decision D31).
    pub outcome_delay: bool,
    /// Timeout in real time for each of these steps: a peer's first byte, a TLS handshake, the head of an HTTP request, its
    /// body to the control API, and the first token. 20 s unless set, as in the service.
    pub step_timeout: Duration,
    /// How many REST requests may wait for messages of one queue or topic at the same time; more are answered 503. 5,000
    /// unless set, as in the service.
    pub waiting_requests: u32,
    /// Which clients may use the control API.
    pub access: AccessOptions,
    /// The source of wall time; by default the operating system.
    pub wall_clock: WallClock,
    /// Counts turns of connections and requests. An embedder that drives the runtime sees from it when no connection makes
    /// progress any more.
    pub activity: Option<Arc<AtomicU64>>,
    /// Limit in bytes for the unfinished messages, unread output, links and other state of one connection. A connection
    /// above it is closed with `amqp:resource-limit-exceeded`. The limit is at least twice the largest message of the
    /// namespace, and 1 MiB until a token was accepted. 64 MiB unless set. Messages in entities do not count.
    pub connection_memory: u64,
    /// The limit for all connections together: the connection that asks for more is closed. 1 GiB unless set.
    pub process_memory: u64,
    /// How many peers of any protocol may be connected at the same time; one address beyond the loopback may have four
    /// fifths of them. 50 further connections are reserved for `/health`. 5,000 unless set, as in a namespace of the
    /// service.
    pub connections: usize,
    /// Where the contents of namespaces are stored; `None` keeps them in memory only.
    pub data: Option<DataOptions>,
    /// Where spans of messages are exported; none unless set. Needs the feature `otlp`.
    #[cfg(feature = "otlp")]
    pub traces: Option<TraceOptions>,
}

/// A directory that stores the contents of namespaces beyond the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataOptions {
    /// The directory; created if it does not exist. Only one emulator can use it at a time.
    pub directory: PathBuf,
    /// What acknowledged changes survive.
    pub sync: Sync,
    /// Whether stored entities that are not declared are removed at the start.
    pub prune: bool,
}

impl DataOptions {
    /// Returns options for this directory: acknowledged changes survive a loss of power, and no entity is removed.
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
            step_timeout: TIMEOUT,
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
    /// The host is not an address to listen on.
    #[error("cannot resolve the address {host:?}: {source}")]
    Host {
        /// The host of the options.
        host: String,
        /// The error of the operating system.
        source: io::Error,
    },
    /// Another process uses the port, or this process may not open it.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address and port.
        address: SocketAddr,
        /// The option of the command line that selects the port; none for the address of a single namespace.
        option: Option<&'static str>,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The options have a port for TLS, but TLS cannot be set up.
    #[error(transparent)]
    Tls(Arc<TlsError>),
    /// The configuration was built in code and breaks a rule that configuration files are checked against.
    #[error(transparent)]
    Config(ConfigError),
    /// Two namespaces share a name, a key name or an address.
    #[error("namespace {namespace:?}: {reason}")]
    Namespace {
        /// The namespace that conflicts.
        namespace: String,
        /// Why it is not accepted.
        reason: String,
    },
    /// The contents of the data directory cannot be served.
    #[error(transparent)]
    Data(#[from] DataError),
}

/// Why a data directory cannot be served.
#[derive(Debug, Error)]
pub enum DataError {
    /// The directory cannot be read or written.
    #[error("cannot use the data directory {directory:?}: {source}")]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The disk has too little space to start.
    #[error(
        "cannot use the data directory {directory:?}: its disk is full, and a start needs up to {needed} bytes. Nothing is lost: free that much, or read the contents with `servicebus-emulator data DIR export`, which needs no space there"
    )]
    DiskFull {
        /// The directory.
        directory: PathBuf,
        /// The bytes that must be free, mostly for what the journal holds.
        needed: u64,
    },
    /// Another emulator uses the directory.
    #[error(
        "the data directory {0:?} is in use by another emulator, of this or another process; only one emulator can use it at a time"
    )]
    InUse(PathBuf),
    /// A newer emulator wrote the directory.
    #[error(
        "the data directory {directory:?} has format {version} of a newer emulator; this emulator supports up to {known}"
    )]
    Version {
        /// The directory.
        directory: PathBuf,
        /// The format version of the directory.
        version: u32,
        /// The newest format version that this emulator reads.
        known: u32,
    },
    /// A file of the directory has been removed.
    #[error(
        "the file {0:?} is missing; restore it from a backup, or empty the data directory to start again"
    )]
    Missing(PathBuf),
    /// The contents of a file are damaged.
    #[error(
        "the file {file:?} is damaged: {reason}; run `servicebus-emulator data DIR check` for details. Restore it from a backup, or empty the data directory to start again"
    )]
    Damaged {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A stored entity cannot take the settings that are declared for it.
    #[error(
        "namespace {namespace:?}: {entity:?} is stored with settings that differ from the declared ones and cannot be changed: {reason}. Declare the stored settings; or, to delete it with its messages, remove it from the configuration and start once with `--prune`, which deletes everything that is stored and not declared"
    )]
    Differs {
        /// The namespace.
        namespace: String,
        /// The entity.
        entity: String,
        /// The declared and the stored settings.
        reason: String,
    },
    /// A stored entity is not allowed in the tier that its namespace has now.
    #[error(
        "namespace {namespace:?}: {entity:?} is stored with settings that the {tier} tier does not allow: {reason}; use the tier with which it was stored, declare it with allowed settings, or remove it with --prune"
    )]
    Tier {
        /// The namespace.
        namespace: String,
        /// The entity.
        entity: String,
        /// The name of the tier.
        tier: &'static str,
        /// The stored and the allowed settings.
        reason: String,
    },
    /// This build has no support for a data directory.
    #[error(
        "this emulator was built without the feature \"durable\" and cannot use a data directory"
    )]
    NotBuilt,
}

/// The addresses at which an emulator listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Endpoints {
    /// AMQP over TCP.
    pub amqp: SocketAddr,
    /// AMQP over TLS.
    pub amqps: Option<SocketAddr>,
    /// The control API, and AMQP over WebSocket.
    pub http: SocketAddr,
    /// The control API, and AMQP over WebSocket, over TLS.
    pub https: Option<SocketAddr>,
}
