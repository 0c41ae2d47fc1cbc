//! The connections to a running namespace, which its clients share.
//!
//! Clients share the connections but not the emulator: the emulator ends with its [`ServiceBus`](crate::ServiceBus), even if
//! clients remain. All work runs on the background runtime. When a test drops a future, that cancels the operation, and the
//! next operation does not begin before the cancelled one has closed its link: a cancelled receive takes no message from the
//! next one, except one that it deletes.

use std::{
    env,
    future::Future,
    panic::Location,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use parking_lot::Mutex;
use servicebus_assertions::{Evidence, not_idle};
use tokio::sync::oneshot;

use crate::{
    amqp::Amqp,
    backend::{Backend, BoxFuture},
    background::{Background, CancelSignal, Stopwatch, Task},
    catalog::Catalog,
    error::control::ControlError,
    error::{Error, ErrorKind},
    running::Termination,
    scripted_faults::ScriptedFaults,
    text,
    variables::{UNCHECKED_VARIABLE, WITHIN_VARIABLE},
};

/// The status of the emulator for a timeout.
const REQUEST_TIMEOUT: u16 = 408;

/// What a client needs to act on a namespace.
#[derive(Debug)]
pub(crate) struct Connections {
    pub(crate) background: Arc<Background>,
    pub(crate) amqp: Amqp,
    pub(crate) backend: Arc<dyn Backend>,
    /// The entities that the namespace was started with.
    pub(crate) declared: Catalog,
    pub(crate) cancelled: Cancelled,
    /// The faults that must have fired when the namespace ends.
    pub(crate) scripted_faults: ScriptedFaults,
    /// How the emulator ended before a restart that then failed.
    pub(crate) unfinished_restart: Mutex<Option<Termination>>,
    /// How long a test waits for what it expects, unless it sets another time.
    pub(crate) within: Duration,
    /// Whether messages that are left when the namespace ends fail the test.
    pub(crate) leak_check: bool,
    /// The line of the test that started the namespace.
    pub(crate) started_at: &'static Location<'static>,
    /// The assertions that were skipped because they could not be checked.
    pub(crate) unchecked: Unchecked,
    /// The entity or message that explains the last failed assertion, for a link to the inspector.
    pub(crate) evidence: Mutex<Option<Evidence>>,
}

/// Cancelled operations; each signals when it has ended.
#[derive(Debug, Default)]
pub(crate) struct Cancelled {
    /// Those that no operation has waited for yet.
    added: Mutex<Vec<oneshot::Receiver<()>>>,
    /// Those that an operation waits for, while all later operations wait for the lock.
    awaited: tokio::sync::Mutex<Vec<oneshot::Receiver<()>>>,
}

impl Connections {
    /// Returns the entities that the namespace holds now; those it was started with if it does not list them.
    pub(crate) async fn catalog(&self) -> Catalog {
        let listed = self.backend.catalog().await;
        listed.unwrap_or_else(|_| self.declared.clone())
    }

    /// Waits until the namespace is idle, up to a deadline in real time.
    pub(crate) async fn wait_idle(&self, within: Duration) -> Result<(), Error> {
        let started = Stopwatch::start();
        loop {
            let left = within.saturating_sub(started.elapsed());
            match self.backend.wait_idle(left.min(LONGEST_WAIT)).await {
                Ok(()) => return Ok(()),
                Err(ControlError::Refused(busy)) if busy.status == REQUEST_TIMEOUT => {
                    if left <= LONGEST_WAIT {
                        let sentence = not_idle(within, busy.problems);
                        return Err(Error::new(ErrorKind::Timeout, None, sentence));
                    }
                }
                Err(source) => {
                    return Err(Error::during("wait until the namespace is idle", source));
                }
            }
        }
    }

    /// Sends the namespace a request beside its messages.
    pub(crate) async fn ask<T: Send + 'static>(
        self: &Arc<Self>,
        request: impl for<'a> FnOnce(&'a dyn Backend) -> BoxFuture<'a, T> + Send + 'static,
    ) -> Result<T, Error> {
        let request = self.run(|connections| async move { request(&*connections.backend).await });
        Ok(request.await?)
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
        Arc::clone(self).run_boxed(Box::pin(operation(Arc::clone(self))))
    }

    /// Generic over the type of answer only: the operations are many more, and each would be compiled.
    async fn run_boxed<T: Send + 'static>(
        self: Arc<Self>,
        operation: Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> T {
        self.cancelled.all_ended().await;
        Operation {
            running: Some(self.spawn(operation)),
            give_back: None,
            connections: self,
        }
        .await
    }

    /// Runs an operation that is notified of its cancellation, and then ends in its own way. Its result is given back if it is
    /// cancelled when it has ended, but before the caller has the result.
    pub(crate) async fn run_to_end<T, F, G>(
        self: &Arc<Self>,
        operation: impl FnOnce(Arc<Self>, CancelSignal) -> F,
        give_back: impl FnOnce(T) -> G + Send + 'static,
    ) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
        G: Future<Output = ()> + Send + 'static,
    {
        self.cancelled.all_ended().await;
        let (_awaited, cancel) = oneshot::channel();
        let operation = Box::pin(operation(Arc::clone(self), CancelSignal(cancel)));
        let (task, ended) = self.spawn(operation);
        Operation {
            running: Some((task.detached(), ended)),
            give_back: Some(Box::new(|value| Box::pin(give_back(value)))),
            connections: Arc::clone(self),
        }
        .await
    }

    fn spawn<T: Send + 'static>(
        &self,
        operation: Pin<Box<dyn Future<Output = T> + Send>>,
    ) -> (Task<T>, oneshot::Receiver<()>) {
        let (alive, ended) = oneshot::channel::<()>();
        let task = self.background.spawn(async move {
            // Declared first, so dropped last: after the links of the operation.
            let _alive = alive;
            operation.await
        });
        (task, ended)
    }
}

