//! What a bus is started with.

use std::{panic::Location, path::PathBuf, time::Duration};

use servicebus_emulator::config::Config;

use super::{ServiceBus, or_panic};
use crate::{
    background::Background,
    catalog::Catalog,
    error::StartError,
    in_process,
    mode::{Mode, ModeError},
    process::{self, ProcessOptions},
    remote::{self, RemoteOptions},
    running::WebPorts,
    topology::Topology,
};

/// How long a child may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(10);

/// Describes a bus before it starts.
#[derive(Debug, Clone, Default)]
#[must_use = "a builder starts nothing before `start`"]
pub struct Builder {
    topology: Option<Topology>,
    mode: Option<Mode>,
    binary: Option<PathBuf>,
    ready_within: Option<Duration>,
    seed: Option<u64>,
    ports: WebPorts,
    use_tls: bool,
    connection_string: Option<String>,
    longest_wait: Option<Duration>,
}

impl Builder {
    /// Sets what the bus holds; without it there is one queue, `queue.1`.
    pub fn topology(mut self, topology: Topology) -> Self {
        self.topology = Some(topology);
        self
    }

    /// Fixes the mode, whatever the environment says.
    pub fn mode(mut self, mode: Mode) -> Self {
        self.mode = Some(mode);
        self
    }

    /// Names the emulator binary of mode [`Mode::Process`].
    pub fn binary(mut self, path: impl Into<PathBuf>) -> Self {
        self.binary = Some(path.into());
        self
    }

    /// Sets how long the process of mode [`Mode::Process`] may take to become ready; 10 s unless set.
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
    pub fn use_tls(mut self, use_tls: bool) -> Self {
        self.use_tls = use_tls;
        self
    }

    /// Names the namespace of mode [`Mode::Namespace`] by its connection string, whatever the environment says.
    pub fn connection_string(mut self, connection_string: impl Into<String>) -> Self {
        self.connection_string = Some(connection_string.into());
        self
    }

    /// Sets how long an advance of the clock may really wait in mode [`Mode::Namespace`], where time is nobody's; not at
    /// all unless set here or, in seconds, by [`LONGEST_WAIT_VARIABLE`](crate::LONGEST_WAIT_VARIABLE). Elsewhere an
    /// advance never waits.
    pub fn longest_wait(mut self, longest: Duration) -> Self {
        self.longest_wait = Some(longest);
        self
    }

    /// Listens on these ports for HTTP, instead of 5300, and for HTTP over TLS. SDKs that take no port look for
    /// WebSockets at 80 and 443, which the system may keep for privileged users.
    pub fn web_ports(mut self, http: u16, https: u16) -> Self {
        self.ports = WebPorts {
            http,
            https: Some(https),
        };
        self
    }

    /// Starts the bus.
    pub async fn start(self) -> Result<ServiceBus, StartError> {
        let mode = self.mode.map_or_else(Mode::from_env, Ok)?;
        let resolved = self
            .topology
            .map(|topology| topology.resolve())
            .transpose()?;
        let declared = match &resolved {
            Some(resolved) => Catalog::declared(&resolved.config),
            None => Catalog::declared(&Config::default()),
        };
        let background = Background::shared().map_err(StartError::Runtime)?;
        let started = match mode {
            Mode::InProcess => {
                let config = resolved.map(|resolved| resolved.config);
                in_process::start(&background, config, self.seed, self.ports).await?
            }
            Mode::Process => {
                let options = ProcessOptions {
                    binary: self.binary,
                    topology: resolved.map(|resolved| resolved.text),
                    seed: self.seed,
                    ready_within: self.ready_within.unwrap_or(READY_WITHIN),
                    ports: self.ports,
                };
                process::start(&background, options).await?
            }
            Mode::Namespace => {
                let options = RemoteOptions {
                    connection_string: self.connection_string,
                    config: resolved.map_or_else(Config::default, |resolved| resolved.config),
                    longest_wait: self.longest_wait,
                };
                remote::start(&background, options).await?
            }
            Mode::Container => return Err(ModeError::NotBuilt { mode }.into()),
        };
        ServiceBus::new(mode, background, started, declared, self.use_tls)
    }

    pub(crate) async fn start_or_panic(self, at: &Location<'_>) -> ServiceBus {
        or_panic(at, self.start()).await
    }
}
