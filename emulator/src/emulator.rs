//! The handle of a running emulator.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use servicebus_control_api::{Failure, Ready};
use tokio::net::TcpListener;

use crate::access::{Access, default_gateway};
use crate::clock::RealClock;
use crate::config::{Config, NamespaceConfig};
use crate::connection_limit::ConnectionLimit;
#[cfg(feature = "durable")]
use crate::durable;
use crate::durable::Store;
use crate::http::Control;
use crate::listeners::Listeners;
use crate::memory::Memory;
use crate::namespaces::{NamespaceInfo, Namespaces, ServerAddress};
use crate::options::{DataError, DataOptions, Endpoints, Options, StartError};
use crate::resource_state::ResourceState;
use crate::shared::{ConnectionCounts, ConnectionOptions, Shared};
use crate::tls::{Tls, TlsError};
use crate::traces::Traces;
use crate::{idle, listen, server};

/// The host names of all namespaces of the service.
const SERVICE: &str = "*.servicebus.windows.net";
/// A running emulator. Dropping it stops everything at once and never blocks; [`Emulator::stop`] closes the connections
/// first.
pub struct Emulator {
    endpoints: Endpoints,
    pub(crate) shared: Arc<Shared>,
}

/// Formats the endpoints only. The contents of namespaces are of no use as text, and their `Debug` code would be compiled
/// anew in each crate that has a type with `Debug` and an emulator in it.
impl fmt::Debug for Emulator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Emulator")
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

impl Emulator {
    /// Starts an emulator. When this returns, every listener accepts connections.
    ///
    /// # Panics
    ///
    /// If called outside a tokio runtime.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        options.config.check().map_err(StartError::Config)?;
        Self::start_read(options).await
    }

    /// Starts an emulator with a configuration that was parsed from text or is the default, so that it needs no second
    /// check.
    pub async fn start_read(options: Options) -> Result<Self, StartError> {
        let (listeners, endpoints) = listen::everywhere(&options).await?;
        Self::serve(options, endpoints, listeners)
    }

    /// Serves the connections of `listeners`, whose addresses are `endpoints`.
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
        let control = started.control();
        for namespace in namespaces {
            control.create(namespace)?;
        }
        let shared = &started.shared;
        open_stored_namespaces(&control, shared)?;
        server::open(listeners, shared, &control.router(), None);
        Ok(started)
    }

    /// Returns the addresses at which the emulator listens.
    pub fn endpoints(&self) -> &Endpoints {
        &self.endpoints
    }

    /// Returns the namespaces with their connection strings.
    pub fn namespaces(&self) -> Vec<NamespaceInfo> {
        self.shared.namespaces.list()
    }

    /// Creates a namespace with the entities that `topology` declares, as `PUT /$emulator/v1/namespaces/{name}` does with the
    /// same JSON as its body. The error is the text of the refusal.
    pub async fn create_namespace(
        &self,
        name: &str,
        topology: String,
    ) -> Result<NamespaceInfo, String> {
        let created = self.control().create_declared(name, topology).await;
        self.once_committed(created).await
    }

    /// Removes a namespace with its entities, as `DELETE /$emulator/v1/namespaces/{name}` does. The error is the text of the
    /// refusal.
    pub async fn remove_namespace(&self, name: &str) -> Result<(), String> {
        let removed = self.control().remove(name).await;
        self.once_committed(removed).await
    }

    /// Returns the PEM file with the certificates that clients must trust. `None` before the certificates are created, and
    /// where the options have a certificate. If every name means this machine or the service's domain, the file has the
    /// certificate of the user's authority alone, which does not change between runs.
    pub fn ca_certificate(&self) -> Option<&Path> {
        self.shared.tls.authority_file()
    }

    /// Returns the certificates of [`Self::ca_certificate`] as a trust store for Java, a PKCS#12 file that any password opens.
    pub fn trust_store(&self) -> Option<&Path> {
        self.shared.tls.trust_store()
    }

    /// Returns the certificates that clients must trust, in PEM: that of the user's authority, then that of the authority
    /// for all other names, which ends with the emulator. Creates them if needed. `None` where the options have a
    /// certificate.
    pub fn ca_certificate_pem(&self) -> Result<Option<&str>, Arc<TlsError>> {
        self.shared.tls.authority_pem()
    }

    /// Returns the ready line, which reports that every listener accepts: one JSON object (interfaces.md). Listeners that
    /// are not in the options are null.
    pub fn ready_line(&self) -> String {
        let endpoints = &self.endpoints;
        let ready = Ready {
            event: "ready".into(),
            // Testcontainers' class for the official emulator waits for this text (observed 71).
            message: "Emulator Service is Successfully Up!".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            pid: std::process::id(),
            amqp: endpoints.amqp,
            amqps: endpoints.amqps,
            http: endpoints.http,
            https: endpoints.https,
            inspector: inspector(endpoints.http),
            control_api: match self.shared.access.token {
                Some(_) => "token".into(),
                None => "loopback".into(),
            },
            // The line is JSON, so file names that are not UTF-8 are replaced; they are rare.
            ca_certificate: self
                .ca_certificate()
                .map(|file| file.to_string_lossy().into_owned().into()),
            trust_store: self
                .trust_store()
                .map(|file| file.to_string_lossy().into_owned().into()),
            namespaces: self.namespaces(),
        };
        serde_json::to_string(&ready).unwrap_or_default()
    }

    /// Returns the internal failures, oldest first, as `/health` reports them. Each is a bug of the emulator.
    pub fn failures(&self) -> Vec<Failure> {
        self.shared.namespaces.failures.all()
    }

    /// Resolves once no client has been connected for `time`, counted from now.
    pub fn idle_for(&self, time: Duration) -> impl Future<Output = ()> + Send + 'static {
        idle::wait(self.shared.connections(), time)
    }

    /// Stops the emulator. Notifies every client, then waits up to two seconds for the connections to end, and up to two
    /// more for the collector to take the last spans.
    pub async fn stop(self) {
        self.shared.listeners.stop().await;
        self.shared.namespaces.traces.stop().await;
        self.close_store().await;
    }

    /// Ends the emulator as a kill of the process would, and waits until its ports and its directory are free. Connections
    /// break without a close frame; changes that are not in the directory yet are lost.
    pub async fn crash(self) {
        if let Some(store) = &self.shared.namespaces.store {
            store.discard();
        }
        self.shared.listeners.crash().await;
        self.close_store().await;
    }

    pub(crate) fn control(&self) -> Control {
        Control::new(Arc::clone(&self.shared), server::open)
    }

    /// Returns the result of a change once the change is in the data directory, if there is one.
    async fn once_committed<T>(&self, changed: Result<T, String>) -> Result<T, String> {
        if let Some(store) = &self.shared.namespaces.store {
            let written = store.flush().await;
            written.map_err(|failed| failed.to_string())?;
        }
        changed
    }

    async fn close_store(&self) {
        if let Some(store) = self.shared.namespaces.store.clone() {
            // Writing blocks its thread.
            let _ = tokio::task::spawn_blocking(move || store.close()).await;
        }
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.shared.listeners.abort();
        if let Some(store) = &self.shared.namespaces.store {
            store.begin_close();
        }
    }
}

