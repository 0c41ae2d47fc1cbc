//! What a bus is started with.

use std::{panic::Location, path::PathBuf, time::Duration};

use servicebus_emulator::config::Config;

use super::{ServiceBus, or_panic};
#[cfg(feature = "container")]
use crate::container::{self, ContainerOptions};
use crate::{
    background::Background,
    catalog::Catalog,
    error::StartError,
    in_process,
    mode::{Mode, ModeError},
    process::{self, ProcessOptions},
    running::WebPorts,
    topology::Topology,
};

/// How long a child may take to become ready.
const READY_WITHIN: Duration = Duration::from_secs(10);
/// How long a container may take, which may have to wait for others that come and go.
#[cfg(feature = "container")]
const CONTAINER_READY_WITHIN: Duration = Duration::from_secs(60);

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

    /// Sets how long the emulator of [`Mode::Process`] or [`Mode::Container`] may take to become ready; 10 s and 60 s
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
    pub fn use_tls(mut self, use_tls: bool) -> Self {
        self.use_tls = use_tls;
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
            #[cfg(feature = "container")]
            Mode::Container => {
                let options = ContainerOptions {
                    topology: resolved.map(|resolved| resolved.text),
                    seed: self.seed,
                    ready_within: self.ready_within.unwrap_or(CONTAINER_READY_WITHIN),
                    ports: self.ports,
                };
                container::start(&background, options).await?
            }
            #[cfg(not(feature = "container"))]
            Mode::Container => return Err(ModeError::FeatureOff { mode }.into()),
            Mode::Namespace => return Err(ModeError::NotBuilt { mode }.into()),
        };
        ServiceBus::new(mode, background, started, declared, self.use_tls)
    }

    pub(crate) async fn start_or_panic(self, at: &Location<'_>) -> ServiceBus {
        or_panic(at, self.start()).await
    }
}
