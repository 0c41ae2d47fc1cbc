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
    endpoints::{Endpoints, HttpPorts, Namespace, with_change},
    error::Error,
    liveness::Liveness,
    running::{Running, Started, StopFuture},
    shared::{NamespaceAccess, VirtualNamespace, create_namespace},
};

use forward::Forwarder;
use shared::LeasedContainer;

/// The start options of a namespace in a container.
#[derive(Debug, Clone)]
pub(crate) struct ContainerOptions {
    /// Declares one namespace.
    pub(crate) topology: String,
    pub(crate) seed: Option<u64>,
    /// Whether the namespace cannot share a container.
    pub(crate) is_dedicated: bool,
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
struct ContainerNamespace {
    /// Dropped first: its removal uses the other fields.
    namespace: VirtualNamespace,
    _forwarder: Forwarder,
    shared: Arc<LeasedContainer>,
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
    let connecting = async move { connect(&own, &options).await };
    // The engine and all deadlines need real time, also when the test's runtime is paused.
    let (shared, endpoints, forwarder) = background.spawn(connecting).await?;
    let liveness = Liveness::Container(shared.output.clone());
    let token = shared.token.clone();
    let access = NamespaceAccess::over_http(endpoints.http, liveness, token);
    let namespace = create_namespace(background, access, &topology).await?;
    Ok(Started {
        endpoints,
        namespaces: vec![with_endpoints(endpoints, namespace.info())],
        // The file is inside the container; `ca_certificate_pem` fetches the certificate.
        ca_file: None,
        file_lock: None,
        running: Box::new(ContainerNamespace {
            namespace,
            _forwarder: forwarder,
            shared,
        }),
    })
}

async fn connect(
    background: &Background,
    options: &ContainerOptions,
) -> Result<(Arc<LeasedContainer>, Endpoints, Forwarder), Error> {
    let within = options.ready_within;
    let shared = match options.is_dedicated {
        true => {
            let (id, seed) = (shared::dedicated_id(), options.seed());
            Arc::new(LeasedContainer::start(&id, &seed, None, background, within).await?)
        }
        false => LeasedContainer::of_test_run(background, within).await?,
    };
    let (endpoints, forwarder) =
        forward::open(background, options.ports, &shared.ports, shared.network).await?;
    Ok((shared, endpoints, forwarder))
}

/// Returns a namespace whose connection strings name the forwarder, which the emulator does not know.
fn with_endpoints(endpoints: Endpoints, namespace: &Namespace) -> Namespace {
    let at = |text: &str, endpoint: SocketAddr, usual: Option<u16>| {
        with_change(text, |string| {
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

impl Running for ContainerNamespace {
    fn liveness(&self) -> Liveness {
        Liveness::Container(self.shared.output.clone())
    }

    fn control_token(&self) -> Option<ControlToken> {
        self.shared.token.clone()
    }

    /// Removes the namespace and waits for that.
    fn stop(self: Box<Self>) -> StopFuture {
        Box::pin(async move {
            let Self {
                namespace,
                _forwarder,
                shared,
            } = *self;
            namespace.remove().await;
            // The removal goes through the forwarder to the container.
            drop((_forwarder, shared));
        })
    }
}
