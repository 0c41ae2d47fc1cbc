//! Stands between clients and a bus and writes down what both say to each other.
//!
//! It is there while a comparison runs, whatever the mode: on a loopback address of its own, at the ports that clients
//! know, with TLS for those that begin with it. Every byte is passed on as it came. A copy is decoded into operations:
//! how a link was attached, what became of each message, request and settlement, and why something was refused. What is
//! different in equal runs is not told: frames and how they are cut, flow, numbers of channels, handles and deliveries,
//! when something was said, and what order things had that no link orders. The harness's own handles do not come by it.
//!
//! Where a copy does not decode, the rest of its connection is passed on undecoded, and that is told.

mod budget;
mod doors;
mod exchange;
mod frames;
mod heard;
mod http;
mod link;
mod message;
mod outcome;
mod tap;
mod value;
mod websocket;

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use servicebus_emulator::auth::ConnectionString;

use doors::{Door, Doors};
use heard::Heard;

use crate::{
    background::Background,
    comparison::{self, is_observed},
    error::StartError,
    remote::RemoteRun,
    running::{Endpoints, Namespace, Started},
    secret::Secret,
};

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Service,
}

/// A recorder; dropping it ends the connections that came by it and writes down what was heard.
#[derive(Debug)]
pub(crate) struct Recorder {
    doors: Doors,
    heard: Arc<Heard>,
    /// Whether clients find it by the connection strings.
    is_named: bool,
}

/// How clients come to a bus.
#[derive(Debug)]
pub(crate) struct Entrance {
    pub(crate) endpoints: Endpoints,
    pub(crate) namespace: Namespace,
    /// Who stands there; it must stay as long as clients come.
    pub(crate) recorder: Option<Recorder>,
}

/// Returns how clients come to a bus: by a recorder if a comparison observes it, else directly.
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
    let doors = chosen(direct.endpoints, is_named, secure.is_some());
    let heard = Arc::new(Heard::new(host));
    let opening = {
        let (background, heard) = (Arc::clone(background), Arc::clone(&heard));
        async move { doors::open(&background, &doors, secure, &heard).await }
    };
    let doors = background.spawn(opening).await?;
    let address = doors.address;
    let recorder = Some(Recorder {
        doors,
        heard,
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
        (!self.is_named).then(|| format!("amqps://{}", self.doors.address))
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        comparison::write_down(&self.heard.told());
    }
}

/// The doors to stand before. Clients that come over TLS go on without it, unless the bus is dialled `securely`. Where
/// clients keep the namespace's name they are told of another address for AMQP alone.
fn chosen(endpoints: Endpoints, is_named: bool, securely: bool) -> Vec<Door> {
    let inside = |door: SocketAddr, plain: SocketAddr| if securely { door } else { plain };
    let amqps = (
        endpoints.amqps.port(),
        inside(endpoints.amqps, endpoints.amqp),
    );
    let mut doors = BTreeMap::from([amqps]);
    if is_named {
        let https = endpoints.https.into_iter();
        doors.extend(https.map(|https| (https.port(), inside(https, endpoints.http))));
        doors.extend([endpoints.amqp, endpoints.http].map(|door| (door.port(), door)));
    }
    let doors = doors.into_iter().map(|(port, to)| Door { port, to });
    doors.collect()
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
    let at = |door: SocketAddr| SocketAddr::new(address, door.port());
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
