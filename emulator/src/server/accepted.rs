//! A connection that a listener accepted, and how long its peer may take.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::shared::Shared;

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
