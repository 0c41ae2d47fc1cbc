//! The emulator as a container.
//!
//! One container serves a test run; each bus has a namespace of its own in it, and a loopback address of its own from
//! which it is reached. What is shared ends by itself when nobody needs it any longer ([`shared`]).

mod engine;
mod error;
mod forward;
mod hold;
mod network;
mod run;
mod shared;

use std::{sync::Arc, time::Duration};

use crate::{
    background::Background,
    error::StartError,
    liveness::Liveness,
    running::{Running, Started, WebPorts},
};

pub use error::ContainerError;

use forward::Forwards;
use shared::Shared;

/// What a bus of a container is started with.
#[derive(Debug, Clone)]
pub(crate) struct ContainerOptions {
    pub(crate) topology: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) ready_within: Duration,
    pub(crate) ports: WebPorts,
}

/// A bus in a container; dropping it cuts its connections and lets the container go.
#[derive(Debug)]
pub(crate) struct ContainerBus {
    _forwards: Forwards,
    shared: Arc<Shared>,
}

/// Finds or starts the container of the run, and opens a way to it.
pub(crate) async fn start(
    background: &Arc<Background>,
    options: ContainerOptions,
) -> Result<Started, StartError> {
    let own = Arc::clone(background);
    // The engine and every deadline are of real time, also when the test's runtime is paused.
    background.spawn(open(own, options)).await
}

async fn open(
    background: Arc<Background>,
    options: ContainerOptions,
) -> Result<Started, StartError> {
    let within = options.ready_within;
    let shared = match options.seed {
        Some(seed) => {
            let arguments = ["--seed".to_owned(), seed.to_string()];
            Shared::alone(&arguments, &background, within).await?
        }
        None => Shared::of_the_run(&background, within).await?,
    };
    let (endpoints, forwards) =
        forward::open(&background, options.ports, &shared.mapped, shared.network).await?;
    let bus = ContainerBus {
        _forwards: forwards,
        shared,
    };
    Ok(Started {
        endpoints,
        namespaces: vec![namespace(endpoints)],
        running: Running::Container(bus),
    })
}

fn namespace(endpoints: crate::running::Endpoints) -> crate::running::Namespace {
    use servicebus_emulator::auth::{ConnectionString, Key};
    let string = |port| {
        ConnectionString::for_emulator(endpoints.amqp.ip().to_string(), port, &Key::well_known())
            .to_string()
    };
    crate::running::Namespace {
        name: "sbemulatorns".into(),
        connection_string: string(None),
        admin_connection_string: string(Some(endpoints.http.port())),
    }
}

impl ContainerBus {
    pub(crate) fn liveness(&self) -> Liveness {
        Liveness::Container(self.shared.output.clone())
    }
}
