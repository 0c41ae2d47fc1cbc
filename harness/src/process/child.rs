//! A child process, its last output, and its end.
//!
//! Two threads read the child's output, so that the child never blocks on it. Dropping the value closes the child's standard
//! input, which makes the child exit; a third thread waits for it, and kills it after a timeout. The drop never blocks. A
//! child that may stay, because namespaces of failed tests are kept, is left running by a panic.

use std::{
    env,
    ffi::OsStr,
    future::Future,
    io::{self, BufRead, BufReader, Read},
    path::Path,
    process::{Child, ChildStdin, Command, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use servicebus_control_api::Ready;
use tokio::sync::oneshot;

use super::HOW_TO_BUILD;
use crate::{
    endpoints::Endpoints,
    error::Error,
    liveness::{ChildView, EXIT_TIMEOUT, Liveness, Output},
    running::{Termination, VERSION},
};

/// How long a child may take to exit before it is killed.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A child process that ends when this value is dropped.
#[derive(Debug)]
pub(crate) struct ChildProcess {
    stdin: Mutex<Option<ChildStdin>>,
    child: Arc<Mutex<Child>>,
    output: Output,
    ready: Option<oneshot::Receiver<String>>,
    /// Whether the child ignores the end of its input, and may outlive a failed test.
    outlives_test: bool,
}

/// Why the child printed no ready line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitedEarly {
    Deadline,
    Ended,
}

impl ChildProcess {
    pub(crate) fn spawn(
        binary: &Path,
        arguments: &[String],
        outlives_test: bool,
    ) -> io::Result<Self> {
        let mut command = Command::new(binary);
        for (name, _) in env::vars_os() {
            if is_emulator_option(&name) {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(arguments)
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
            stdin: Mutex::new(child.stdin.take()),
            child: Arc::new(Mutex::new(child)),
            output,
            ready: Some(ready),
            outlives_test,
        })
    }

    /// Waits for the first line of standard output. Must run on a runtime with real time.
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
                    view.wait_for_end(EXIT_TIMEOUT).await;
                    Err(ExitedEarly::Ended)
                }
                Err(_elapsed) => Err(ExitedEarly::Deadline),
            }
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.lock().id()
    }

    pub(crate) fn liveness(&self) -> Liveness {
        Liveness::Child(self.view())
    }

    /// Ends the child and waits for its exit. Must run on a runtime with real time.
    pub(crate) async fn end(&self, termination: Termination) {
        if termination == Termination::Stop && !self.outlives_test {
            drop(self.stdin.lock().take());
            self.view().wait_for_end(TIMEOUT).await;
        }
        if self.view().status().is_none() {
            let _ = self.child.lock().kill();
        }
        // Not before: a child whose input ends closes its connections, which a crash does not.
        drop(self.stdin.lock().take());
        self.view().wait_for_end(EXIT_TIMEOUT).await;
    }

    /// Replaces the child by its restarted successor, for all views.
    pub(crate) fn replace_with(&self, other: Self) {
        *self.stdin.lock() = other.stdin.lock().take();
        std::mem::swap(&mut *self.child.lock(), &mut *other.child.lock());
        self.output.continue_with(&other.output);
    }

    pub(crate) fn view(&self) -> ChildView {
        ChildView::new(&self.child, &self.output)
    }
}

/// Returns whether an environment variable sets an emulator option, such as its data directory or its control token. The
/// developer's may be set for another emulator, and the harness passes all options explicitly. The log level is still
/// inherited.
fn is_emulator_option(variable: &OsStr) -> bool {
    let name = variable.to_string_lossy();
    name.starts_with("SERVICEBUS_EMULATOR_") && name != "SERVICEBUS_EMULATOR_LOG"
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        drop(self.stdin.lock().take());
        if self.outlives_test && thread::panicking() {
            return;
        }
        let child = Arc::clone(&self.child);
        if self.outlives_test {
            let mut child = child.lock();
            let _ = child.kill();
        }
        // Without the thread the child still exits by itself, but is waited for later.
        let _ = thread::Builder::new().spawn(move || reap(&child));
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

fn reap(child: &Mutex<Child>) {
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

/// Returns the addresses at which the emulator listens.
pub(crate) fn endpoints(ready: &Ready) -> Endpoints {
    Endpoints {
        amqp: ready.amqp,
        // Requested by the options; a program of another version may not support it.
        amqps: ready.amqps.unwrap_or(ready.amqp),
        http: ready.http,
        https: ready.https,
    }
}

pub(crate) fn parse(line: &str) -> Result<Ready, Error> {
    serde_json::from_str(line).map_err(|error| {
        Error::start(format!(
            "the emulator's first line is not a ready line ({error}): {line}"
        ))
    })
}

pub(crate) fn check_version(binary: &Path, found: &str) -> Result<(), Error> {
    if found == VERSION {
        return Ok(());
    }
    Err(Error::start(format!(
        "{} is version {found}, this harness needs {VERSION}; {HOW_TO_BUILD}",
        binary.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_parsed() {
        let line = r#"{"event":"ready","version":"0.1.0","pid":4711,"amqp":"127.0.0.1:5672",
            "amqps":"127.0.0.1:5671","http":"127.0.0.1:5300","https":null,"ca_certificate":null,"namespaces":[{"name":"sbemulatorns",
            "connection_string":"Endpoint=sb://localhost;","admin_connection_string":"Endpoint=sb://localhost:5300;"}]}"#;
        let ready = parse(line).unwrap();
        assert_eq!(endpoints(&ready).http.port(), 5300);
        assert_eq!(ready.namespaces[0].name, "sbemulatorns");
    }

    #[test]
    fn another_version_names_the_command_to_run() {
        let error = check_version(Path::new("/bin/servicebus-emulator"), "9.9.9").unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("/bin/servicebus-emulator is version 9.9.9"),
            "{text}"
        );
        assert!(
            text.ends_with("; run `cargo install --path <checkout>/emulator`, or in the checkout `cargo build -p servicebus-emulator`"),
            "{text}"
        );
    }
}
