//! Stands between clients and a namespace and writes down what both say to each other.
//!
//! It is there while a case runs, whatever the mode: the harness asks it how clients are to come to a namespace
//! (`servicebus_harness::observer`), and it listens on a loopback address of its own, at the ports that clients know, with
//! TLS for those that begin with it. Every byte is passed on as it came. A copy is decoded into operations:
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
mod upstream;
mod value;
mod websocket;

use std::{
    collections::BTreeMap,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use serde::Deserialize;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader},
    net::{TcpListener, TcpStream, tcp::OwnedWriteHalf},
    runtime::Runtime,
    sync::oneshot,
    task::{JoinHandle, JoinSet},
};

use listeners::Route;
use trace::Trace;
use upstream::Secure;

use crate::{Observation, changes};

/// The two ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Client,
    Service,
}

/// What the namespaces of a case are told.
#[derive(Debug, Clone)]
pub(crate) struct RecorderOptions {
    /// What is changed of their topologies.
    pub(crate) changes: Value,
    /// The file of the authorities to trust, where namespaces are dialled over TLS.
    pub(crate) authorities: Option<PathBuf>,
}

/// Records the namespaces of one case.
#[derive(Debug)]
pub(crate) struct CaseRecorder {
    /// Where the harness asks.
    pub(crate) address: SocketAddr,
    has_ended: oneshot::Sender<()>,
    serving: JoinHandle<Vec<Observation>>,
}

/// What the harness asks.
#[derive(Deserialize)]
#[serde(untagged)]
enum RecorderRequest {
    /// What a namespace is to hold.
    Topology { topology: String },
    /// How clients are to come to a namespace.
    NamespaceEndpoints(NamespaceEndpoints),
}

/// A namespace that clients can come to.
#[derive(Deserialize)]
struct NamespaceEndpoints {
    /// As its connection strings have it.
    host: String,
    amqp: SocketAddr,
    amqps: SocketAddr,
    http: SocketAddr,
    https: Option<SocketAddr>,
    /// Whether it wants TLS of every client.
    secure: bool,
}

impl CaseRecorder {
    /// Listens for what the harness asks.
    pub(crate) fn start(runtime: &Runtime, options: RecorderOptions) -> io::Result<Self> {
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))?;
        let address = listener.local_addr()?;
        let (has_ended, ended) = oneshot::channel();
        Ok(Self {
            address,
            has_ended,
            serving: runtime.spawn(serve(listener, options, ended)),
        })
    }

    /// Returns what was heard, when the process of the case has ended and its connections with it.
    pub(crate) fn finish(self, runtime: &Runtime) -> Vec<Observation> {
        drop(self.has_ended);
        runtime.block_on(self.serving).unwrap_or_default()
    }
}

async fn serve(
    listener: TcpListener,
    options: RecorderOptions,
    mut ended: oneshot::Receiver<()>,
) -> Vec<Observation> {
    let (mut namespaces, mut recorded) = (JoinSet::new(), Vec::new());
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((connection, _)) = accepted {
                    namespaces.spawn(answer(connection, options.clone()));
                }
            }
            Some(answered) = namespaces.join_next() => recorded.extend(answered.into_iter().flatten().flatten()),
            _ = &mut ended => break,
        }
    }
    while let Some(answered) = namespaces.join_next().await {
        recorded.extend(answered.into_iter().flatten().flatten());
    }
    recorded
}

/// Answers one question. How clients come to a namespace holds until the harness closes its connection; what was heard
/// by then is returned, and told by closing.
async fn answer(connection: TcpStream, options: RecorderOptions) -> io::Result<Vec<Observation>> {
    let (read, mut write) = connection.into_split();
    let mut lines = BufReader::new(read).lines();
    let Some(line) = lines.next_line().await? else {
        return Ok(Vec::new());
    };
    let endpoints = match serde_json::from_str(&line)? {
        RecorderRequest::Topology { topology } => {
            let changed = changes::applied(&topology, &options.changes);
            write_response(&mut write, &json!({ "topology": changed })).await?;
            return Ok(Vec::new());
        }
        RecorderRequest::NamespaceEndpoints(endpoints) => endpoints,
    };
    let trace = Arc::new(Trace::new(endpoints.host.clone()));
    let listeners = match open(&endpoints, &options, &trace).await {
        Ok(listeners) => listeners,
        Err(error) => {
            write_response(&mut write, &json!({ "error": error.to_string() })).await?;
            return Ok(Vec::new());
        }
    };
    let address = listeners.address;
    let custom_endpoint = (!has_address(&endpoints.host)).then(|| format!("amqps://{address}"));
    let access = json!({ "address": address, "custom_endpoint": custom_endpoint });
    write_response(&mut write, &access).await?;
    // A process that was killed resets its connection, which ends the recording like any other end.
    while let Ok(Some(_)) = lines.next_line().await {}
    drop(listeners);
    Ok(trace.render())
}

async fn open(
    endpoints: &NamespaceEndpoints,
    options: &RecorderOptions,
    trace: &Arc<Trace>,
) -> io::Result<listeners::Listeners> {
    let secure = match (endpoints.secure, &options.authorities) {
        (false, _) => None,
        (true, Some(authorities)) => Some(Secure::new(authorities, &endpoints.host)?),
        (true, None) => {
            let text = format!(
                "nothing says which authorities to trust at {}",
                endpoints.host
            );
            return Err(io::Error::other(text));
        }
    };
    listeners::open(&routes(endpoints), secure, trace).await
}

async fn write_response(to: &mut OwnedWriteHalf, answer: &Value) -> io::Result<()> {
    to.write_all(format!("{answer}\n").as_bytes()).await
}

/// The listeners to stand before. Clients that come over TLS go on without it, unless the namespace is dialled over TLS.
/// Where clients keep the namespace's name the custom endpoint is for AMQP alone.
fn routes(endpoints: &NamespaceEndpoints) -> Vec<Route> {
    let inside = |endpoint: SocketAddr, plain: SocketAddr| match endpoints.secure {
        true => endpoint,
        false => plain,
    };
    let amqps = (
        endpoints.amqps.port(),
        inside(endpoints.amqps, endpoints.amqp),
    );
    let mut routes = BTreeMap::from([amqps]);
    if has_address(&endpoints.host) {
        let https = endpoints.https.into_iter();
        routes.extend(https.map(|https| (https.port(), inside(https, endpoints.http))));
        routes.extend([endpoints.amqp, endpoints.http].map(|endpoint| (endpoint.port(), endpoint)));
    }
    let routes = routes.into_iter().map(|(port, to)| Route { port, to });
    routes.collect()
}

/// Whether the host is an address, or that of this machine: an emulator, for which it does not count whose host a token is
/// signed for.
fn has_address(host: &str) -> bool {
    host.parse::<IpAddr>().is_ok() || host == "localhost"
}
