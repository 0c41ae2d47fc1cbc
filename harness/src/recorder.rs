//! Stands between clients and a namespace and writes down what both say to each other.
//!
//! It is there while a comparison runs, whatever the mode: on a loopback address of its own, at the ports that clients
//! know, with TLS for those that begin with it. Every byte is passed on as it came. A copy is decoded into operations:
//! how a link was attached, what became of each message, request and settlement, and why something was refused. What is
//! different in equal runs is left out: frames and how they are cut, flow, numbers of channels, handles and deliveries,
//! when something was said, and what order things had that no link orders. The harness's own clients do not come by it.
//!
//! Where a copy does not decode, the rest of its connection is passed on undecoded, and the trace says so.

mod decoder;
mod exchange;
mod frames;
mod http;
mod link;
mod listeners;
mod message;
mod outcome;
mod trace;
mod value;
mod websocket;

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use servicebus_emulator::auth::ConnectionString;

use listeners::{Listeners, Route};
use trace::Trace;

use crate::{
    background::Background,
    comparison::{self, is_observed},
    remote::RemoteRun,
    running::{Endpoints, Namespace, Started},
    secret::Secret,
    start_error::StartError,
};

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Service,
}

/// A recorder; dropping it ends the connections that came by it and writes down what was trace.
#[derive(Debug)]
pub(crate) struct Recorder {
    listeners: Listeners,
    trace: Arc<Trace>,
    /// Whether clients find it by the connection strings.
    is_named: bool,
}

/// How clients come to a namespace.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) endpoints: Endpoints,
    pub(crate) namespace: Namespace,
    /// The recorder in between; it must stay as long as clients connect.
    pub(crate) recorder: Option<Recorder>,
}

/// Returns how clients come to a namespace: by a recorder if a comparison observes it, else directly.
pub(crate) async fn entrance(
    background: &Arc<Background>,
    started: &Started,
) -> Result<Entrance, StartError> {
    let namespace = started.namespaces.first().ok_or(StartError::NoNamespace)?;
    let direct = Entrance {
        endpoints: started.endpoints,
        namespace: namespace.clone(),
        recorder: None,
    };
    if !is_observed() {
        return Ok(direct);
    }
    let host = host(namespace);
    let is_named = has_address(&host);
    let secure = started.running.remote().map(RemoteRun::secure);
    let listeners = chosen(direct.endpoints, is_named, secure.is_some());
    let trace = Arc::new(Trace::new(host));
    let opening = {
        let (background, trace) = (Arc::clone(background), Arc::clone(&trace));
        async move { listeners::open(&background, &listeners, secure, &trace).await }
    };
    let listeners = background.spawn(opening).await?;
    let address = listeners.address;
    let recorder = Some(Recorder {
        listeners,
        trace,
        is_named,
    });
    Ok(match is_named {
        true => Entrance {
            endpoints: moved(direct.endpoints, address.into()),
            namespace: renamed(direct.namespace, address.into()),
            recorder,
        },
        false => Entrance { recorder, ..direct },
    })
}

impl Recorder {
    /// Returns where a client must connect that keeps the namespace's name: tokens are signed for that, so that the
    /// connection strings cannot have another.
    pub(crate) fn custom_endpoint(&self) -> Option<String> {
        (!self.is_named).then(|| format!("amqps://{}", self.listeners.address))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        comparison::write_down(&self.trace.render());
    }
}

/// The listeners to stand before. Clients that come over TLS go on without it, unless the namespace is dialled `securely`. Where
/// clients keep the namespace's name the custom endpoint is for AMQP alone.
fn chosen(endpoints: Endpoints, is_named: bool, securely: bool) -> Vec<Route> {
    let inside = |endpoint: SocketAddr, plain: SocketAddr| if securely { endpoint } else { plain };
    let amqps = (
        endpoints.amqps.port(),
        inside(endpoints.amqps, endpoints.amqp),
    );
    let mut listeners = BTreeMap::from([amqps]);
    if is_named {
        let https = endpoints.https.into_iter();
        listeners.extend(https.map(|https| (https.port(), inside(https, endpoints.http))));
        listeners
            .extend([endpoints.amqp, endpoints.http].map(|endpoint| (endpoint.port(), endpoint)));
    }
    let listeners = listeners.into_iter().map(|(port, to)| Route { port, to });
    listeners.collect()
}

/// Whether the host is an address, or that of this machine: an emulator, for which it does not count whose host a token is
/// signed for.
fn has_address(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok() || host == "localhost"
}

fn host(namespace: &Namespace) -> String {
    let read = namespace.connection_string.parse::<ConnectionString>();
    read.map(|read| read.host).unwrap_or_default()
}

fn moved(endpoints: Endpoints, address: IpAddr) -> Endpoints {
    let at = |endpoint: SocketAddr| SocketAddr::new(address, endpoint.port());
    Endpoints {
        amqp: at(endpoints.amqp),
        amqps: at(endpoints.amqps),
        http: at(endpoints.http),
        https: endpoints.https.map(at),
    }
}

fn renamed(namespace: Namespace, address: IpAddr) -> Namespace {
    let string = |text: Secret| match text.parse::<ConnectionString>() {
        Ok(read) => {
            let host = address.to_string();
            ConnectionString { host, ..read }.to_string().into()
        }
        Err(_) => text,
    };
    Namespace {
        connection_string: string(namespace.connection_string),
        admin_connection_string: string(namespace.admin_connection_string),
        ..namespace
    }
}
