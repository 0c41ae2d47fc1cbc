//! Shares one emulator between several namespaces of a process.
//!
//! The process has weak references: the emulator ends with the last `ServiceBus` that uses it. Requests for different
//! emulators (another mode, binary or ports) do not share. At the only address of a system one emulator runs at a time, in
//! this process or another, and the next waits for its file lock.

use std::{
    net::SocketAddr,
    path::PathBuf,
    sync::{Arc, Weak},
    time::Duration,
};

use servicebus_config::ControlToken;
use servicebus_control_api::NamespaceInfo;
use tokio::sync::Mutex;

use crate::{
    address::{self, ListenAddress},
    background::Background,
    control::Control,
    endpoints::{HttpPorts, Namespace},
    error::Error,
    file_lock::PAUSE,
    liveness::Liveness,
    mode::Mode,
    running::{OwnEmulator, Running, Started, StopFuture},
};

static SHARED: Mutex<Vec<(EmulatorOptions, Weak<Started>)>> = Mutex::const_new(Vec::new());

/// The properties of a shared emulator.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct EmulatorOptions {
    pub(crate) mode: Mode,
    pub(crate) binary: Option<PathBuf>,
    pub(crate) ports: HttpPorts,
    pub(crate) listen: ListenAddress,
}

/// A namespace in a shared emulator.
#[derive(Debug)]
pub(crate) struct SharedNamespace {
    /// Dropped first, because its removal needs the emulator.
    namespace: VirtualNamespace,
    emulator: Arc<Started>,
}

/// Creates a namespace in the emulator with these options, which `start` starts if none is in use.
pub(crate) async fn join(
    background: &Arc<Background>,
    options: EmulatorOptions,
    topology: &str,
    start: impl AsyncFnOnce() -> Result<Started, Error>,
) -> Result<Started, Error> {
    let emulator = find_or_start(background, options, start).await?;
    let access = match emulator.running.own_emulator() {
        Some(own) => NamespaceAccess::in_process(own),
        None => {
            let liveness = emulator.running.liveness();
            NamespaceAccess::over_http(emulator.endpoints.http, liveness, None)
        }
    };
    let namespace = create_namespace(background, access, topology).await?;
    Ok(Started {
        endpoints: emulator.endpoints,
        namespaces: vec![namespace.info().clone()],
        ca_file: emulator.ca_file.clone(),
        file_lock: None,
        running: Box::new(SharedNamespace {
            namespace,
            emulator,
        }),
    })
}

async fn find_or_start(
    background: &Background,
    options: EmulatorOptions,
    start: impl AsyncFnOnce() -> Result<Started, Error>,
) -> Result<Arc<Started>, Error> {
    let mut pending_lock = options.listen.pending_lock();
    loop {
        // Locked during a start, so that a concurrent start uses the same emulator. Not locked while waiting: the test that
        // holds the file lock may start another `ServiceBus` before it releases the lock.
        let mut shared = SHARED.lock().await;
        shared.retain(|(_, emulator)| emulator.strong_count() > 0);
        let mut known = shared.iter().filter(|(known, _)| *known == options);
        if let Some(emulator) = known.find_map(|(_, emulator)| emulator.upgrade()) {
            return Ok(emulator);
        }
        let file_lock = match &mut pending_lock {
            Some(pending_lock) => pending_lock.try_take()?,
            None => None,
        };
        if file_lock.is_some() || pending_lock.is_none() {
            let started = start().await?;
            let emulator = Arc::new(Started {
                file_lock,
                ..started
            });
            shared.push((options, Arc::downgrade(&emulator)));
            return Ok(emulator);
        }
        drop(shared);
        // Real time, also when the test's runtime is paused.
        background.spawn(tokio::time::sleep(PAUSE)).await;
    }
}

impl Running for SharedNamespace {
    fn liveness(&self) -> Liveness {
        self.emulator.running.liveness()
    }