/// Returns the address of the inspector page for a browser on this machine. The page redirects, so that a link needs no `$`.
fn inspector(http: SocketAddr) -> String {
    let ip = match http.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    let address = SocketAddr::new(ip, http.port());
    format!("http://{address}/")
}

/// Creates the state that all connections share, and prepares TLS where it has a port.
fn share(
    mut options: Options,
    endpoints: Endpoints,
    listeners: Listeners,
) -> Result<Shared, StartError> {
    let access = access(&options, endpoints);
    let names = names(&options.config);
    options.tls.names = certificate_names(&options, endpoints);
    let real = RealClock::start(options.wall_clock);
    // Before TLS, which may keep its files there and would report the directory as a problem of its own.
    let store = options.data.as_ref().map(open).transpose()?;
    let data = options.data.as_ref().map(|data| data.directory.clone());
    let tls = Tls::new(options.tls, data, names, real.unix_seconds());
    if endpoints.amqps.or(endpoints.https).is_some() {
        tls.prepare().map_err(StartError::Tls)?;
    }
    let switches = ConnectionOptions {
        seed: options.seed,
        outcome_delay: options.outcome_delay,
        step_timeout: options.step_timeout,
        tier: options.tier,
        waiting_requests: options.waiting_requests,
    };
    let place = ServerAddress::new(&options.host, endpoints);
    let prunes = options.data.as_ref().is_some_and(|data| data.prune);
    #[cfg(feature = "otlp")]
    let traces = Traces::start(options.traces);
    #[cfg(not(feature = "otlp"))]
    let traces = Traces::default();
    let resources = match &store {
        Some(store) => {
            ResourceState::kept(Arc::clone(store)).map_err(|error| DataError::Damaged {
                file: store.path().to_owned(),
                reason: error.to_string(),
            })?
        }
        None => ResourceState::default(),
    };
    let namespaces = Namespaces::new(
        real.clone(),
        options.seed,
        options.record_messages,
        place,
        (store, prunes),
        traces,
        &options.config.namespaces,
    );
    Ok(Shared {
        options: switches,
        real,
        namespaces,
        listeners,
        tls,
        memory: Memory::new(options.connection_memory, options.process_memory),
        connection_limit: ConnectionLimit::new(options.connections),
        access,
        resources: Arc::new(resources),
        activity: options.activity,
        counts: ConnectionCounts::default(),
    })
}

