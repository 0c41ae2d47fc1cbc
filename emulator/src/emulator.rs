//! A running emulator: started with options, stopped by its handle.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use thiserror::Error;
use tokio::net::{TcpListener, TcpSocket, lookup_host};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::auth::{ConnectionString, Key};
use crate::clock::RealClock;
use crate::config::Config;
use crate::http;
use crate::idle;
use crate::namespace::Namespace;
use crate::router::Router;
use crate::server::{self, Shared, Switches};
use crate::timers;
use crate::tls::{Tls, TlsError, TlsOptions};

/// The port of AMQP; connection strings leave it out.
pub const AMQP_PORT: u16 = 5672;
/// The port of AMQP over TLS.
pub const AMQPS_PORT: u16 = 5671;
/// The port of the control API, and of the admin API of the official emulator.
pub const HTTP_PORT: u16 = 5300;

/// The names of all namespaces of the service.
const SERVICE: &str = "*.servicebus.windows.net";
/// How long the queue of connections that wait to be accepted may be.
const BACKLOG: u32 = 1024;
const PATIENCE: Duration = Duration::from_secs(20);
/// How many ports are tried where any will do.
const ANY_PORT_TRIES: u32 = 16;

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
    /// Makes lock tokens, message ids and tracking ids the same in every run.
    pub seed: Option<u64>,
    /// Whether outcomes to `fe2o3-amqp` 0.14 peers wait a millisecond, without which one send in a
    /// thousand hangs there (decision D31).
    pub outcome_delay: bool,
    /// How long a peer may take to send its first byte, to finish a TLS handshake, to send the head of an HTTP request
    /// and to put a first token; each is 20 s as in the service, by the real clock.
    pub patience: Duration,
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
            seed: None,
            outcome_delay: true,
            patience: PATIENCE,
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
    /// A door for TLS was asked for, and there is no TLS.
    #[error(transparent)]
    Tls(Arc<TlsError>),
    /// An entity was declared with settings that are not legal.
    #[error("queue {queue:?} of namespace {namespace:?}: {problem}")]
    Description {
        /// The namespace.
        namespace: String,
        /// The queue.
        queue: String,
        /// What is wrong with it.
        problem: servicebus_broker::Problem,
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

/// A namespace as its users reach it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NamespaceInfo {
    /// Its name.
    pub name: String,
    /// For the data plane.
    pub connection_string: String,
    /// For the admin API.
    pub admin_connection_string: String,
}

/// An emulator that serves. Dropping it stops everything at once and never blocks; [`Emulator::stop`] says
/// goodbye first.
#[derive(Debug)]
pub struct Emulator {
    endpoints: Endpoints,
    namespaces: Vec<NamespaceInfo>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    listeners: JoinSet<()>,
    _timers: JoinSet<()>,
}

impl Emulator {
    /// Starts serving; must be called within a tokio runtime. When it returns every listener accepts.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        check(&options.config)?;
        let (listeners, endpoints) = open_doors(&options).await?;
        let namespaces = namespace_infos(&options, endpoints);
        let shared = Arc::new(share(options, endpoints)?);

        let mut timers = JoinSet::new();
        for namespace in &shared.namespaces {
            timers.spawn(timers::run(Arc::clone(namespace)));
        }
        let control = http::router(Arc::clone(&shared), namespaces.clone());
        let (stop, stopped) = watch::channel(false);
        let mut serving = JoinSet::new();
        for listener in listeners {
            let (shared, control) = (Arc::clone(&shared), control.clone());
            serving.spawn(server::run(listener, shared, control, stopped.clone()));
        }
        Ok(Self {
            endpoints,
            namespaces,
            shared,
            stop,
            listeners: serving,
            _timers: timers,
        })
    }

    /// Where it listens.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// The namespaces with their connection strings.
    pub fn namespaces(&self) -> &[NamespaceInfo] {
        &self.namespaces
    }

    /// The file with the certificate that clients must trust, in PEM; none before it is needed, or where a
    /// certificate was given.
    pub fn ca_certificate(&self) -> Option<&Path> {
        self.shared.tls.authority_file()
    }

    /// The certificate that clients must trust, in PEM; made now if it was not. None where one was given.
    pub fn ca_certificate_pem(&self) -> Result<Option<&str>, Arc<TlsError>> {
        self.shared.tls.authority_pem()
    }

    /// The line that says that everything serves: one JSON object (interfaces.md). Doors that were not asked for are
    /// null.
    pub fn ready_line(&self) -> String {
        let endpoints = &self.endpoints;
        let address = |door: SocketAddr| door.to_string();
        serde_json::json!({
            "event": "ready",
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "amqp": endpoints.amqp.to_string(),
            "amqps": endpoints.amqps.map(address),
            "http": endpoints.http.to_string(),
            "https": endpoints.https.map(address),
            "ca_certificate": self.ca_certificate(),
            "namespaces": self.namespaces,
        })
        .to_string()
    }

    /// Resolves once nobody has been connected for so long, which begins now.
    pub fn idle_for(&self, time: Duration) -> impl Future<Output = ()> + Send + 'static {
        idle::wait(self.shared.connections(), time)
    }

    /// Tells every client that the emulator stops, and waits until they have gone or two seconds have passed.
    pub async fn stop(mut self) {
        let _ = self.stop.send(true);
        while self.listeners.join_next().await.is_some() {}
    }
}

/// A configuration made in code is checked like one from a file.
fn check(config: &Config) -> Result<(), StartError> {
    for namespace in &config.namespaces {
        for (path, description) in &namespace.queues {
            if let Some(problem) = description
                .problems(path, namespace.settings.tier)
                .into_iter()
                .next()
            {
                return Err(StartError::Description {
                    namespace: namespace.name.clone(),
                    queue: path.to_string(),
                    problem,
                });
            }
        }
    }
    Ok(())
}

