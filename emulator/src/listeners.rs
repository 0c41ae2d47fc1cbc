//! The tasks that listen and serve, and how they are told to end.

use std::future::pending;
use std::net::IpAddr;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Everything that listens, in tasks of its own.
#[derive(Debug)]
pub(crate) struct Listeners {
    tasks: Mutex<JoinSet<()>>,
    stop: watch::Sender<bool>,
    /// The addresses that are listened at for all namespaces.
    common: Vec<IpAddr>,
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
pub(crate) struct Until {
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

    /// Whether what comes to this address comes to a listener for all namespaces.
    pub(crate) fn cover(&self, address: IpAddr) -> bool {
        let covers = |own: &IpAddr| *own == address || own.is_unspecified();
        self.common.iter().any(covers)
    }

    /// Runs a task until it ends or the emulator does; it is given what tells that the emulator stops.
    pub(crate) fn spawn<F>(&self, task: impl FnOnce(watch::Receiver<bool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut tasks = self.tasks.lock();
        // Those of namespaces that are gone.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task(self.stop.subscribe()));
    }

    /// Tells all tasks that the emulator stops, and waits until they have ended.
    pub(crate) async fn stop(&self) {
        let _ = self.stop.send(true);
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }

    /// Ends everything at once.
    pub(crate) fn abort(&self) {
        self.tasks.lock().abort_all();
    }
}

impl Listening {
    /// Nothing yet; the listeners are given clones of the second part.
    pub(crate) fn new() -> (Self, Until) {
        let (open, until) = watch::channel(());
        let (closing, closed) = mpsc::channel(1);
        let until = Until {
            open: until,
            _closed: closing,
        };
        (Self { open, closed }, until)
    }

    /// Closes the listeners, so that others can listen where they did.
    pub(crate) async fn close(self) {
        let Self { open, mut closed } = self;
        drop(open);
        // Nothing is sent: the end of the last sender is the news.
        let _ = closed.recv().await;
    }
}

impl Until {
    /// Resolves when the listener is to close; never where only the emulator's end closes it.
    pub(crate) async fn ended(until: &mut Option<Self>) {
        match until {
            Some(until) => while until.open.changed().await.is_ok() {},
            None => pending().await,
        }
    }
}
