//! The tasks that listen and serve, and their shutdown.

use std::future::pending;
use std::net::IpAddr;

use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// All listener and connection tasks of an emulator.
#[derive(Debug)]
pub(crate) struct Listeners {
    tasks: Mutex<JoinSet<()>>,
    stop: watch::Sender<bool>,
    /// The listen addresses that serve all namespaces.
    common: Vec<IpAddr>,
}

/// Keeps listeners open. Dropping it closes them; their connections stay open.
#[derive(Debug)]
pub(crate) struct Listening {
    open: watch::Sender<()>,
    /// Closed when the last listener is closed.
    closed: mpsc::Receiver<()>,
}

/// The listener's half: signals that it must close, and reports that it is closed.
#[derive(Debug, Clone)]
pub(crate) struct Until {
    open: watch::Receiver<()>,
    /// Held for as long as the listener is open.
    _closed: mpsc::Sender<()>,
}

impl Listeners {
    /// Starts without tasks. `common` are the addresses of the listeners that serve all namespaces.
    pub(crate) fn new(common: Vec<IpAddr>) -> Self {
        Self {
            tasks: Mutex::default(),
            stop: watch::Sender::default(),
            common,
        }
    }

    /// Returns whether a listener for all namespaces accepts connections to this address.
    pub(crate) fn cover(&self, address: IpAddr) -> bool {
        let covers = |own: &IpAddr| *own == address || own.is_unspecified();
        self.common.iter().any(covers)
    }

    /// Runs a task until it ends or the emulator stops, which the receiver that the task gets signals.
    pub(crate) fn spawn<F>(&self, task: impl FnOnce(watch::Receiver<bool>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut tasks = self.tasks.lock();
        // Removes the tasks of namespaces that are gone.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task(self.stop.subscribe()));
    }

    /// Signals all tasks to stop and waits until they have ended.
    pub(crate) async fn stop(&self) {
        let _ = self.stop.send(true);
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }

    /// Aborts all tasks and waits until the listeners are closed. Connections get no signal to stop, because they would
    /// answer it with a close frame before their own abort.
    pub(crate) async fn crash(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        tasks.abort_all();
        while tasks.join_next().await.is_some() {}
    }

    pub(crate) fn abort(&self) {
        self.tasks.lock().abort_all();
    }
}

impl Listening {
    /// Creates a pair without listeners; each listener gets a clone of the second part.
    pub(crate) fn new() -> (Self, Until) {
        let (open, until) = watch::channel(());
        let (closing, closed) = mpsc::channel(1);
        let until = Until {
            open: until,
            _closed: closing,
        };
        (Self { open, closed }, until)
    }

    /// Closes the listeners, so that their ports are free.
    pub(crate) async fn close(self) {
        let Self { open, mut closed } = self;
        drop(open);
        // No value is ever sent: the drop of the last sender ends the wait.
        let _ = closed.recv().await;
    }
}

impl Until {
    /// Resolves when the listener must close; never resolves where only the emulator's end closes it.
    pub(crate) async fn ended(until: &mut Option<Self>) {
        match until {
            Some(until) => while until.open.changed().await.is_ok() {},
            None => pending().await,
        }
    }
}
