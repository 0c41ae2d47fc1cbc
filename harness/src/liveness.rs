//! Explains why an emulator does not answer, with the last output of one in another process.

use std::{
    collections::VecDeque,
    io,
    process::{Child, ExitStatus},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;

/// How long to wait for the end of an emulator that has closed its connections.
pub(crate) const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// The interval between two polls.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Detects whether an emulator has ended, without keeping it alive.
#[derive(Debug, Clone, Default)]
pub(crate) enum Liveness {
    /// The emulator lives as long as the test's process.
    #[default]
    InProcess,
    Child(ChildView),
    #[cfg(feature = "container")]
    Container(Output),
}

impl Liveness {
    /// Replaces a connection error by the end of the emulator, if it has ended.
    pub(crate) async fn explain(&self, error: io::Error) -> io::Error {
        if matches!(self, Self::InProcess) {
            return error;
        }
        // A dying process closes its sockets shortly before its end can be observed.
        wait_until(EXIT_TIMEOUT, || self.end().is_some()).await;
        self.end().map_or(error, io::Error::other)
    }

    fn end(&self) -> Option<String> {
        match self {
            Self::InProcess => None,
            Self::Child(child) => child.end().map(|status| {
                let output = describe_output(&child.last_output());
                format!("the emulator process has ended ({status}); {output}")
            }),
            #[cfg(feature = "container")]
            Self::Container(output) => output.is_complete().then(|| {
                let output = describe_output(&output.text());
                format!("the emulator's container has ended; {output}")
            }),
        }
    }
}

/// Whether the `ServiceBus` of a namespace has ended, which its clients may outlive.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamespaceEnd(Arc<AtomicBool>);

/// The error of operations after that: another namespace may have the address by then.
#[derive(Debug, thiserror::Error)]
#[error(
    "the namespace has ended, because its `ServiceBus` was stopped or dropped; keep that until the last operation"
)]
pub(crate) struct NamespaceEnded;

impl NamespaceEnd {
    pub(crate) fn check(&self) -> Result<(), NamespaceEnded> {
        match self.0.load(Ordering::Relaxed) {
            true => Err(NamespaceEnded),
            false => Ok(()),
        }
    }
}

/// Marks the namespace as ended when it is dropped.
#[derive(Debug)]
pub(crate) struct EndOnDrop(pub(crate) NamespaceEnd);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// A view of the child that does not keep it alive.
#[derive(Debug, Clone)]
pub(crate) struct ChildView {
    child: Arc<Mutex<Child>>,
    output: Output,
}

impl ChildView {
    pub(crate) fn new(child: &Arc<Mutex<Child>>, output: &Output) -> Self {
        Self {
            child: Arc::clone(child),
            output: output.clone(),
        }
    }

    /// Returns the exit status, once the child has ended and its output was read.
    pub(crate) fn end(&self) -> Option<ExitStatus> {
        self.status().filter(|_| self.output.is_complete())
    }

    pub(crate) fn last_output(&self) -> String {
        self.output.text()
    }

    pub(crate) fn status(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock();
        child.try_wait().ok().flatten()
    }

    pub(crate) async fn wait_for_end(&self, within: Duration) {
        wait_until(within, || self.end().is_some()).await;
    }
}

/// Waits until a condition holds, up to `within`. Must run on a runtime with real time.
pub(crate) async fn wait_until(within: Duration, condition: impl Fn() -> bool) {
    let started = Instant::now();
    while !condition() && started.elapsed() < within {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The number of lines to keep.
const KEPT_LINES: usize = 40;

/// The last lines that an emulator wrote to standard error; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output(Arc<Mutex<Arc<Mutex<Lines>>>>);

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<String>,
    complete: bool,
}

impl Output {
    pub(crate) fn push(&self, line: String) {
        let lines = self.lines();
        let mut lines = lines.lock();
        if lines.kept.len() == KEPT_LINES {
            lines.kept.pop_front();
        }
        lines.kept.push_back(line);
    }

    /// Marks the end of the output.
    pub(crate) fn complete(&self) {
        self.lines().lock().complete = true;
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.lines().lock().complete
    }

    pub(crate) fn text(&self) -> String {
        Vec::from_iter(self.lines().lock().kept.iter().cloned()).join("\n")
    }

    /// Continues with the output of a restarted emulator.
    pub(crate) fn continue_with(&self, other: &Self) {
        let lines = other.lines();
        *self.0.lock() = lines;
    }

    fn lines(&self) -> Arc<Mutex<Lines>> {
        Arc::clone(&self.0.lock())
    }
}

/// Describes the last output, or its absence.
pub(crate) fn describe_output(output: &str) -> String {
    match output {
        "" => "it wrote nothing to standard error".to_owned(),
        output => format!("its last output was:\n{output}"),
    }
}
