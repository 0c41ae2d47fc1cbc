//! Runs the emulator as a container.
//!
//! The `ServiceBus` values of a test run share one container; each has a namespace of its own in it, and a loopback address
//! of its own, at which a forwarder listens. A shared container ends by itself when it is no longer in use ([`shared`]).

mod durable;
mod engine;
mod forward;
mod network;
mod shared;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use servicebus_config::{AMQP_PORT, ControlToken};

use crate::{
    background::Background,
    data::Data,
    endpoints::{Endpoints, HttpPorts, Namespace, changed},
    error::Error,
    liveness::Liveness,
    running::{Running, Started, Stopped},
    shared::{VirtualNamespace, create_namespace},
};

use forward::Forwards;
use shared::Shared;

/// The start options of a namespace in a container.
#[derive(Debug, Clone)]
pub(crate) struct ContainerOptions {
    /// Declares one namespace.
    pub(crate) topology: String,
    pub(crate) seed: Option<u64>,
    /// Whether the namespace cannot share a container.
    pub(crate) is_alone: bool,
    pub(crate) ready_within: Duration,
    pub(crate) ports: HttpPorts,
    pub(crate) data: Option<Data>,
}

impl ContainerOptions {
    /// Returns the arguments that set the seed.
    fn seed(&self) -> Vec<String> {
        let seed = self
            .seed
            .map(|seed| ["--seed".to_owned(), seed.to_string()]);
        seed.into_iter().flatten().collect()
    }
}

/// A namespace in a container. Dropping it removes the namespace, closes its connections and releases the container.
#[derive(Debug)]
struct ContainerBus {
    /// Dropped first: its removal uses the other fields.
    namespace: VirtualNamespace,
    _forwards: Forwards,
    shared: Arc<Shared>,
}

/// Finds or starts a container, forwards an address to it, and creates a namespace in it.
pub(crate) async fn start(
    background: &Arc<Background>,
    options: ContainerOptions,
) -> Result<Started, Error> {
    if let Some(data) = options.data.clone() {
        return durable::start(background, options, &data).await;
    }
    let topology = options.topology.clone();
    let own = Arc::clone(background);
    let reaching = async move { reach(&own, &options).await };
    // The engine and all deadlines need real time, also when the test's runtime is paused.
    let (shared, endpoints, forwards) = background.spawn(reaching).await?;
    let liveness = Liveness::Container(shared.output.clone());
    let token = shared.token.clone();
    let created = create_namespace(background, endpoints.http, liveness, token, &topology);
    let namespace = created.await?;
    Ok(Started {
        endpoints,
        namespaces: vec![reached_at(endpoints, namespace.info())],
        // The file is inside the container; `ca_certificate_pem` fetches the certificate.
        ca_file: None,
        file_lock: None,
        running: Box::new(ContainerBus {
            namespace,
            _forwards: forwards,
            shared,
        }),
    })
}

async fn reach(
    background: &Background,
    options: &ContainerOptions,
) -> Result<(Arc<Shared>, Endpoints, Forwards), Error> {
    let within = options.ready_within;
    let shared = match options.is_alone {
        true => {
            let (id, seed) = (shared::alone(), options.seed());
            Arc::new(Shared::start(&id, &seed, None, background, within).await?)
        }
        false => Shared::of_the_run(background, within).await?,
    };
    let (endpoints, forwards) =
        forward::open(background, options.ports, &shared.mapped, shared.network).await?;
    Ok((shared, endpoints, forwards))
}

/// Returns a namespace whose connection strings name the forwarder, which the emulator does not know.
fn reached_at(endpoints: Endpoints, namespace: &Namespace) -> Namespace {
    let at = |text: &str, endpoint: SocketAddr, usual: Option<u16>| {
        changed(text, |string| {
            string.host = endpoint.ip().to_string();
            string.port = Some(endpoint.port()).filter(|&port| Some(port) != usual);
        })
    };
    Namespace {
        name: namespace.name.clone(),
        connection_string: at(
            &namespace.connection_string,
            endpoints.amqp,
            Some(AMQP_PORT),
        ),
        admin_connection_string: at(&namespace.admin_connection_string, endpoints.http, None),
    }
}

impl Running for ContainerBus {
    fn liveness(&self) -> Liveness {
        Liveness::Container(self.shared.output.clone())
    }

    fn control_token(&self) -> Option<ControlToken> {
        self.shared.token.clone()
    }

    /// Removes the namespace and waits for that.
    fn stop(self: Box<Self>) -> Stopped {
        Box::pin(self.namespace.remove())
    }
}
