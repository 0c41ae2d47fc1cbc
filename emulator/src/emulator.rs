//! A running emulator: started with options, stopped by its handle.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use servicebus_broker::Tier;
use thiserror::Error;
use tokio::net::TcpListener;

use crate::access::{Access, AccessOptions, default_gateway};
use crate::clock::{RealClock, WallClock};
use crate::config::{Config, ConfigError};
use crate::http::Control;
use crate::idle;
use crate::listen;
use crate::memory::Memory;
use crate::namespaces::{NamespaceInfo, Namespaces, Place};
use crate::server::{ConnectionOptions, Listeners, Places, Shared};
use crate::tls::{Tls, TlsError, TlsOptions};

/// The port of AMQP; connection strings leave it out.
pub const AMQP_PORT: u16 = 5672;
/// The port of AMQP over TLS.
pub const AMQPS_PORT: u16 = 5671;
/// The port of the control API, and of the admin API of the official emulator.
pub const HTTP_PORT: u16 = 5300;

/// The names of all namespaces of the service.
const SERVICE: &str = "*.servicebus.windows.net";
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
    /// Whether outcomes to `fe2o3-amqp` 0.14 peers wait a millisecond, without which one send in a
    /// thousand hangs there (decision D31).
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
    /// Most bytes that a connection may make the emulator keep in unfinished messages, unread output, links and other state;
    /// more closes it with `amqp:resource-limit-exceeded`. At least twice the largest message of its namespace; 1 MiB until
    /// a token was accepted. 64 MiB unless set. Messages that entities hold do not count.
    pub connection_memory: u64,
    /// The same for all connections together: the one that asks for more is closed. 1 GiB unless set.
    pub process_memory: u64,
    /// How many peers may be connected at the same time, of any protocol; of one address beyond the loopback four of five.
    /// For `/health` there are 50 places more. 5,000 as in a namespace of the service.
    pub connections: usize,
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
            connection_memory: CONNECTION_MEMORY,
            process_memory: PROCESS_MEMORY,
            connections: CONNECTIONS,
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
    /// Somebody else has the port, or it is not ours to take.
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

/// An emulator that serves. Dropping it stops everything at once and never blocks; [`Emulator::stop`] says
/// goodbye first.
#[derive(Debug)]
pub struct Emulator {
    endpoints: Endpoints,
    pub(crate) shared: Arc<Shared>,
}

impl Emulator {
    /// Starts serving; must be called within a tokio runtime. When it returns every listener accepts.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        options.config.check().map_err(StartError::Config)?;
        let (listeners, endpoints) = listen::everywhere(&options).await?;
        Self::serve(options, endpoints, listeners)
    }

    /// Serves what comes to these listeners, which are at these endpoints.
    pub(crate) fn serve(
        options: Options,
        endpoints: Endpoints,
        listeners: Vec<TcpListener>,
    ) -> Result<Self, StartError> {
        let common = listeners.iter().filter_map(|own| own.local_addr().ok());
        let common = Listeners::new(common.map(|address| address.ip()).collect());
        let namespaces = options.config.namespaces.clone();
        let started = Self {
            endpoints,
            shared: Arc::new(share(options, endpoints, common)?),
        };
        let control = Control::new(Arc::clone(&started.shared));
        for namespace in namespaces {
            control.create(namespace)?;
        }
        let shared = &started.shared;
        shared.listeners.open(listeners, shared, &control.router());
        Ok(started)
    }

    /// Where it listens.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The namespaces with their connection strings.
    pub fn namespaces(&self) -> Vec<NamespaceInfo> {
        self.shared.namespaces.list()
    }

    /// The file with the certificates that clients must trust, in PEM; none before they are needed, or where a
    /// certificate was given. Where no more than this machine and the service's domain was asked for, it has that of the
    /// user's authority alone, which stays the same.
    pub fn ca_certificate(&self) -> Option<&Path> {
        self.shared.tls.authority_file()
    }

    /// The certificates that clients must trust, in PEM: that of the user's authority, then that of the one which vouches
    /// for all other names until the emulator ends. Made now if they were not; none where a certificate was given.
    pub fn ca_certificate_pem(&self) -> Result<Option<&str>, Arc<TlsError>> {
        self.shared.tls.authority_pem()
    }

    /// The line that says that everything serves: one JSON object (interfaces.md). Doors that were not asked for are
    /// null.
    pub fn ready_line(&self) -> String {
        let endpoints = &self.endpoints;
        let address = |at: SocketAddr| at.to_string();
        serde_json::json!({
            "event": "ready",
            // What Testcontainers' class for the official emulator waits for (observed 71).
            "message": "Emulator Service is Successfully Up!",
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "amqp": endpoints.amqp.to_string(),
            "amqps": endpoints.amqps.map(address),
            "http": endpoints.http.to_string(),
            "https": endpoints.https.map(address),
            "control_api": match self.shared.access.token {
                Some(_) => "token",
                None => "loopback",
            },
            "ca_certificate": self.ca_certificate(),
            "namespaces": self.namespaces(),
        })
        .to_string()
    }

    /// Resolves once nobody has been connected for so long, which begins now.
    pub fn idle_for(&self, time: Duration) -> impl Future<Output = ()> + Send + 'static {
        idle::wait(self.shared.connections(), time)
    }

    /// Tells every client that the emulator stops, and waits until they have gone or two seconds have passed.
    pub async fn stop(self) {
        self.shared.listeners.stop().await;
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.shared.listeners.abort();
    }
}

