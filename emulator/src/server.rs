//! Listens, and bounds how many peers there are. What a peer speaks is told by its first bytes, on every port.
//!
//! Serves one connection at a time of its client, counts it, and says how it ended.
//!
//! Accepts connections at the listeners of an emulator, those at the addresses of single namespaces among them.

mod protocol;
#[cfg(feature = "simulation")]
pub(crate) mod simulated;
mod web;

use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::listeners::Until;
use crate::shared::Shared;
use crate::watchdog::watched;

/// Serves a client that a listener accepted, if there is room for it.
pub(crate) async fn serve(stream: TcpStream, mut accepted: AcceptedConnection) {
    let (shared, address) = (Arc::clone(&accepted.shared), accepted.address);
    let Some(place) = shared.places.take(address.ip()) else {
        tracing::warn!(%address, "refused: too many connections");
        return;
    };
    accepted.is_reserved = place.is_reserved();
    serve_peer(shared, address, protocol::open(accepted, stream)).await;
}

/// Counts a peer for as long as it is served, and says how that ended.
pub(crate) async fn serve_peer(
    shared: Arc<Shared>,
    address: SocketAddr,
    served: impl Future<Output = io::Result<()>>,
) {
    let _counted = shared.count_connection();
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

/// Whether the peer sent what it should not have, and did not just go away.
fn is_bad_input(error: &io::Error) -> bool {
    let hyper = error.get_ref().and_then(|error| error.downcast_ref());
    hyper.is_some_and(hyper::Error::is_parse) || error.kind() == io::ErrorKind::InvalidData
}

/// How long a peer may take for each step in a place that is kept for `/health`.
pub(crate) const RESERVED_TIMEOUT: Duration = Duration::from_secs(1);

/// What is behind every listener, for one peer.
pub(crate) struct AcceptedConnection {
    pub(crate) address: SocketAddr,
    pub(crate) shared: Arc<Shared>,
    pub(crate) router: axum::Router,
    pub(crate) stop: watch::Receiver<bool>,
    /// Whether the peer has a place for `/health` alone.
    pub(crate) is_reserved: bool,
}

impl AcceptedConnection {
    /// What the peer does within the time for it; none when it does not, or the emulator stops.
    pub(crate) async fn unless_stopped<T>(&mut self, done: impl Future<Output = T>) -> Option<T> {
        let limit = self.timeout();
        tokio::select! {
            done = timeout(limit, done) => done.ok(),
            _ = self.stop.changed() => None,
        }
    }

    /// Those who have a place that is kept for `/health` must be quick: others want it, too.
    pub(crate) fn timeout(&self) -> Duration {
        let usual = self.shared.options.patience;
        match self.is_reserved {
            true => usual.min(RESERVED_TIMEOUT),
            false => usual,
        }
    }

    /// Ends an AMQP connection for which there is no place.
    pub(crate) fn refuse(&self) -> io::Result<()> {
        tracing::warn!(address = %self.address, "refused: too many connections");
        Ok(())
    }
}

/// How long connections may take to end when a listener stops.
const STOPPING: Duration = Duration::from_secs(2);
/// Pause after an accept that failed for want of files or memory.
const EXHAUSTED: Duration = Duration::from_millis(50);

/// One listener and those who came through it.
struct Accepting {
    shared: Arc<Shared>,
    router: axum::Router,
    stop: watch::Receiver<bool>,
    /// Ends when the listener is to close; none where only the emulator's end closes it.
    until: Option<Until>,
    peers: JoinSet<()>,
}

/// Serves what comes to these listeners for as long as the emulator does, or until they are to close.
pub(crate) fn open(
    listeners: Vec<TcpListener>,
    shared: &Arc<Shared>,
    router: &axum::Router,
    until: Option<&Until>,
) {
    for listener in listeners {
        shared.listeners.spawn(|stop| {
            let accepting = Accepting {
                shared: Arc::clone(shared),
                router: router.clone(),
                stop,
                until: until.cloned(),
                peers: JoinSet::new(),
            };
            accepting.run(listener)
        });
    }
}

impl Accepting {
    /// Accepts peers until told not to, then waits for them to end; when the emulator stops, not for long.
    async fn run(mut self, listener: TcpListener) {
        self.accept(&listener).await;
        drop(listener);
        // With it goes the word that the listener is closed.
        drop(self.until.take());
        let Self { peers, stop, .. } = &mut self;
        tokio::select! {
            () = all(peers) => return,
            _ = stop.wait_for(|stop| *stop) => {}
        }
        if timeout(STOPPING, all(peers)).await.is_err() {
            tracing::warn!(left = peers.len(), "connections were cut");
        }
    }

    async fn accept(&mut self, listener: &TcpListener) {
        let Self {
            shared,
            router,
            stop,
            until,
            peers,
        } = self;
        let stopped = stop.clone();
        loop {
            tokio::select! {
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => {
                        let accepted = AcceptedConnection {
                            address,
                            shared: Arc::clone(shared),
                            router: router.clone(),
                            stop: stopped.clone(),
                            is_reserved: false,
                        };
                        peers.spawn(serve(stream, accepted));
                    }
                    Err(error) => {
                        tracing::warn!(%error, "cannot accept");
                        sleep(EXHAUSTED).await;
                    }
                },
                Some(_) = peers.join_next() => {}
                () = Until::ended(until) => break,
                _ = stop.changed() => break,
            }
        }
    }
}

async fn all(peers: &mut JoinSet<()>) {
    while peers.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::net::Ipv4Addr;
    use std::time::Duration;

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
