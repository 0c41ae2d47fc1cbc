//! Listens, tells AMQP from HTTP by the first byte, and bounds how many peers there are.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use servicebus_broker::IdSource;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::clock::RealClock;
use crate::connection;
use crate::namespace::{Ids, Namespace};
use crate::router::{ConnectionId, Doorbell, Router};

/// Peers at the same time, as many as a namespace of the service takes (semantics §1).
const MAX_CONNECTIONS: usize = 5_000;
/// How long a peer may take to send its first byte, or the head of an HTTP request.
const FIRST_BYTE: Duration = Duration::from_secs(20);
/// How long connections may take to end when the emulator stops.
const STOPPING: Duration = Duration::from_secs(2);
/// Pause after an accept that failed for want of files or memory.
const EXHAUSTED: Duration = Duration::from_millis(50);

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: Switches,
    pub(crate) real: RealClock,
    pub(crate) router: Arc<Router>,
    pub(crate) namespaces: Vec<Arc<Namespace>>,
    connections_made: AtomicU32,
    connections: AtomicUsize,
}

/// Settings of the process that connections ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Switches {
    pub(crate) seed: Option<u64>,
    /// Whether outcomes to old fe2o3 peers wait (decision D31).
    pub(crate) outcome_delay: bool,
}

impl Shared {
    pub(crate) fn new(
        options: Switches,
        real: RealClock,
        router: Arc<Router>,
        namespaces: Vec<Arc<Namespace>>,
    ) -> Self {
        Self {
            options,
            real,
            router,
            namespaces,
            connections_made: AtomicU32::new(0),
            connections: AtomicUsize::new(0),
        }
    }

    pub(crate) fn enter(&self) -> (ConnectionId, Arc<Doorbell>) {
        // Zero stands for the broker itself.
        let id = ConnectionId(self.connections_made.fetch_add(1, Ordering::Relaxed) + 1);
        (id, self.router.enter(id))
    }

    pub(crate) fn leave(&self, id: ConnectionId) {
        self.router.leave(id);
    }

    pub(crate) fn engine_config(&self, ids: &mut Ids) -> servicebus_amqp::Config {
        servicebus_amqp::Config {
            container_id: self.tracking_id(ids).simple().to_string(),
            tracking_id: self.tracking_id(ids).to_string(),
            ..servicebus_amqp::Config::default()
        }
    }

    /// A fresh id to find something again in the log.
    pub(crate) fn tracking_id(&self, ids: &mut Ids) -> Uuid {
        uuid::Builder::from_u128(u128::from(ids.next()) << 64 | u128::from(ids.next()))
            .with_version(uuid::Version::Random)
            .with_variant(uuid::Variant::RFC4122)
            .into_uuid()
    }
}

/// Accepts peers until told to stop, then waits for them to end.
pub(crate) async fn run(
    listener: TcpListener,
    shared: Arc<Shared>,
    router: axum::Router,
    mut stop: watch::Receiver<bool>,
) {
    let mut peers = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, address)) => {
                    let peer = Peer {
                        shared: Arc::clone(&shared),
                        router: router.clone(),
                        stop: stop.clone(),
                    };
                    peers.spawn(peer.serve(stream, address));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept");
                    sleep(EXHAUSTED).await;
                }
            },
            Some(_) = peers.join_next() => {}
            _ = stop.changed() => break,
        }
    }
    drop(listener);
    let all = async { while peers.join_next().await.is_some() {} };
    if timeout(STOPPING, all).await.is_err() {
        tracing::warn!(left = peers.len(), "connections were cut");
    }
}

struct Peer {
    shared: Arc<Shared>,
    router: axum::Router,
    stop: watch::Receiver<bool>,
}

impl Peer {
    async fn serve(self, stream: TcpStream, address: SocketAddr) {
        let shared = Arc::clone(&self.shared);
        if shared.connections.fetch_add(1, Ordering::AcqRel) >= MAX_CONNECTIONS {
            tracing::warn!(%address, "refused: more than {MAX_CONNECTIONS} connections");
        } else if let Err(error) = self.recognise(stream, address).await {
            tracing::debug!(%address, %error, "connection ended");
        }
        shared.connections.fetch_sub(1, Ordering::AcqRel);
    }

    async fn recognise(self, stream: TcpStream, address: SocketAddr) -> io::Result<()> {
        let mut first = [0];
        let Self {
            shared,
            router,
            mut stop,
        } = self;
        let peeked = tokio::select! {
            peeked = timeout(FIRST_BYTE, stream.peek(&mut first)) => peeked,
            _ = stop.changed() => return Ok(()),
        };
        let Ok(peeked) = peeked else {
            return Ok(());
        };
        if peeked? == 0 {
            return Ok(());
        }
        match first[0] {
            b'A' => connection::serve(stream, BytesMut::new(), shared, stop).await,
            b'C' | b'D' | b'G' | b'H' | b'O' | b'P' | b'T' => {
                serve_http(stream, router, stop).await
            }
            byte => {
                let advice = match byte {
                    0x16 => {
                        "TLS is not built yet; connect without it (UseDevelopmentEmulator=true)"
                    }
                    _ => "neither AMQP nor HTTP; old clients must choose AMQP as their transport",
                };
                tracing::warn!(%address, first_byte = byte, "closed: {advice}");
                // What a peer that speaks another version of AMQP is owed (AMQP 1.0 §2.2).
                stream.try_write(b"AMQP\x03\x01\x00\x00").map(drop)
            }
        }
    }
}

async fn serve_http(
    stream: TcpStream,
    router: axum::Router,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(FIRST_BYTE);
    let service = TowerToHyperService::new(router);
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    tokio::select! {
        served = connection.as_mut() => served.map_err(io::Error::other),
        _ = stop.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await.map_err(io::Error::other)
        }
    }
}