/// Makes what all connections share, and TLS where a port for it was opened.
fn share(
    mut options: Options,
    endpoints: Endpoints,
    listeners: Listeners,
) -> Result<Shared, StartError> {
    let access = access(&options, endpoints);
    let names = names(&options.config);
    options.tls.names = asked_for(&options, endpoints);
    let real = RealClock::start(options.wall_clock);
    let tls = Tls::new(options.tls, names, real.unix_seconds());
    if endpoints.amqps.or(endpoints.https).is_some() {
        tls.prepare().map_err(StartError::Tls)?;
    }
    let switches = ConnectionOptions {
        seed: options.seed,
        outcome_delay: options.outcome_delay,
        patience: options.patience,
        tier: options.tier,
        waiting_requests: options.waiting_requests,
    };
    let memory = Memory::new(options.connection_memory, options.process_memory);
    let places = Places::new(options.connections);
    let place = Place::new(&options.host, endpoints);
    let namespaces = Namespaces::new(real.clone(), options.seed, options.record_messages, place);
    Ok(Shared::new(
        switches, real, namespaces, listeners, tls, memory, places, access,
    ))
}

/// Who may use the control API; the log says so where clients beyond loopback can reach it.
fn access(options: &Options, endpoints: Endpoints) -> Access {
    let gateway = options.access.trust_gateway.then(default_gateway).flatten();
    let names = options.tls.names.iter().chain([&options.host]).cloned();
    let access = Access::new(options.access.clone(), names, gateway);
    let is_beyond = !endpoints.amqp.ip().to_canonical().is_loopback();
    match (is_beyond, &access.token) {
        (false, _) => {}
        (true, Some(_)) => {
            tracing::info!("the control API is served beyond loopback with its token");
        }
        (true, None) => tracing::warn!(
            gateway = gateway.map(tracing::field::display),
            "the control API is served to loopback and this gateway alone; --control-token opens it to others"
        ),
    }
    access
}

/// The names and addresses of the emulator that were asked for.
fn asked_for(options: &Options, endpoints: Endpoints) -> Vec<String> {
    let namespaces = options.config.namespaces.iter();
    let addresses =
        namespaces.filter_map(|namespace| Some(namespace.address.as_ref()?.to_string()));
    let own = [options.host.clone(), endpoints.amqp.ip().to_string()];
    let names = options.tls.names.iter().cloned();
    names.chain(own).chain(addresses).collect()
}

/// The names that every emulator has, and those of its namespaces.
fn names(config: &Config) -> Vec<String> {
    let fixed = ["localhost", "127.0.0.1", "::1", SERVICE];
    let mut names = fixed.map(str::to_owned).to_vec();
    for namespace in &config.namespaces {
        let name = &namespace.name;
        names.extend([name.clone(), format!("{name}.localhost")]);
    }
    names
}