    fn own_emulator(&self) -> Option<Arc<dyn OwnEmulator>> {
        self.emulator.running.own_emulator()
    }

    /// Removes the namespace and waits for that, and for the end of the emulator if no other namespace uses it.
    fn stop(self: Box<Self>) -> StopFuture {
        Box::pin(async move {
            self.namespace.remove().await;
            if let Some(last) = Arc::into_inner(self.emulator) {
                last.running.stop().await;
            }
        })
    }
}

/// How long a drop waits for the removal. Without the wait a process could end before and leave the namespace behind.
const REMOVED_WITHIN: Duration = Duration::from_secs(5);

/// The prefix of the names of such namespaces.
const PREFIX: &str = "bus-";

/// How the harness creates and removes a namespace: in this process without the connections that HTTP needs.
#[derive(Debug, Clone)]
pub(crate) enum NamespaceAccess {
    InProcess {
        emulator: Arc<dyn OwnEmulator>,
        name: String,
    },
    OverHttp(Arc<Control>),
}

/// A namespace that is removed on drop.
#[derive(Debug)]
pub(crate) struct VirtualNamespace {
    namespace: Namespace,
    access: NamespaceAccess,
    background: Arc<Background>,
    is_removed: bool,
}

/// Creates a namespace under an unused name. `topology` is JSON in the official emulator's format that declares one
/// namespace.
pub(crate) async fn create_namespace(
    background: &Arc<Background>,
    access: NamespaceAccess,
    topology: &str,
) -> Result<VirtualNamespace, Error> {
    let create = access.clone().create(topology.to_owned());
    let namespace = background.spawn(create).await.map_err(|error| {
        Error::start(format!(
            "cannot create a namespace in the shared emulator: {error}"
        ))
    })?;
    Ok(VirtualNamespace {
        namespace: namespace.into(),
        access,
        background: Arc::clone(background),
        is_removed: false,
    })
}

/// Returns whether this module generated the name of a namespace.
pub(crate) fn is_generated(name: &str) -> bool {
    name.starts_with(PREFIX)
}

impl NamespaceAccess {
    pub(crate) fn in_process(emulator: Arc<dyn OwnEmulator>) -> Self {
        let name = generated_name();
        Self::InProcess { emulator, name }
    }

    /// `address` is that of the emulator's control API, and `token` its control token.
    pub(crate) fn over_http(
        address: SocketAddr,
        liveness: Liveness,
        token: Option<ControlToken>,
    ) -> Self {
        let control = Control::new(address, &generated_name(), liveness);
        Self::OverHttp(Arc::new(control.with_token(token)))
    }

    async fn create(self, topology: String) -> Result<NamespaceInfo, String> {
        match self {
            Self::InProcess { emulator, name } => emulator.create_namespace(name, topology).await,
            Self::OverHttp(control) => {
                let created = control.create_namespace(topology).await;
                created.map_err(|error| error.to_string())
            }
        }
    }

    /// If the emulator has ended, there is nothing to remove.
    async fn remove(self) {
        match self {
            Self::InProcess { emulator, name } => emulator.remove_namespace(name).await,
            Self::OverHttp(control) => drop(control.remove_namespace().await),
        }
    }
}

fn generated_name() -> String {
    format!("{PREFIX}{:016x}", address::random_number())
}

impl VirtualNamespace {
    /// Returns its name and connection strings.
    pub(crate) fn info(&self) -> &Namespace {
        &self.namespace
    }

    /// Removes it and waits for that; an emulator that has ended has nothing to remove.
    pub(crate) async fn remove(mut self) {
        self.is_removed = true;
        let remove = self.access.clone().remove();
        self.background.spawn(remove).await;
    }
}

impl Drop for VirtualNamespace {
    fn drop(&mut self) {
        if self.is_removed {
            return;
        }
        let remove = self.access.clone().remove();
        let _ = self.background.wait_for(REMOVED_WITHIN, remove);
    }
}
