//! The background runtime, one per process.
//!
//! Emulators, connections and every deadline of the harness run here, never on the runtime of the test, which may have a
//! single thread, may be paused, or may not be tokio's. It lives as long as the process: to start and end its threads for
//! each test would take a quarter of an emulator's start time.

use std::{
    cell::Cell,
    future::Future,
    io, panic,
    pin::Pin,
    sync::{Arc, atomic::AtomicU64, mpsc},
    task::{Context, Poll, ready},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::{Builder, Handle, Runtime},
    sync::oneshot,
    task::JoinHandle,
};

static SHARED: Mutex<Option<Arc<Background>>> = Mutex::new(None);

/// A runtime. Unless shared, it shuts down in the background when its last user is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    /// `None` if another owner has the runtime.
    runtime: Option<Runtime>,
    handle: Handle,
    /// The activity counter of emulators on a runtime with virtual time; the exploration detects by it that nothing is under
    /// way.
    activity: Option<Arc<AtomicU64>>,
}

impl Background {
    /// Returns the runtime of this process, and starts it on first use.
    pub(crate) fn shared() -> io::Result<Arc<Self>> {
        let mut shared = SHARED.lock();
        if let Some(background) = &*shared {
            return Ok(Arc::clone(background));
        }
        let background = Arc::new(Self::start()?);
        *shared = Some(Arc::clone(&background));
        Ok(background)
    }

    /// Starts a separate runtime.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("servicebus-harness")
            .enable_all()
            .build()?;
        Ok(Self {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            activity: None,
        })
    }

    /// Uses the current runtime, whose paused time the owner of the counter advances.
    #[cfg(feature = "explore")]
    pub(crate) fn with_virtual_time(activity: Arc<AtomicU64>) -> Self {
        Self {
            runtime: None,
            handle: Handle::current(),
            activity: Some(activity),
        }
    }

    /// Returns the counter in which emulators count their activity, if time is virtual.
    pub(crate) fn activity(&self) -> Option<Arc<AtomicU64>> {
        self.activity.clone()
    }

    /// Spawns a future; dropping the task cancels it.
    ///
    /// All futures are boxed to one type, because the runtime's code for tasks is long and would be compiled for each type
    /// of future.
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Task<T> {
        let value = Arc::new(Mutex::new(None));
        let returned = Arc::clone(&value);
        let running: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            let value = future.await;
            *returned.lock() = Some(value);
        });
        Task {
            handle: self.handle.spawn(running),
            value,
            aborts: true,
        }
    }

    /// Spawns a future and blocks until it completes, for use in `drop`. Returns `None` if it takes longer than `within`; it
    /// continues then.
    pub(crate) fn wait_for<T: Send + 'static>(
        &self,
        within: Duration,
        future: impl Future<Output = T> + Send + 'static,
    ) -> Option<T> {
        let (sender, receiver) = mpsc::channel();
        let running = self.spawn(async move {
            // The send fails when the drop has stopped waiting.
            let _ = sender.send(future.await);
        });
        let _running = running.detached();
        receiver.recv_timeout(within).ok()
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// A future that runs on the background runtime, to be awaited on any executor.
#[derive(Debug)]
pub(crate) struct Task<T> {
    handle: JoinHandle<()>,
    /// The output of the future, from its completion until the task is polled.
    value: Arc<Mutex<Option<T>>>,
    aborts: bool,
}

impl<T> Task<T> {
    /// Lets the future run to completion when the task is dropped.
    pub(crate) fn detached(mut self) -> Self {
        self.aborts = false;
        self
    }
}

impl<T> Future for Task<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        match ready!(Pin::new(&mut self.handle).poll(context)) {
            Ok(()) => Poll::Ready(self.value.lock().take().expect("a task is awaited once")),
            Err(error) => match error.try_into_panic() {
                Ok(payload) => panic::resume_unwind(payload),
                Err(_) => panic!("the harness's runtime was shut down during an operation"),
            },
        }
    }
}

impl<T> Drop for Task<T> {
    fn drop(&mut self) {
        if self.aborts {
            self.handle.abort();
        }
    }
}

/// Resolves when the future of an operation is dropped.
#[derive(Debug)]
pub(crate) struct CancelSignal(pub(crate) oneshot::Receiver<()>);

impl CancelSignal {
    /// Waits for the cancellation.
    pub(crate) async fn wait(&mut self) {
        // The sender never sends: its drop is an error here.
        let _ = (&mut self.0).await;
    }
}

/// Measures elapsed time: real time, also where the test's runtime is paused; virtual time on the thread of an exploration.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stopwatch {
    Real(std::time::Instant),
    Virtual(tokio::time::Instant),
}

thread_local! {
    static HAS_VIRTUAL_TIME: Cell<bool> = const { Cell::new(false) };
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        match HAS_VIRTUAL_TIME.get() {
            true => Self::Virtual(tokio::time::Instant::now()),
            false => Self::Real(std::time::Instant::now()),
        }
    }

    pub(crate) fn elapsed(self) -> Duration {
        match self {
            Self::Real(started) => started.elapsed(),
            Self::Virtual(started) => started.elapsed(),
        }
    }

    /// Marks the time of this thread's runtime as virtual.
    #[cfg(feature = "explore")]
    pub(crate) fn use_virtual_time() {
        HAS_VIRTUAL_TIME.set(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespaces_of_a_process_share_a_runtime() {
        let first = Background::shared().unwrap();
        let second = Background::shared().unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[tokio::test]
    async fn dropping_a_runtime_inside_another_does_not_panic() {
        let background = Background::start().unwrap();
        assert_eq!(background.spawn(async { 7 }).await, 7);
        drop(background);
    }
}
