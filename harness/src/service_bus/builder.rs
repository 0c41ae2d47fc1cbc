//! What a namespace is started with.

use std::{path::PathBuf, sync::Arc, time::Duration};

use servicebus_config::{auth::Key, config::Config};

use super::{Options, ServiceBus};
#[cfg(feature = "container")]
use crate::container::{self, ContainerOptions};
use crate::{
    action::Action,
    address::Place,
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
    shared::{self, Terms},
    topology::{Topology, text_of},
};

/// How long a child may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How long a container may take, which may have to wait for others that come and go.
#[cfg(feature = "container")]
const CONTAINER_READY_WITHIN: Duration = Duration::from_secs(60);

/// Describes a namespace before it starts.
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
    /// Where it runs, unless on the runtime of the process.
    background: Option<Arc<Background>>,
    /// How many keys it has for clients that are told apart by them.
    party_keys: usize,
}

impl Builder {
    /// Sets what the namespace holds; without it there is one queue, `queue.1`.
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = Some(topology);
        self
    }

    /// Fixes the mode, against the environment.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Names the emulator binary of mode [`Mode::Process`].
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binary = Some(path.into());
        self
    }

    /// Sets how long the emulator of [`Mode::Process`] or [`Mode::Container`] may take to become ready; 30 s and 60 s
    /// unless set.
    pub fn ready_within(mut self, within: Duration) -> Self {
        self.ready_within = Some(within);
        self
    }

    /// Makes lock tokens and other choices of the emulator repeatable.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// Makes the connection strings those of the service, without `UseDevelopmentEmulator`: clients come over TLS and
    /// must trust [`ServiceBus::ca_certificate_pem`].
    pub fn tls(mut self, tls: bool) -> Self {
        self.tls = tls;
        self
    }

    /// Fails a test that ends, by [`ServiceBus::stop`] or by a drop, with messages that are locked or
    /// unread. What is on its way is waited for, up to 5 s. Dead letters and what waits for its time do not count.
    pub fn leak_check(mut self, leak_check: bool) -> Self {
        self.leak_check = leak_check;
        self
    }

    /// Sets how long the test waits, in real time, for what it expects: every assertion, every receive, and
    /// [`ServiceBus::wait_idle`]. Five seconds unless set here or, in seconds, by
    /// [`WITHIN_VARIABLE`](crate::WITHIN_VARIABLE); `within` of an assertion is for that one alone.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = Some(within);
        self
    }

    /// Names the namespace of mode [`Mode::Namespace`] by its connection string, against the environment.
    pub fn connection_string(mut self, connection_string: impl Into<String>) -> Self {
        self.connection_string = Some(Secret::from(connection_string.into()));
        self
    }

    /// Sets how long an advance of the clock may really wait in mode [`Mode::Namespace`], where no test controls the time; not at
    /// all unless set here or, in seconds, by [`MAX_REAL_WAIT_VARIABLE`](crate::MAX_REAL_WAIT_VARIABLE). Elsewhere an
    /// advance never waits.
    pub fn max_real_wait(mut self, longest: Duration) -> Self {
        self.max_real_wait = Some(longest);
        self
    }

    /// Lets this `ServiceBus` work in a namespace beside others in mode [`Mode::Namespace`], of this machine and of others:
    /// its entities have names that begin with `test-` and a number of its own. The test's clients know them by the names of
    /// the topology, and tell the code under test those that they have: `servicebus.queue("orders").name()`. In the other modes
    /// each namespace is a test's own, and nothing is renamed.
    pub fn prefixed(mut self) -> Self {
        self.is_prefixed = true;
        self
    }

    /// Keeps what the namespace holds in a directory, so that [`ServiceBus::restart`] and [`ServiceBus::crash`] go on with it, and so
    /// does the next `ServiceBus` with the same directory; one at a time has it. It is made if it is not there, and stays.
    pub fn data(mut self, directory: impl Into<PathBuf>) -> Self {
        self.data = Some(Data::In(directory.into()));
        self
    }

    /// The same in a directory of its own among the temporary files of the system, which is removed when the namespace ends.
    pub fn durable(mut self) -> Self {
        self.data = Some(Data::Fresh);
        self
    }

    /// Listens on these ports for HTTP, instead of 5300, and for HTTP over TLS. SDKs that take no port look for
    /// WebSockets at 80 and 443, which the system may keep for privileged users.
    pub fn ports(mut self, http: u16, https: u16) -> Self {
        self.ports = HttpPorts {
            http,
            https: Some(https),
        };
        self
    }

    /// Runs the namespace on a runtime that is driven, with so many keys for the parties of an exploration.
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
    /// When it does not start; the text says why.
    #[track_caller]
    pub fn start(self) -> Action<'static, ServiceBus> {
        Action::new(self.start_now())
    }

    async fn start_now(mut self) -> Result<ServiceBus, Error> {
        self.data = self.data.map(Data::made);
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
        let place = match mode {
            Mode::InProcess | Mode::Process => Place::of_system()?,
            // They are not places where an emulator is started.
            Mode::Container | Mode::Namespace => Place::Anywhere,
        };
        let is_shared = self.shares(mode, place, &config);
        let keys = match mode {
            // Its keys are its owner's.
            Mode::Namespace => Keys::default(),
            // In a container there is always another one.
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
                self.join(&background, mode, place, &text_of(&config))
                    .await?
            }
            false => {
                let file_lock = match place.waiting() {
                    Some(waiting) => Some(background.spawn(waiting.take()).await?),
                    None => None,
                };
                let starting = self.start_in(&background, mode, place, Some(config), is_shared);
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
            within,
            data: self.data.clone(),
        };
        let entrance = observer::entrance(&started)?;
        let servicebus = ServiceBus::new(mode, background, started, entrance, declared, options)?;
        if let Some(topology) = &self.topology {
            servicebus.put_messages(topology).await?;
        }
        Ok(servicebus)
    }

    /// Whether the namespace is to have but a part of an emulator. A container is shared always, where that can be, and so is
    /// an emulator at the only address.
    fn shares(&self, mode: Mode, place: Place, config: &Config) -> bool {
        let can = self.seed.is_none() && self.data.is_none() && !declares_keys(config);
        match (mode, place) {
            (Mode::Container, _) => can,
            (Mode::InProcess | Mode::Process, Place::Only(_)) => {
                can && config.namespaces.len() == 1
            }
            (Mode::InProcess | Mode::Process, Place::Anywhere) | (Mode::Namespace, _) => false,
        }
    }

    /// Starts an emulator, or a part of a container if that `is_shared`.
    #[cfg_attr(
        not(feature = "container"),
        expect(unused_variables, reason = "only containers are shared here")
    )]
    async fn start_in(
        &self,
        background: &Arc<Background>,
        mode: Mode,
        place: Place,
        config: Option<Config>,
        is_shared: bool,
    ) -> Result<Started, Error> {
        match mode {
            #[cfg(not(feature = "in-process"))]
            Mode::InProcess => Err(not_built(mode)),
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
                crate::in_process::start(background, config, self.seed, self.ports, place, data)
                    .await
            }
            Mode::Process => {
                let options = ProcessOptions {
                    binary: self.binary.clone(),
                    // Others may need it after the namespace, or its address, or its directory.
                    may_stay: config.is_some() && place == Place::Anywhere && self.data.is_none(),
                    data: self.data.clone(),
                    place,
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
                    is_alone: !is_shared,
                    topology: text_of(&config.unwrap_or_default()),
                    seed: self.seed,
                    data: self.data.clone(),
                    ready_within: self.ready_within.unwrap_or(CONTAINER_READY_WITHIN),
                    ports: self.ports,
                };
                container::start(background, options).await
            }
            #[cfg(not(feature = "container"))]
            Mode::Container => Err(not_built(mode)),
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

    /// Takes a part of an emulator that is shared.
    async fn join(
        &self,
        background: &Arc<Background>,
        mode: Mode,
        place: Place,
        topology: &str,
    ) -> Result<Started, Error> {
        let terms = Terms {
            mode,
            binary: self.binary.clone(),
            ports: self.ports,
            place,
        };
        let start = async || self.start_in(background, mode, place, None, false).await;
        shared::join(background, terms, topology, start).await
    }
}

/// A mode has the name of the feature that it needs.
#[cfg(not(all(feature = "container", feature = "in-process")))]
fn not_built(mode: Mode) -> Error {
    let sentence = format!(
        "mode \"{mode}\" needs the feature `{mode}` of servicebus-harness, which is off; turn it on in Cargo.toml: servicebus-harness = {{ …, features = [\"{mode}\"] }}"
    );
    Error::new(ErrorKind::Mode, None, sentence)
}

/// Whether clients come with other keys than the one that everybody has. Within one emulator the name of a key belongs to
/// one namespace.
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
