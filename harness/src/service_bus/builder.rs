//! The builder of a namespace.

use std::{panic::Location, path::PathBuf, sync::Arc, time::Duration};

use servicebus_config::{auth::Key, config::Config};

use super::{Options, ServiceBus};
#[cfg(feature = "container")]
use crate::container::{self, ContainerOptions};
use crate::{
    action::Action,
    address::ListenAddress,
    background::Background,
    catalog, connections,
    data::Data,
    endpoints::{HttpPorts, Secret},
    error::{Error, ErrorKind},
    keys::Keys,
    mode::Mode,
    observer,
    process::{self, ProcessOptions},
    remote::{self, RemoteOptions},
    running::Started,
    shared::{self, EmulatorOptions},
    topology::{Topology, text_of},
};

/// How long a child process may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How long a container may take, including retries while others start or end.
#[cfg(feature = "container")]
const CONTAINER_READY_WITHIN: Duration = Duration::from_secs(60);

/// Builds a namespace.
#[derive(Debug, Clone, Default)]
#[must_use = "a builder starts nothing before `start`"]
pub struct Builder {
    topology: Option<Topology>,
    mode: Option<Mode>,
    binary: Option<PathBuf>,
    ready_within: Option<Duration>,
    seed: Option<u64>,
    ports: HttpPorts,
    tls: bool,
    leak_check: bool,
    within: Option<Duration>,
    connection_string: Option<Secret>,
    max_real_wait: Option<Duration>,
    is_prefixed: bool,
    data: Option<Data>,
    /// The runtime, unless it is that of the process.
    background: Option<Arc<Background>>,
    /// The number of keys that identify the clients of parties.
    party_keys: usize,
}

