//! A container that stores its namespace in a directory of this machine and can be restarted with it.

use std::{fs, path::Path, sync::Arc, time::Duration};

use servicebus_config::ControlToken;
use tokio::sync::Mutex;

use super::{
    ContainerOptions,
    engine::{DATA, Volume, kill, reason},
    forward::{self, Forwarder},
    shared::{LeasedContainer, SharedPortMapping, dedicated_id},
    with_endpoints,
};
use crate::{
    background::Background,
    control::Control,
    data::Data,
    error::Error,
    liveness::{EXIT_TIMEOUT, Liveness, Output, wait_until},
    running::{RestartFuture, Running, Started, StopFuture, Termination},
};

/// A container of one namespace; `None` during a restart.
#[derive(Debug)]
struct DurableContainer {
    shared: Arc<Mutex<Option<LeasedContainer>>>,
    _forwarder: Forwarder,
    token: Option<ControlToken>,
    ports: Arc<SharedPortMapping>,
    output: Output,
    background: Arc<Background>,
    launch: Launch,
}

/// How to start the container, the first time and again.
#[derive(Debug, Clone)]
struct Launch {
    id: String,
    arguments: Vec<String>,
    volume: Volume,
    within: Duration,
}

/// Starts a container with the directory as a volume, and forwards an address to it.
pub(super) async fn start(
    background: &Arc<Background>,
    options: ContainerOptions,
    data: &Data,
) -> Result<Started, Error> {
    let launch = Launch::new(&options, data.directory())?;
    let (own, starting) = (Arc::clone(background), launch.clone());
    let reaching = async move {
        let shared = starting.start(&own).await?;
        let opened = forward::open(&own, options.ports, &shared.ports, shared.network);
        let (endpoints, forwarder) = opened.await?;
        let liveness = Liveness::Container(shared.output.clone());
        let control = Control::new(endpoints.http, "", liveness).with_token(shared.token.clone());
        let first = control.first_namespace().await;
        let first = first.map_err(|error| Error::start(error.to_string()))?;
        Ok::<_, Error>((shared, endpoints, forwarder, first))
    };
    let (shared, endpoints, forwarder, first) = background.spawn(reaching).await?;
    Ok(Started {
        endpoints,
        namespaces: vec![with_endpoints(endpoints, &first.into())],
        ca_file: None,
        file_lock: None,
        running: Box::new(DurableContainer {
            token: shared.token.clone(),
            ports: Arc::clone(&shared.ports),
            output: shared.output.clone(),
            shared: Arc::new(Mutex::new(Some(shared))),
            _forwarder: forwarder,
            background: Arc::clone(background),
            launch,
        }),
    })
}

impl Launch {
    fn new(options: &ContainerOptions, directory: &Path) -> Result<Self, Error> {
        let unusable = |error| {
            let directory = directory.display();
            Error::start(format!(
                "cannot use the data directory {directory}: {error}"
            ))
        };
        // Otherwise the engine creates it, owned by the engine's user.
        fs::create_dir_all(directory).map_err(unusable)?;
        let directory = fs::canonicalize(directory).map_err(unusable)?;
        let data = ["--data", DATA, "--sync", "process"].map(str::to_owned);
        Ok(Self {
            id: dedicated_id(),
            arguments: options.seed().into_iter().chain(data).collect(),
            volume: Volume {
                owner: owner(&directory),
                directory: directory.display().to_string(),
                topology: options.topology.clone(),
            },
            within: options.ready_within,
        })
    }

    async fn start(&self, background: &Background) -> Result<LeasedContainer, Error> {
        let (id, arguments, volume) = (&self.id, &self.arguments, Some(&self.volume));
        LeasedContainer::start(id, arguments, volume, background, self.within).await
    }
}

/// Returns the owner of a directory in the form that the engine takes.
#[cfg(unix)]
fn owner(directory: &Path) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let found = fs::metadata(directory).ok()?;
    Some(format!("{}:{}", found.uid(), found.gid()))
}

#[cfg(not(unix))]
fn owner(_: &Path) -> Option<String> {
    None
}

async fn end(shared: &LeasedContainer, termination: Termination) -> Result<(), Error> {
    match termination {
        Termination::Stop => shared.container.stop().await.map_err(|error| {
            let reason = reason(&error);
            Error::start(format!("the container does not stop: {reason}"))
        })?,
        Termination::Crash => kill(&shared.container).await?,
    }
    wait_until(EXIT_TIMEOUT, || shared.output.is_complete()).await;
    Ok(())
}

impl Running for DurableContainer {
    fn liveness(&self) -> Liveness {
        Liveness::Container(self.output.clone())
    }

    fn control_token(&self) -> Option<ControlToken> {
        self.token.clone()
    }

    fn restart(&self, termination: Termination) -> RestartFuture {
        let (shared, launch) = (Arc::clone(&self.shared), self.launch.clone());
        let (ports, output) = (Arc::clone(&self.ports), self.output.clone());
        let background = Arc::clone(&self.background);
        Box::pin(async move {
            let mut shared = shared.lock().await;
            if let Some(running) = shared.take() {
                end(&running, termination).await?;
            }
            let started = launch.start(&background).await?;
            *ports.lock() = started.ports.lock().clone();
            output.continue_with(&started.output);
            *shared = Some(started);
            Ok(())
        })
    }

    fn stop(self: Box<Self>) -> StopFuture {
        Box::pin(async move {
            if let Some(running) = self.shared.lock().await.take() {
                // A container that does not stop ends by itself once its lease is dropped.
                let _ = end(&running, Termination::Stop).await;
            }
        })
    }
}
