//! The doors of a running bus, as every handle holds them.
//!
//! Handles share the doors and not the emulator: the emulator ends with its [`ServiceBus`](crate::ServiceBus),
//! whatever handles are still around. All work happens on the background runtime. A test that drops a future
//! cancels the operation, and the next one does not begin before the cancelled one has closed its link: a
//! receive that was given up takes no message away from the receive after it.

use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{
    amqp::Amqp,
    background::{Background, Task},
    catalog::Catalog,
    control::Control,
    faults::Script,
};

/// What a handle needs to act on a bus.
#[derive(Debug)]
pub(crate) struct Doors {
    pub(crate) background: Arc<Background>,
    pub(crate) amqp: Amqp,
    pub(crate) control: Control,
    /// What the bus was started with.
    pub(crate) declared: Catalog,
    pub(crate) cancelled: Cancelled,
    /// The faults that must have fired when the bus ends.
    pub(crate) script: Script,
}

/// Operations that were given up; each tells when it is over.
#[derive(Debug, Default)]
pub(crate) struct Cancelled(Mutex<Vec<oneshot::Receiver<()>>>);

impl Doors {
    /// Returns what the bus holds now, as far as it says so.
    pub(crate) async fn catalog(&self) -> Catalog {
        Catalog::fetch(&self.control)
            .await
            .unwrap_or_else(|| self.declared.clone())
    }

    /// Runs an operation on the background runtime; dropping the future cancels it.
    pub(crate) fn run<T, F>(
        self: &Arc<Self>,
        operation: impl FnOnce(Arc<Self>) -> F,
    ) -> impl Future<Output = T> + Send
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        Arc::clone(self).carry_out(Box::pin(operation(Arc::clone(self))))
    }

    /// Does so once for each type of answer: there are many more operations, and each would be compiled.
    async fn carry_out<T: Send + 'static>(
        self: Arc<Self>,
        operation: Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> T {
        self.cancelled.over().await;
        let (task, over) = self.spawn(operation);
        Operation::new(task, over, self).await
    }

    /// Runs an operation that is told when it is given up, and then ends in its own way.
    pub(crate) async fn run_to_end<T, F>(
        self: &Arc<Self>,
        operation: impl FnOnce(Arc<Self>, GivenUp) -> F,
    ) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.cancelled.over().await;
        let (_awaited, given_up) = oneshot::channel();
        let operation = Box::pin(operation(Arc::clone(self), GivenUp(given_up)));
        let (task, over) = self.spawn(operation);
        Operation::new(task.ending_by_itself(), over, Arc::clone(self)).await
    }

    /// Doors that lead nowhere, for tests of what needs no answer.
    #[cfg(test)]
    pub(crate) fn unconnected() -> Arc<Self> {
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], 1));
        let login = crate::amqp::Login {
            address,
            hostname: String::new(),
            key_name: String::new(),
            key: String::new().into(),
            liveness: crate::liveness::Liveness::default(),
            secure: None,
        };
        Arc::new(Self {
            background: Arc::new(Background::start().expect("a runtime starts")),
            amqp: Amqp::new(login),
            control: Control::new(address, "none", crate::liveness::Liveness::default()),
            declared: Catalog::default(),
            cancelled: Cancelled::default(),
            script: Script::default(),
        })
    }

    fn spawn<T: Send + 'static>(
        &self,
        operation: Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> (Task<T>, oneshot::Receiver<()>) {
        let (alive, over) = oneshot::channel::<()>();
        let task = self.background.spawn(async move {
            // Declared first, so dropped last: after the links of the operation.
            let _alive = alive;
            operation.await
        });
        (task, over)
    }
}

/// Ends when nobody waits for an operation any longer.
#[derive(Debug)]
pub(crate) struct GivenUp(oneshot::Receiver<()>);

impl GivenUp {
    /// Waits for that.
    pub(crate) async fn wait(&mut self) {
        // The other end is dropped, never used: its drop is the news.
        let _ = (&mut self.0).await;
    }
}

impl Cancelled {
    /// Waits until every operation that was given up is over.
    async fn over(&self) {
        let waiting = std::mem::take(&mut *self.0.lock());
        for over in waiting {
            // The sender is dropped, never used: its end is the news.
            let _ = over.await;
        }
    }

    fn push(&self, over: oneshot::Receiver<()>) {
        let mut waiting = self.0.lock();
        waiting.push(over);
    }
}

/// An operation that leaves word when it is given up.
struct Operation<T> {
    task: Task<T>,
    over: Option<oneshot::Receiver<()>>,
    doors: Arc<Doors>,
}

impl<T> Operation<T> {
    fn new(task: Task<T>, over: oneshot::Receiver<()>, doors: Arc<Doors>) -> Self {
        let over = Some(over);
        Self { task, over, doors }
    }
}

impl<T> Future for Operation<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let polled = Pin::new(&mut self.task).poll(context);
        if polled.is_ready() {
            self.over = None;
        }
        polled
    }
}

impl<T> Drop for Operation<T> {
    fn drop(&mut self) {
        if let Some(over) = self.over.take() {
            self.doors.cancelled.push(over);
        }
    }
}