impl Cancelled {
    /// Waits until every cancelled operation has ended.
    async fn all_ended(&self) {
        let mut awaited = self.awaited.lock().await;
        awaited.append(&mut self.added.lock());
        // One is removed only once it has ended, because this wait can be cancelled, too.
        while let Some(ended) = awaited.last_mut() {
            // The sender never sends: its drop is an error here.
            let _ = ended.await;
            awaited.pop();
        }
    }

    fn push(&self, ended: oneshot::Receiver<()>) {
        self.added.lock().push(ended);
    }
}

/// An operation whose cancellation is recorded.
struct Operation<T: Send + 'static> {
    /// Until the caller has the result.
    running: Option<(Task<T>, oneshot::Receiver<()>)>,
    give_back: Option<GiveBack<T>>,
    connections: Arc<Connections>,
}

type GiveBack<T> = Box<dyn FnOnce(T) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send>;

impl<T: Send + 'static> Future for Operation<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        // Taken before, because the poll panics if the operation has.
        let (mut task, ended) = self.running.take().expect("it is awaited once");
        let polled = Pin::new(&mut task).poll(context);
        if polled.is_pending() {
            self.running = Some((task, ended));
        }
        polled
    }
}

impl<T: Send + 'static> Drop for Operation<T> {
    fn drop(&mut self) {
        let Some((task, ended)) = self.running.take() else {
            return;
        };
        let ended = match self.give_back.take() {
            None => ended,
            Some(give_back) => {
                let giving_back = Box::pin(async move { give_back(task.await).await });
                let (task, ended) = self.connections.spawn(giving_back);
                drop(task.detached());
                ended
            }
        };
        self.connections.cancelled.push(ended);
    }
}

/// The longest wait for an idle namespace that the control API accepts; a longer one is repeated.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// The default wait.
pub(crate) const WITHIN: Duration = Duration::from_secs(5);

/// Returns the wait of the builder, else of the environment, else 5 s.
pub(crate) fn within(built: Option<Duration>) -> Result<Duration, Error> {
    let named = env::var(WITHIN_VARIABLE);
    match (built, named.ok().filter(|value| !value.is_empty())) {
        (Some(built), _) => Ok(built),
        (None, Some(value)) => parsed(&value).ok_or_else(|| {
            Error::start(format!(
                "{WITHIN_VARIABLE} is \"{value}\"; allowed: seconds, such as 20 or 0.5"
            ))
        }),
        (None, None) => Ok(WITHIN),
    }
}

fn parsed(value: &str) -> Option<Duration> {
    let seconds: f64 = value.trim().parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok()
}

/// The skipped assertions, which are reported when the namespace ends.
#[derive(Debug)]
pub(crate) struct Unchecked {
    may_skip: bool,
    skipped: Mutex<Vec<String>>,
}

impl Unchecked {
    pub(crate) fn from_environment() -> Result<Self, Error> {
        let value = env::var_os(UNCHECKED_VARIABLE).unwrap_or_default();
        let value = value.to_string_lossy();
        match &*value {
            "" | "skip" => Ok(Self {
                may_skip: !value.is_empty(),
                skipped: Mutex::default(),
            }),
            _ => Err(Error::start(format!(
                "{UNCHECKED_VARIABLE} is \"{value}\"; allowed: skip"
            ))),
        }
    }

    /// Skips an assertion, if the environment allows that.
    pub(crate) fn skips(&self, assertion: &str, why: &str) -> bool {
        if self.may_skip {
            let why = why.lines().next().unwrap_or_default();
            self.skipped.lock().push(format!("{assertion}: {why}"));
        }
        self.may_skip
    }
}

impl Drop for Unchecked {
    fn drop(&mut self) {
        let skipped = self.skipped.get_mut();
        if skipped.is_empty() {
            return;
        }
        let lines = skipped.iter().map(|line| format!("\n  {line}"));
        let count = text::count(skipped.len() as u64, "assertion");
        eprintln!(
            "{UNCHECKED_VARIABLE}: {count} skipped{}",
            String::from_iter(lines)
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_are_parsed() {
        assert_eq!(parsed(" 20 "), Some(Duration::from_secs(20)));
        assert_eq!(parsed("0.5"), Some(Duration::from_millis(500)));
        for wrong in ["", "-1", "20 s", "NaN"] {
            assert_eq!(parsed(wrong), None, "{wrong}");
        }
    }
}
