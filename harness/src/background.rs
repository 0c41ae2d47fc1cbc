//! The one background runtime of a process.
//!
//! Emulators, connections and every deadline of the harness live here, never on the runtime of the test:
//! that one may have a single thread, may be paused, or may not be tokio's at all. It stays for as long as the process does:
//! to begin and to end its threads for each test would take a quarter of the time of an emulator's own start.

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

/// A runtime; one that is not shared shuts down in the background when its last user is dropped.
#[derive(Debug)]
pub(crate) struct Background {
    /// None where it is another's.
    runtime: Option<Runtime>,
    handle: Handle,
    /// What emulators count there, where time is driven by one who must know when nothing moves any more.
    activity: Option<Arc<AtomicU64>>,
}

impl Background {
    /// Returns the runtime of this process, which starts when it is first asked for.
    pub(crate) fn shared() -> io::Result<Arc<Self>> {
        let mut shared = SHARED.lock();
        if let Some(background) = &*shared {
            return Ok(Arc::clone(background));
        }
        let background = Arc::new(Self::start()?);
        *shared = Some(Arc::clone(&background));
        Ok(background)
    }

    /// Starts a runtime of its own.
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

    /// Takes the runtime that this is called on, whose time is paused and driven by who gives the counter.
    #[cfg(feature = "explore")]
    pub(crate) fn conducted(activity: Arc<AtomicU64>) -> Self {
        Self {
            runtime: None,
            handle: Handle::current(),
            activity: Some(activity),
        }
    }

    /// Returns what emulators are to count what they do in, where time is driven.
    pub(crate) fn activity(&self) -> Option<Arc<AtomicU64>> {
        self.activity.clone()
    }

    /// Runs a future there; dropping the task cancels it.
    ///
    /// To the runtime all of them have one type: its code for tasks is long, and would be compiled for each that there
    /// is in the harness.
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

    /// Runs a future there and blocks until it is done, or for so long: for what a drop waits for. None where it took longer,
    /// and it goes on.
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
        let _running = running.ending_by_itself();
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

/// A future that runs on the background runtime while any executor waits for it.
#[derive(Debug)]
pub(crate) struct Task<T> {
    handle: JoinHandle<()>,
    /// What the future returned, from its end until the task is polled.
    value: Arc<Mutex<Option<T>>>,
    aborts: bool,
}

impl<T> Task<T> {
    /// Lets the future run to its own end when the task is dropped.
    pub(crate) fn ending_by_itself(mut self) -> Self {
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

/// Ends when the future of an operation is dropped.
#[derive(Debug)]
pub(crate) struct CancelSignal(pub(crate) oneshot::Receiver<()>);

impl CancelSignal {
    /// Waits for that.
    pub(crate) async fn wait(&mut self) {
        // The other end is dropped, never used: its drop is the news.
        let _ = (&mut self.0).await;
    }
}

/// How long something has taken: in real time, which goes on where the test's runtime is paused; by the time of the runtime
/// on a thread whose time is driven.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Stopwatch {
    Real(std::time::Instant),
    Driven(tokio::time::Instant),
}

thread_local! {
    static IS_DRIVEN: Cell<bool> = const { Cell::new(false) };
}

impl Stopwatch {
    pub(crate) fn start() -> Self {
        match IS_DRIVEN.get() {
            true => Self::Driven(tokio::time::Instant::now()),
            false => Self::Real(std::time::Instant::now()),
        }
    }

    pub(crate) fn elapsed(self) -> Duration {
        match self {
            Self::Real(started) => started.elapsed(),
            Self::Driven(started) => started.elapsed(),
        }
    }

    /// Says that the time of this thread's runtime is driven.
    #[cfg(feature = "explore")]
    pub(crate) fn drive_this_thread() {
        IS_DRIVEN.set(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_namespaces_of_the_process_have_one() {
        let first = Background::shared().unwrap();
        let second = Background::shared().unwrap();
        assert!(Arc::ptr_eq(&first, &second));
    }

    #[tokio::test]
    async fn dropping_it_inside_another_runtime_does_not_panic() {
        let background = Background::start().unwrap();
        assert_eq!(background.spawn(async { 7 }).await, 7);
        drop(background);
    }
}
