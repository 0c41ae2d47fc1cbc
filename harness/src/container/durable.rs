//! A container that stores its namespace in a directory of this machine and can be restarted with it.

use std::{fs, path::Path, sync::Arc, time::Duration};

use servicebus_config::ControlToken;
use tokio::sync::Mutex;

use super::{
    ContainerOptions,
    engine::{DATA, Volume, kill, reason},
    forward::{self, Forwards},
    reached_at,
    shared::{MappedPorts, Shared, alone},
};
use crate::{
    background::Background,
    control::Control,
    data::Data,
    error::Error,
    liveness::{DYING_WITHIN, Liveness, Output, until},
    running::{Ending, Restarted, Running, Started, Stopped},
};

/// A container of one namespace; `None` during a restart.
#[derive(Debug)]
struct DurableContainer {
    shared: Arc<Mutex<Option<Shared>>>,
    _forwards: Forwards,
    token: Option<ControlToken>,
    mapped: Arc<MappedPorts>,
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
        let opened = forward::open(&own, options.ports, &shared.mapped, shared.network);
        let (endpoints, forwards) = opened.await?;
        let liveness = Liveness::Container(shared.output.clone());
        let control = Control::new(endpoints.http, "", liveness).showing(shared.token.clone());
        let first = control.first_namespace().await;
        let first = first.map_err(|error| Error::start(error.to_string()))?;
        Ok::<_, Error>((shared, endpoints, forwards, first))
    };
    let (shared, endpoints, forwards, first) = background.spawn(reaching).await?;
    Ok(Started {
        endpoints,
        namespaces: vec![reached_at(endpoints, &first.into())],
        ca_file: None,
        file_lock: None,
        running: Box::new(DurableContainer {
            token: shared.token.clone(),
            mapped: Arc::clone(&shared.mapped),
            output: shared.output.clone(),
            shared: Arc::new(Mutex::new(Some(shared))),
            _forwards: forwards,
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
            id: alone(),
            arguments: options.seed().into_iter().chain(data).collect(),
            volume: Volume {
                owner: owner(&directory),
                directory: directory.display().to_string(),
                topology: options.topology.clone(),
            },
            within: options.ready_within,
        })
    }

    async fn start(&self, background: &Background) -> Result<Shared, Error> {
        let (id, arguments, volume) = (&self.id, &self.arguments, Some(&self.volume));
        Shared::start(id, arguments, volume, background, self.within).await
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

async fn end(shared: &Shared, ending: Ending) -> Result<(), Error> {
    match ending {
        Ending::Stop => shared.container.stop().await.map_err(|error| {
            let reason = reason(&error);
            Error::start(format!("the container does not stop: {reason}"))
        })?,
        Ending::Crash => kill(&shared.container).await?,
    }
    until(DYING_WITHIN, || shared.output.is_complete()).await;
    Ok(())
}

impl Running for DurableContainer {
    fn liveness(&self) -> Liveness {
        Liveness::Container(self.output.clone())
    }

    fn control_token(&self) -> Option<ControlToken> {
        self.token.clone()
    }

    fn restart(&self, ending: Ending) -> Restarted {
        let (shared, launch) = (Arc::clone(&self.shared), self.launch.clone());
        let (mapped, output) = (Arc::clone(&self.mapped), self.output.clone());
        let background = Arc::clone(&self.background);
        Box::pin(async move {
            let mut shared = shared.lock().await;
            if let Some(running) = shared.take() {
                end(&running, ending).await?;
            }
            let started = launch.start(&background).await?;
            *mapped.lock() = started.mapped.lock().clone();
            output.follow(&started.output);
            *shared = Some(started);
            Ok(())
        })
    }

    fn stop(self: Box<Self>) -> Stopped {
        Box::pin(async move {
            if let Some(running) = self.shared.lock().await.take() {
                // A container that does not stop ends by itself once its lease is dropped.
                let _ = end(&running, Ending::Stop).await;
            }
        })
    }
}