impl Builder {
    /// Sets the entities of the namespace; one queue, `queue.1`, unless set.
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = Some(topology);
        self
    }

    /// Sets the mode, overriding the environment.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Sets the path of the emulator binary for mode [`Mode::Process`].
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binary = Some(path.into());
        self
    }

    /// Sets how long the emulator of [`Mode::Process`] or [`Mode::Container`] may take to become ready; 30 s and 60 s unless
    /// set.
    pub fn ready_within(mut self, within: Duration) -> Self {
        self.ready_within = Some(within);
        self
    }

    /// Makes lock tokens and other random choices of the emulator repeatable.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Returns connection strings like the service's, without `UseDevelopmentEmulator`: clients use TLS and must trust
    /// [`ServiceBus::ca_certificate_pem`].
    pub fn tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }

    /// Fails a test that ends, by [`ServiceBus::stop`] or by a drop, with active messages, locked ones included. Messages in
    /// flight have up to 5 s. Dead-lettered and scheduled messages do not count.
    pub fn leak_check(mut self, leak_check: bool) -> Self {
        self.leak_check = leak_check;
        self
    }

    /// Sets how long the test waits, in real time, for what it expects: every assertion, every receive, and
    /// [`ServiceBus::wait_idle`]. 5 s unless set here or, in seconds, by [`WITHIN_VARIABLE`](crate::WITHIN_VARIABLE);
    /// `within` of an assertion applies to that one only.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }

    /// Sets the connection string of mode [`Mode::Namespace`], overriding the environment.
    pub fn connection_string(mut self, connection_string: impl Into<String>) -> Self {
        self.connection_string = Some(Secret::from(connection_string.into()));
        self
    }

    /// Sets how long an advance of the clock may wait in real time in mode [`Mode::Namespace`], where no test controls the
    /// time; zero unless set here or, in seconds, by [`MAX_REAL_WAIT_VARIABLE`](crate::MAX_REAL_WAIT_VARIABLE). In other
    /// modes an advance never waits.
    pub fn max_real_wait(mut self, longest: Duration) -> Self {
        self.max_real_wait = Some(longest);
        self
    }

    /// Lets several `ServiceBus`, of one machine or several, share a namespace in mode [`Mode::Namespace`]: its entities
    /// have names that begin with `test-` and a number of its own. The test's clients take the names of the topology;
    /// `servicebus.queue("orders").name()` returns the actual name for the code under test. In the other modes each
    /// namespace belongs to one test, and nothing is renamed.
    pub fn prefixed(mut self) -> Self {
        self.is_prefixed = true;
        self
    }

    /// Stores the namespace in a directory, from which [`ServiceBus::restart`], [`ServiceBus::crash`] and the next
    /// `ServiceBus` with the same directory continue. One `ServiceBus` uses it at a time. It is created if it does not
    /// exist, and is not removed. The messages of the topology are sent only if it is empty.
    pub fn data(mut self, directory: impl Into<PathBuf>) -> Self {
        self.data = Some(Data::Directory(directory.into()));
        self
    }

    /// As [`Self::data`], with a new temporary directory, which is removed when the namespace ends.
    pub fn durable(mut self) -> Self {
        self.data = Some(Data::NewTemporary);
        self
    }

    /// Sets the ports for HTTP, instead of 5300, and for HTTP over TLS. SDKs without a port setting use 80 and 443 for
    /// WebSockets, which the system may reserve for privileged users.
    pub fn ports(mut self, http: u16, https: u16) -> Self {
        self.ports = HttpPorts {
            http,
            https: Some(https),
        };
        self
    }

    /// Runs the namespace on a runtime with virtual time, with this number of keys for the parties of an exploration.
    #[cfg(feature = "explore")]
    pub(crate) fn explored(mut self, background: Arc<Background>, party_keys: usize) -> Self {
        self.background = Some(background);
        self.party_keys = party_keys;
        self
    }

    /// Starts the namespace.
    ///
    /// # Panics
    ///
    /// Panics if the namespace does not start; the panic says why.
    #[track_caller]
    pub fn start(self) -> Action<'static, ServiceBus> {
        Action::new(self.start_now(Location::caller()))
    }

    async fn start_now(
        mut self,
        started_at: &'static Location<'static>,
    ) -> Result<ServiceBus, Error> {
        self.ports.check()?;
        self.data = self.data.map(Data::choose_directory);
        let is_new = self.data.as_ref().is_none_or(Data::is_empty);
        let within = connections::within(self.within)?;
        let mode = self.mode.map_or_else(Mode::from_env, Ok)?;
        let mut config = match &self.topology {
            Some(topology) => topology.resolve()?.config,
            None => Config::default(),
        };
        if mode == Mode::Namespace && self.data.is_some() {
            return Err(Error::start(
                "mode \"namespace\" keeps no data in a directory of the test; leave out `data` and `durable`, or choose another mode",
            ));
        }
        let declared = catalog::declared(&config);
        let listen = match mode {
            Mode::InProcess | Mode::Process => ListenAddress::detect()?,
            // These modes start no emulator at a place.
            Mode::Container | Mode::Namespace => ListenAddress::Random,
        };
        let is_shared = self.shares_emulator(mode, listen, &config);
        let keys = match mode {
            // Such a namespace has only its owner's keys.
            Mode::Namespace => Keys::default(),
            // A container always has another namespace.
            Mode::Container => Keys::declare(&mut config, true),
            Mode::InProcess | Mode::Process => Keys::declare(&mut config, is_shared),
        };
        let keys = keys.with_parties(&mut config, self.party_keys);
        let background = match &self.background {
            Some(background) => Arc::clone(background),
            None => Background::shared().map_err(|error| {
                Error::start(format!("cannot start the harness's runtime: {error}"))
            })?,
        };
        let started = match is_shared && mode != Mode::Container {
            true => {
                self.join(&background, mode, listen, &text_of(&config))
                    .await?
            }
            false => {
                let file_lock = match listen.pending_lock() {
                    Some(waiting) => Some(background.spawn(waiting.take()).await?),
                    None => None,
                };
                let starting = self.start_in(&background, mode, listen, Some(config), is_shared);
                Started {
                    file_lock,
                    ..starting.await?
                }
            }
        };
        let options = Options {
            keys,
            tls: self.tls,
            leak_check: self.leak_check,
            started_at,
            within,
            data: self.data.clone(),
        };
        let client_access = observer::client_access(&started)?;
        let servicebus =
            ServiceBus::new(mode, background, started, client_access, declared, options)?;
        let topology = self.topology.as_ref().filter(|_| is_new);
        servicebus.with_declared_messages(topology).await
    }

    /// Returns whether the namespace shares an emulator. Namespaces share a container, or an emulator at the only address,
    /// whenever possible.
    fn shares_emulator(&self, mode: Mode, listen: ListenAddress, config: &Config) -> bool {
        let can = self.seed.is_none() && self.data.is_none() && !declares_keys(config);
        match (mode, listen) {
            (Mode::Container, _) => can,
            (Mode::InProcess | Mode::Process, ListenAddress::Fixed(_)) => {
                can && config.namespaces.len() == 1
            }
            (Mode::InProcess | Mode::Process, ListenAddress::Random) | (Mode::Namespace, _) => {
                false
            }
        }
    }

    /// Starts an emulator; with `is_shared`, a namespace in a shared container.
    #[cfg_attr(
        not(feature = "container"),
        expect(unused_variables, reason = "only containers are shared here")
    )]
    async fn start_in(
        &self,
        background: &Arc<Background>,
        mode: Mode,
        listen: ListenAddress,
        config: Option<Config>,
        is_shared: bool,
    ) -> Result<Started, Error> {
        match mode {
            #[cfg(not(feature = "in-process"))]
            Mode::InProcess => Err(missing_feature(mode)),
            #[cfg(feature = "in-process")]
            Mode::InProcess => {
                if self.data.is_some() && !cfg!(feature = "durable") {
                    return Err(Error::new(
                        ErrorKind::Mode,
                        None,
                        "mode \"in-process\" keeps data only with the feature `durable` of servicebus-harness, which is off; turn it on in Cargo.toml: servicebus-harness = { …, features = [\"durable\"] }",
                    ));
                }
                let data = self.data.as_ref();
                crate::in_process::start(background, config, self.seed, self.ports, listen, data)
                    .await
            }
            Mode::Process => {
                let options = ProcessOptions {
                    binary: self.binary.clone(),
                    // After the namespace, others may need the emulator, its address or its directory.
                    may_outlive_test: config.is_some()
                        && listen == ListenAddress::Random
                        && self.data.is_none(),
                    data: self.data.clone(),
                    listen,
                    topology: config.as_ref().map(text_of),
                    seed: self.seed,
                    ready_within: self.ready_within.unwrap_or(READY_WITHIN),
                    ports: self.ports,
                };
                process::start(background, options).await
            }
            #[cfg(feature = "container")]
            Mode::Container => {
                let options = ContainerOptions {
                    is_dedicated: !is_shared,
                    topology: text_of(&config.unwrap_or_default()),
                    seed: self.seed,
                    data: self.data.clone(),
                    ready_within: self.ready_within.unwrap_or(CONTAINER_READY_WITHIN),
                    ports: self.ports,
                };
                container::start(background, options).await
            }
            #[cfg(not(feature = "container"))]
            Mode::Container => Err(missing_feature(mode)),
            Mode::Namespace => {
                let options = RemoteOptions {
                    connection_string: self.connection_string.clone(),
                    config: config.unwrap_or_default(),
                    max_real_wait: self.max_real_wait,
                    is_prefixed: self.is_prefixed,
                };
                remote::start(background, options).await
            }
        }
    }

    /// Starts a namespace in a shared emulator.
    async fn join(
        &self,
        background: &Arc<Background>,
        mode: Mode,
        listen: ListenAddress,
        topology: &str,
    ) -> Result<Started, Error> {
        let options = EmulatorOptions {
            mode,
            binary: self.binary.clone(),
            ports: self.ports,
            listen,
        };
        let start = async || self.start_in(background, mode, listen, None, false).await;
        shared::join(background, options, topology, start).await
    }
}

/// The feature of a mode has the mode's name.
#[cfg(not(all(feature = "container", feature = "in-process")))]
fn missing_feature(mode: Mode) -> Error {
    let sentence = format!(
        "mode \"{mode}\" needs the feature `{mode}` of servicebus-harness, which is off; turn it on in Cargo.toml: servicebus-harness = {{ …, features = [\"{mode}\"] }}"
    );
    Error::new(ErrorKind::Mode, None, sentence)
}

/// Returns whether a namespace declares other keys than the default. The name of a key is unique within an emulator.
fn declares_keys(config: &Config) -> bool {
    let usual = [Key::well_known()];
    let mut namespaces = config.namespaces.iter();
    namespaces.any(|namespace| namespace.keys != usual)
}

impl From<Topology> for Builder {
    fn from(topology: Topology) -> Self {
        Self::default().topology(topology)
    }
}

impl From<Option<Topology>> for Builder {
    fn from(topology: Option<Topology>) -> Self {
        topology.map_or_else(Self::default, Self::from)
    }
}
