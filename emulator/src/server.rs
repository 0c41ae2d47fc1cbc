//! Listens, and bounds how many peers there are. What a peer speaks is told by its first bytes, on every port.

mod accepted;
mod listeners;
mod places;
mod secure;
#[cfg(feature = "simulation")]
pub(crate) mod simulated;
mod web;

use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::FutureExt as _;
use servicebus_broker::{IdSource, Tier};
use tokio::net::TcpStream;
use tokio::sync::watch;
use uuid::Uuid;

use crate::access::Access;
use crate::clock::RealClock;
use crate::memory::Memory;
use crate::namespace::Ids;
use crate::namespaces::Namespaces;
use crate::router::ConnectionId;
use crate::tls::Tls;
use crate::watchdog::watched;
use accepted::AcceptedConnection;

pub(crate) use listeners::{Listeners, Listening};
pub(crate) use places::Places;
pub(crate) use web::Kept;

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) options: ConnectionOptions,
    pub(crate) real: RealClock,
    pub(crate) namespaces: Namespaces,
    pub(crate) listeners: Listeners,
    pub(crate) tls: Tls,
    pub(crate) memory: Arc<Memory>,
    pub(crate) places: Arc<Places>,
    pub(crate) access: Access,
    connections_made: AtomicU32,
    connections: watch::Sender<usize>,
}

/// Settings of the process that connections ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConnectionOptions {
    pub(crate) seed: Option<u64>,
    /// Whether outcomes to old fe2o3 peers wait (decision D31).
    pub(crate) outcome_delay: bool,
    /// Most requests that wait for messages of one entity at the same time.
    pub(crate) waiting_requests: u32,
    /// How long a peer may take to send its first byte, to finish a TLS handshake, to send the head of an HTTP request
    /// and to put a first token.
    pub(crate) patience: Duration,
    /// That of namespaces that are made while the emulator serves and name none.
    pub(crate) tier: Tier,
}

impl Shared {
    #[expect(
        clippy::too_many_arguments,
        reason = "each is a part of its own, and this is called once"
    )]
    pub(crate) fn new(
        options: ConnectionOptions,
        real: RealClock,
        namespaces: Namespaces,
        listeners: Listeners,
        tls: Tls,
        memory: Arc<Memory>,
        places: Arc<Places>,
        access: Access,
    ) -> Self {
        Self {
            options,
            real,
            namespaces,
            listeners,
            tls,
            memory,
            places,
            access,
            connections_made: AtomicU32::new(0),
            connections: watch::Sender::new(0),
        }
    }

    /// How many peers are connected, and word of every change.
    pub(crate) fn connections(&self) -> watch::Receiver<usize> {
        self.connections.subscribe()
    }

    /// The number of a new connection.
    pub(crate) fn next_connection(&self) -> ConnectionId {
        // Zero stands for the broker itself.
        ConnectionId(self.connections_made.fetch_add(1, Ordering::Relaxed) + 1)
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

async fn serve(stream: TcpStream, mut accepted: AcceptedConnection) {
    let (shared, address) = (Arc::clone(&accepted.shared), accepted.address);
    let Some(place) = shared.places.take(address.ip()) else {
        tracing::warn!(%address, "refused: too many connections");
        return;
    };
    accepted.is_reserved = place.is_reserved();
    serve_peer(shared, address, accepted.open(stream)).await;
}

/// Counts a peer for as long as it is served, and says how that ended.
async fn serve_peer(
    shared: Arc<Shared>,
    address: SocketAddr,
    served: impl Future<Output = io::Result<()>>,
) {
    let _counted = Counted::new(&shared);
    let served = watched("a connection", shared.namespaces.failures(), served);
    match AssertUnwindSafe(served).catch_unwind().await {
        Ok(Ok(())) => {}
        Ok(Err(error)) if is_bad_input(&error) => {
            tracing::warn!(%address, %error, "closed: what came is no part of the protocol");
        }
        Ok(Err(error)) => tracing::debug!(%address, %error, "connection ended"),
        Err(payload) => {
            let place = format!("the connection from {address}");
            shared.namespaces.failures().add_panic(&place, &*payload);
        }
    }
}

/// One of the peers that are connected, however it ends.
struct Counted<'a>(&'a Shared);

impl<'a> Counted<'a> {
    fn new(shared: &'a Shared) -> Self {
        shared.connections.send_modify(|open| *open += 1);
        Self(shared)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.connections.send_modify(|open| *open -= 1);
    }
}

/// Whether the peer sent what it should not have, and did not just go away.
fn is_bad_input(error: &io::Error) -> bool {
    let hyper = error.get_ref().and_then(|error| error.downcast_ref());
    hyper.is_some_and(hyper::Error::is_parse) || error.kind() == io::ErrorKind::InvalidData
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::Ipv4Addr;

    use super::*;
    use crate::{Emulator, Options};

    const ADDRESS: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 7);

    async fn emulator() -> Emulator {
        let started = Emulator::start(Options {
            amqp_port: 0,
            amqps_port: None,
            http_port: 0,
            ..Options::default()
        });
        started.await.expect("it starts")
    }

    #[tokio::test]
    async fn a_connection_that_panics_is_told_of_and_counted_no_longer() {
        let emulator = emulator().await;
        let shared = &emulator.shared;
        let connected = shared.connections();
        let counted = connected.clone();
        let panics = async move {
            assert_eq!(*counted.borrow(), 1);
            panic!("on purpose");
        };
        serve_peer(Arc::clone(shared), ADDRESS, panics).await;
        assert_eq!(*connected.borrow(), 0);
        let failures = shared.namespaces.failures().all();
        let reasons: Vec<_> = failures.iter().map(|failure| &*failure.reason).collect();
        let told = "the connection from 127.0.0.1:7: panicked: on purpose";
        assert_eq!(reasons, [told]);
        emulator.idle_for(Duration::from_millis(1)).await;
    }

    #[tokio::test]
    async fn a_connection_that_is_cut_is_counted_no_longer() {
        let emulator = emulator().await;
        let connected = emulator.shared.connections();
        let serving = serve_peer(Arc::clone(&emulator.shared), ADDRESS, pending());
        tokio::select! {
            biased;
            () = serving => unreachable!("it has no end"),
            () = async { assert_eq!(*connected.borrow(), 1) } => {}
        }
        assert_eq!(*connected.borrow(), 0);
    }
}