/// Listens at every door that was asked for.
async fn open_doors(options: &Options) -> Result<(Vec<TcpListener>, Endpoints), StartError> {
    let host = &options.host;
    let mut listeners = Vec::new();
    let mut open = async |port: u16| {
        let opened = listen(host, port).await?;
        let address = local(&opened, host)?;
        listeners.extend(opened);
        Ok::<_, StartError>(address)
    };
    let amqp = open(options.amqp_port).await?;
    let http = open(options.http_port).await?;
    let amqps = match options.amqps_port {
        Some(port) => Some(open(port).await?),
        None => None,
    };
    let https = match options.https_port {
        Some(port) => Some(open(port).await?),
        None => None,
    };
    let endpoints = Endpoints {
        amqp,
        amqps,
        http,
        https,
    };
    Ok((listeners, endpoints))
}

/// Makes what all connections share, and TLS where a door for it was opened.
fn share(options: Options, endpoints: Endpoints) -> Result<Shared, StartError> {
    let real = RealClock::start();
    let names = names(&options, endpoints);
    let tls = Tls::new(options.tls, names, real.unix_seconds());
    if endpoints.amqps.or(endpoints.https).is_some() {
        tls.prepare().map_err(StartError::Tls)?;
    }
    let router = Arc::new(Router::default());
    let switches = Switches {
        seed: options.seed,
        outcome_delay: options.outcome_delay,
        patience: options.patience,
    };
    let served = options.config.namespaces.into_iter().map(|config| {
        let router = Arc::clone(&router);
        Arc::new(Namespace::new(config, real, router, options.seed))
    });
    let served = served.collect();
    Ok(Shared::new(switches, real, router, served, tls))
}

/// By what clients reach the emulator: addresses, host names, and those of its namespaces.
fn names(options: &Options, endpoints: Endpoints) -> Vec<String> {
    let fixed = ["localhost", "127.0.0.1", "::1", SERVICE];
    let mut names = fixed.map(str::to_owned).to_vec();
    names.extend([options.host.clone(), endpoints.amqp.ip().to_string()]);
    for namespace in &options.config.namespaces {
        let name = &namespace.name;
        names.extend([name.clone(), format!("{name}.localhost")]);
    }
    names.sort_unstable();
    names.dedup();
    names
}

fn namespace_infos(options: &Options, endpoints: Endpoints) -> Vec<NamespaceInfo> {
    let any: [IpAddr; 2] = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let host = match options.host.parse::<IpAddr>() {
        Ok(address) if any.contains(&address) => "localhost".to_owned(),
        _ => options.host.clone(),
    };
    let info = |namespace: &crate::config::NamespaceConfig| {
        let well_known = Key::well_known();
        let key = namespace.keys.first().unwrap_or(&well_known);
        let amqp = endpoints.amqp.port();
        let amqp = (amqp != AMQP_PORT).then_some(amqp);
        let http = Some(endpoints.http.port());
        let string = |port| ConnectionString::for_emulator(host.as_str(), port, key).to_string();
        NamespaceInfo {
            name: namespace.name.clone(),
            connection_string: string(amqp),
            admin_connection_string: string(http),
        }
    };
    options.config.namespaces.iter().map(info).collect()
}

/// Listens on every address that `host` stands for, all on the same port.
async fn listen(host: &str, port: u16) -> Result<Vec<TcpListener>, StartError> {
    if host.eq_ignore_ascii_case("localhost") {
        return listen_on_localhost(port);
    }
    let unknown = |source| StartError::Host {
        host: host.into(),
        source,
    };
    let mut addresses = lookup_host((host, port)).await.map_err(unknown)?;
    let first = addresses.next();
    let address = first.ok_or_else(|| unknown(io::Error::other("it has no address")))?;
    Ok(vec![bind(address)?])
}

/// On 127.0.0.1 and, where there is one, ::1. A port that is free on the one may be taken on the other: where any
/// will do, another is tried.
fn listen_on_localhost(port: u16) -> Result<Vec<TcpListener>, StartError> {
    let mut tries = if port == 0 { ANY_PORT_TRIES } else { 1 };
    loop {
        tries -= 1;
        let first = bind(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port))?;
        let port = local(std::slice::from_ref(&first), "localhost")?.port();
        match bind(SocketAddr::new(Ipv6Addr::LOCALHOST.into(), port)) {
            Ok(second) => return Ok(vec![first, second]),
            Err(StartError::Listen { source, .. }) if has_no_ipv6(&source) => {
                return Ok(vec![first]);
            }
            Err(error) if tries == 0 => return Err(error),
            Err(_) => {}
        }
    }
}

fn bind(address: SocketAddr) -> Result<TcpListener, StartError> {
    let socket = || {
        let socket = match address {
            SocketAddr::V4(_) => TcpSocket::new_v4()?,
            SocketAddr::V6(_) => TcpSocket::new_v6()?,
        };
        // A restart must not wait for connections of the last run to fade.
        socket.set_reuseaddr(true)?;
        socket.bind(address)?;
        socket.listen(BACKLOG)
    };
    socket().map_err(|source| StartError::Listen { address, source })
}

fn has_no_ipv6(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported
    )
}

fn local(listeners: &[TcpListener], host: &str) -> Result<SocketAddr, StartError> {
    let first = listeners.first().map(TcpListener::local_addr);
    let address = first.unwrap_or_else(|| Err(io::Error::other("nothing listens")));
    address.map_err(|source| StartError::Host {
        host: host.into(),
        source,
    })
}
