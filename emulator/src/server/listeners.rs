//! The listeners of an emulator, those at the addresses of single namespaces among them.

use std::future::pending;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::accepted::AcceptedConnection;
use super::{Shared, serve};

/// How long connections may take to end when a listener stops.
const STOPPING: Duration = Duration::from_secs(2);
/// Pause after an accept that failed for want of files or memory.
const EXHAUSTED: Duration = Duration::from_millis(50);

/// Everything that listens, in tasks of its own.
#[derive(Debug)]
pub(crate) struct Listeners {
    tasks: Mutex<JoinSet<()>>,
    stop: watch::Sender<bool>,
    /// The addresses that are listened at for all namespaces.
    common: Vec<IpAddr>,
}

/// One listener and those who came through it.
struct Accepting {
    shared: Arc<Shared>,
    router: axum::Router,
    stop: watch::Receiver<bool>,
    /// Ends when the listener is to close; none where only the emulator's end closes it.
    until: Option<Until>,
    peers: JoinSet<()>,
}

/// Keeps listeners open; when it is dropped they close, and the connections that came through them go on.
#[derive(Debug)]
pub(crate) struct Listening {
    open: watch::Sender<()>,
    /// Ends when the last of them is closed.
    closed: mpsc::Receiver<()>,
}

/// How a listener knows that it is to close, and tells that it is closed.
#[derive(Debug, Clone)]
struct Until {
    open: watch::Receiver<()>,
    /// Kept for as long as the listener is open.
    _closed: mpsc::Sender<()>,
}

impl Listeners {
    /// Serves nothing yet; those for all namespaces will be at these addresses.
    pub(crate) fn new(common: Vec<IpAddr>) -> Self {
        Self {
            tasks: Mutex::default(),
            stop: watch::Sender::default(),
            common,
        }
    }

    /// Serves what comes to these listeners for as long as the emulator does.
    pub(crate) fn open(
        &self,
        listeners: Vec<TcpListener>,
        shared: &Arc<Shared>,
        router: &axum::Router,
    ) {
        self.spawn(listeners, shared, router, None);
    }

    /// Serves what comes to these listeners for as long as what is returned is kept.
    pub(crate) fn open_for_now(
        &self,
        listeners: Vec<TcpListener>,
        shared: &Arc<Shared>,
        router: &axum::Router,
    ) -> Listening {
        let (open, until) = watch::channel(());
        let (closing, closed) = mpsc::channel(1);
        let until = Until {
            open: until,
            _closed: closing,
        };
        self.spawn(listeners, shared, router, Some(&until));
        Listening { open, closed }
    }

    /// Whether what comes to this address comes to a listener for all namespaces.
    pub(crate) fn cover(&self, address: IpAddr) -> bool {
        let covers = |own: &IpAddr| *own == address || own.is_unspecified();
        self.common.iter().any(covers)
    }

    /// Tells everybody that the emulator stops, and waits until they have gone or two seconds have passed.
    pub(crate) async fn stop(&self) {
        let _ = self.stop.send(true);
        let mut tasks = std::mem::take(&mut *self.tasks());
        while tasks.join_next().await.is_some() {}
    }

    /// Ends everything at once.
    pub(crate) fn abort(&self) {
        self.tasks().abort_all();
    }

    /// Serves a peer that came through no listener; `peer` is given what tells that the emulator stops.
    #[cfg(feature = "simulation")]
    pub(super) fn spawn_peer<F>(&self, peer: impl FnOnce(watch::Receiver<bool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(peer(self.stop.subscribe()));
    }

    fn spawn(
        &self,
        listeners: Vec<TcpListener>,
        shared: &Arc<Shared>,
        router: &axum::Router,
        until: Option<&Until>,
    ) {
        let mut tasks = self.tasks();
        // Those of namespaces that are gone.
        while tasks.try_join_next().is_some() {}
        for listener in listeners {
            let accepting = Accepting {
                shared: Arc::clone(shared),
                router: router.clone(),
                stop: self.stop.subscribe(),
                until: until.cloned(),
                peers: JoinSet::new(),
            };
            tasks.spawn(accepting.run(listener));
        }
    }

    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.tasks.lock()
    }
}

impl Listening {
    /// Closes the listeners, so that others can listen where they did.
    pub(crate) async fn close(self) {
        let Self { open, mut closed } = self;
        drop(open);
        // Nothing is sent: the end of the last sender is the news.
        let _ = closed.recv().await;
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
                () = closed(until) => break,
                _ = stop.changed() => break,
            }
        }
    }
}

/// Resolves when whoever keeps a listener open does so no longer.
async fn closed(until: &mut Option<Until>) {
    match until {
        Some(until) => while until.open.changed().await.is_ok() {},
        None => pending().await,
    }
}

async fn all(peers: &mut JoinSet<()>) {
    while peers.join_next().await.is_some() {}
}
