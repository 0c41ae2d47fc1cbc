//! A child, its last output, and its end.
//!
//! Two threads read what the child writes, so that it never waits for a reader. Dropping the value closes
//! the child's standard input, which is its order to end; a third thread then collects it, and kills it
//! should it not obey. None of this blocks the drop. A child that may stay, because namespaces of failed tests are
//! kept, is left alone by a panic.

use std::{
    future::Future,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{
    liveness::{DYING_WITHIN, Liveness, until},
    output::Output,
};

/// How long a child may take to end before it is killed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A child process that ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    stdin: Option<ChildStdin>,
    child: Arc<Mutex<Child>>,
    output: Output,
    ready: Option<oneshot::Receiver<String>>,
    /// Whether it does not end with its input, and may outlive a test that fails.
    stays: bool,
}

/// Why there was no ready line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitedEarly {
    Deadline,
    Ended,
}

/// A look at the child that does not keep it alive.
#[derive(Debug, Clone)]
pub(crate) struct ChildView {
    child: Arc<Mutex<Child>>,
    output: Output,
}

impl ChildProcess {
    pub(crate) fn spawn(binary: &Path, arguments: &[String], stays: bool) -> io::Result<Self> {
        let mut child = Command::new(binary)
            .args(arguments)
            .env_remove("SERVICEBUS_EMULATOR_CONFIG")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        let output = Output::default();
        let (first_line, ready) = oneshot::channel();
        if let Some(stdout) = child.stdout.take() {
            thread::spawn(move || read_stdout(stdout, first_line));
        }
        if let Some(stderr) = child.stderr.take() {
            let output = output.clone();
            thread::spawn(move || read_stderr(stderr, &output));
        }
        Ok(Self {
            stdin: child.stdin.take(),
            child: Arc::new(Mutex::new(child)),
            output,
            ready: Some(ready),
            stays,
        })
    }

    /// Waits for the first line of standard output. To be awaited where time is real.
    pub(crate) fn ready_line(
        &mut self,
        within: Duration,
    ) -> impl Future<Output = Result<String, ExitedEarly>> + Send + 'static {
        let ready = self.ready.take();
        let view = self.view();
        async move {
            let ready = ready.ok_or(ExitedEarly::Ended)?;
            match tokio::time::timeout(within, ready).await {
                Ok(Ok(line)) => Ok(line),
                Ok(Err(_closed)) => {
                    view.wait_for_end(DYING_WITHIN).await;
                    Err(ExitedEarly::Ended)
                }
                Err(_elapsed) => Err(ExitedEarly::Deadline),
            }
        }
    }

    /// Orders the child to end and waits until it has ended.
    pub(crate) async fn stop(self) {
        let view = self.view();
        drop(self);
        // A little longer than it takes to lose patience.
        view.wait_for_end(TIMEOUT * 2).await;
    }

    /// Returns the id of the process.
    pub(crate) fn id(&self) -> u32 {
        let child = self.child.lock();
        child.id()
    }

    /// Lets others see whether the child lives.
    pub(crate) fn liveness(&self) -> Liveness {
        Liveness::Child(self.view())
    }

    pub(crate) fn exit_code(&self) -> Option<i32> {
        self.view().status()?.code()
    }

    pub(crate) fn status_text(&self) -> String {
        self.view().status().map_or_else(
            || "no exit status yet".to_owned(),
            |status| status.to_string(),
        )
    }

    pub(crate) fn last_output(&self) -> String {
        self.view().last_output()
    }

    fn view(&self) -> ChildView {
        ChildView {
            child: Arc::clone(&self.child),
            output: self.output.clone(),
        }
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        drop(self.stdin.take());
        if self.stays && thread::panicking() {
            return;
        }
        let child = Arc::clone(&self.child);
        if self.stays {
            let mut child = child.lock();
            let _ = child.kill();
        }
        // Without a thread the child still ends by itself and is only collected later.
        let _ = thread::Builder::new().spawn(move || collect(&child));
    }
}

impl ChildView {
    /// How it ended, once it has and all it wrote has been read.
    pub(crate) fn end(&self) -> Option<ExitStatus> {
        self.status().filter(|_| self.output.is_complete())
    }

    pub(crate) fn last_output(&self) -> String {
        self.output.text()
    }

    fn status(&self) -> Option<ExitStatus> {
        let mut child = self.child.lock();
        child.try_wait().ok().flatten()
    }

    async fn wait_for_end(&self, within: Duration) {
        until(within, || self.end().is_some()).await;
    }
}

fn read_stdout(stdout: impl Read, first_line: oneshot::Sender<String>) {
    let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
    if let Some(line) = lines.next() {
        // The receiver may have been dropped.
        let _ = first_line.send(line);
    }
    lines.for_each(drop);
}

fn read_stderr(stderr: impl Read, output: &Output) {
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        output.push(line);
    }
    output.complete();
}

fn collect(child: &Mutex<Child>) {
    let ordered = Instant::now();
    loop {
        let mut child = child.lock();
        match child.try_wait() {
            Ok(None) if ordered.elapsed() < TIMEOUT => {}
            Ok(None) => {
                let _ = child.kill();
                let _ = child.wait();
                return;
            }
            Ok(Some(_)) | Err(_) => return,
        }
        drop(child);
        thread::sleep(Duration::from_millis(10));
    }
}