#[cfg(feature = "durable")]
fn open(data: &DataOptions) -> Result<Arc<Store>, DataError> {
    let (disk, file) = durable::open(&data.directory, data.sync)?;
    Store::open(disk, file.clone()).map_err(|error| DataError::Damaged {
        file,
        reason: error.to_string(),
    })
}

#[cfg(not(feature = "durable"))]
fn open(_: &DataOptions) -> Result<Arc<Store>, DataError> {
    Err(DataError::NotBuilt)
}

/// Serves the stored namespaces that are not declared, or removes them, and starts the writer of the store.
fn open_stored_namespaces(control: &Control, shared: &Shared) -> Result<(), StartError> {
    let namespaces = &shared.namespaces;
    let Some(store) = &namespaces.store else {
        return Ok(());
    };
    let damaged = |reason: String| DataError::Damaged {
        file: store.path().to_owned(),
        reason,
    };
    let declared = store
        .declared()
        .map_err(|error| damaged(error.to_string()))?;
    for kept in declared {
        if namespaces.named(&kept.name).is_some() {
            continue;
        }
        if namespaces.prunes {
            store.namespace(&kept.name).remove_namespace();
            continue;
        }
        let (name, tier) = (&kept.name, shared.options.tier);
        let is_taken = |key: &str| namespaces.key_owner(key, name).is_some();
        let read = NamespaceConfig::parse_as(name, &kept.text, tier, &is_taken);
        let created = control.open_stored(read.map_err(|error| damaged(error.to_string()))?);
        created.map_err(|error| only_stored(error, name, store.path()))?;
    }
    let orphans = store.remove_orphans();
    orphans.map_err(|error| damaged(error.to_string()))?;
    shared.forget_missing_resources();
    let started = store.start(namespaces.failures.clone());
    started.map_err(|source| {
        StartError::Data(DataError::Directory {
            directory: store.path().to_owned(),
            source,
        })
    })
}

/// Adds to an error for a namespace that it is stored and not declared, so that the configuration does not show it.
fn only_stored(error: StartError, namespace: &str, file: &Path) -> StartError {
    let explained = |reason: &dyn fmt::Display| {
        format!(
            "{reason}. The configuration does not declare {namespace:?}, it is in the data directory, in {file:?}: start with \
             --prune to remove it with everything else that is not declared, or change what the configuration declares"
        )
    };
    match error {
        StartError::Namespace { namespace, reason } => {
            let reason = explained(&reason);
            StartError::Namespace { namespace, reason }
        }
        StartError::Listen {
            address,
            option,
            source,
        } => StartError::Listen {
            address,
            option,
            source: io::Error::new(source.kind(), explained(&source)),
        },
        StartError::Host { .. }
        | StartError::Tls(_)
        | StartError::Config(_)
        | StartError::Data(_) => error,
    }
}

/// Returns the access rules of the control API; logs a warning where clients beyond the loopback can reach it.
fn access(options: &Options, endpoints: Endpoints) -> Access {
    let gateway = options.access.trust_gateway.then(default_gateway).flatten();
    let names = options.tls.names.iter().chain([&options.host]).cloned();
    let access = Access::new(options.access.clone(), names, gateway);
    let is_beyond = !endpoints.amqp.ip().to_canonical().is_loopback();
    match (is_beyond, &access.token) {
        (false, _) => {}
        (true, Some(_)) => {
            tracing::info!(
                "the control API accepts clients outside loopback with the control token"
            );
        }
        (true, None) => match gateway {
            Some(gateway) => tracing::warn!(
                %gateway,
                "the control API accepts only loopback and this gateway; --control-token admits other clients"
            ),
            None => tracing::warn!(
                "the control API accepts only loopback; --control-token admits other clients"
            ),
        },
    }
    access
}

/// Returns the host names and addresses by which the options let clients reach the emulator.
fn certificate_names(options: &Options, endpoints: Endpoints) -> Vec<String> {
    let namespaces = options.config.namespaces.iter();
    let addresses =
        namespaces.filter_map(|namespace| Some(namespace.address.as_ref()?.to_string()));
    let own = [options.host.clone(), endpoints.amqp.ip().to_string()];
    let names = options.tls.names.iter().cloned();
    names.chain(own).chain(addresses).collect()
}

/// Returns the host names that every emulator has, and those of its namespaces.
fn names(config: &Config) -> Vec<String> {
    let fixed = ["localhost", "127.0.0.1", "::1", SERVICE];
    let mut names = fixed.map(str::to_owned).to_vec();
    for namespace in &config.namespaces {
        let name = &namespace.name;
        names.extend([name.clone(), format!("{name}.localhost")]);
    }
    names
}
