//! Accepts connections at the listeners of an emulator, those at the addresses of single namespaces among them.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::peers::AcceptedConnection;
use super::peers::serve;
use crate::listeners::Until;
use crate::shared::Shared;

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
