//! Accepts connections at all listeners, those of single namespaces included, and limits the number of peers.
//!
//! Every port detects the protocol of a peer by its first bytes. Each connection is served, counted, and its end logged.

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

/// Serves an accepted client, if the limit of peers allows.
pub(crate) async fn serve(stream: TcpStream, mut accepted: AcceptedConnection) {
    let (shared, address) = (Arc::clone(&accepted.shared), accepted.address);
    let Some(slot) = shared.connection_limit.take(address.ip()) else {
        tracing::warn!(%address, "refused: too many connections");
        return;
    };
    accepted.is_reserved = slot.is_reserved();
    serve_peer(shared, address, protocol::open(accepted, stream)).await;
}

/// Counts a peer while it is served, and logs how that ended.
pub(crate) async fn serve_peer(
    shared: Arc<Shared>,
    address: SocketAddr,
    served: impl Future<Output = io::Result<()>>,
) {
    let _counted = shared.count_connection();
    let served = watched("a connection", &shared.namespaces.failures, served);
    match AssertUnwindSafe(served).catch_unwind().await {
        Ok(Ok(())) => {}
        Ok(Err(error)) if is_bad_input(&error) => {
            tracing::warn!(%address, %error, "closed: the client violated the protocol");
        }
        Ok(Err(error)) => tracing::debug!(%address, %error, "connection ended"),
        Err(payload) => {
            let source = format!("the connection from {address}");
            shared.namespaces.failures.add_panic(&source, &*payload);
        }
    }
}

/// Returns whether the error comes from invalid input, not from a peer that disconnected.
fn is_bad_input(error: &io::Error) -> bool {
    let hyper = error.get_ref().and_then(|error| error.downcast_ref());
    hyper.is_some_and(hyper::Error::is_parse) || error.kind() == io::ErrorKind::InvalidData
}

/// Timeout of each step of a peer in a place that is reserved for `/health`.
pub(crate) const RESERVED_TIMEOUT: Duration = Duration::from_secs(1);

/// The state that one accepted peer needs.
pub(crate) struct AcceptedConnection {
    pub(crate) address: SocketAddr,
    pub(crate) shared: Arc<Shared>,
    pub(crate) router: axum::Router,
    pub(crate) stop: watch::Receiver<bool>,
    /// Whether the peer has a place for `/health` only.
    pub(crate) is_reserved: bool,
}

impl AcceptedConnection {
    /// Awaits a step of the peer; `None` after the timeout, or when the emulator stops.
    pub(crate) async fn unless_stopped<T>(&mut self, done: impl Future<Output = T>) -> Option<T> {
        let limit = self.timeout();
        tokio::select! {
            done = timeout(limit, done) => done.ok(),
            _ = self.stop.changed() => None,
        }
    }

    /// Returns the timeout of a step. It is short in a reserved place, which other peers need too.
    pub(crate) fn timeout(&self) -> Duration {
        let usual = self.shared.options.step_timeout;
        match self.is_reserved {
            true => usual.min(RESERVED_TIMEOUT),
            false => usual,
        }
    }

    /// Refuses an AMQP connection in a place for `/health`.
    pub(crate) fn refuse(&self) -> io::Result<()> {
        tracing::warn!(address = %self.address, "refused: too many connections");
        Ok(())
    }
}

/// How long connections may take to end when the emulator stops.
const STOPPING: Duration = Duration::from_secs(2);
/// Pause after an accept that failed for lack of file descriptors or memory.
const EXHAUSTED: Duration = Duration::from_millis(50);

/// A listener and its connections.
struct Acceptor {
    shared: Arc<Shared>,
    router: axum::Router,
    stop: watch::Receiver<bool>,
    /// Signals that the listener must close; `None` where only the emulator's end closes it.
    until: Option<Until>,
    peers: JoinSet<()>,
}

/// Serves the connections of these listeners until the emulator stops or `until` closes them.
pub(crate) fn open(
    listeners: Vec<TcpListener>,
    shared: &Arc<Shared>,
    router: &axum::Router,
    until: Option<&Until>,
) {
    for listener in listeners {
        shared.listeners.spawn(|stop| {
            let accepting = Acceptor {
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

impl Acceptor {
    /// Accepts peers until the listener must close, then waits for their connections; only briefly when the emulator stops.
    async fn run(mut self, listener: TcpListener) {
        self.accept(&listener).await;
        drop(listener);
        // Dropping it reports that the listener is closed.
        drop(self.until.take());
        let Self { peers, stop, .. } = &mut self;
        tokio::select! {
            () = all(peers) => return,
            _ = stop.wait_for(|stop| *stop) => {}
        }
        if timeout(STOPPING, all(peers)).await.is_err() {
            tracing::warn!(
                left = peers.len(),
                "connections were closed before they ended"
            );
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
    async fn a_panicked_connection_is_logged_and_not_counted() {
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
        let failures = shared.namespaces.failures.all();
        let reasons: Vec<_> = failures.iter().map(|failure| &*failure.reason).collect();
        let expected = "the connection from 127.0.0.1:7: panicked: on purpose";
        assert_eq!(reasons, [expected]);
        emulator.idle_for(Duration::from_millis(1)).await;
    }

    #[tokio::test]
    async fn a_cancelled_connection_is_not_counted() {
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
