//! The binary, as a script starts it.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde_json::Value;

use super::http::Http;
use super::peer::{Open, Peer};
use super::{TIMEOUT, eventually};

const BINARY: &str = env!("CARGO_BIN_EXE_servicebus-emulator");

/// The arguments for free ports of 127.0.0.1.
pub(crate) const FREE_PORTS: [&str; 3] = ["--host=127.0.0.1", "--amqp-port=0", "--http-port=0"];

/// A running emulator; killed when dropped.
#[derive(Debug)]
pub(crate) struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    /// The lines of standard output, as they come.
    lines: mpsc::Receiver<String>,
    errors: mpsc::Receiver<String>,
    pub(crate) ready: Value,
}

/// How a process ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    /// What it wrote to standard output after the ready line.
    pub(crate) stdout: Vec<String>,
    pub(crate) stderr: String,
}

impl Process {
    /// Starts on free ports of 127.0.0.1 and waits for the ready line.
    pub(crate) fn start(arguments: &[&str]) -> Self {
        Self::start_with(&[&FREE_PORTS[..], arguments].concat(), &[])
    }

    /// Starts with exactly these arguments and variables, and waits for the ready line.
    pub(crate) fn start_with(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let (process, read_errors) = Self::start_unread(arguments, variables);
        thread::spawn(read_errors);
        process
    }

    /// The same without reading standard error, which the returned function does.
    pub(crate) fn start_unread(
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> (Self, impl FnOnce() + Send + 'static) {
        let mut child = spawn(arguments, variables);
        let stdin = child.stdin.take();
        let stdout = child.stdout.take().expect("standard output is piped");
        let (lines_in, lines) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = lines_in.send(line);
            }
        });
        let mut stderr = child.stderr.take().expect("standard error is piped");
        let (errors_in, errors) = mpsc::channel();
        let mut read_errors = move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            let _ = errors_in.send(text);
        };
        let line = lines.recv_timeout(TIMEOUT).unwrap_or_else(|error| {
            let _ = child.kill();
            read_errors();
            panic!("no ready line: {error}; {:?}", errors.recv_timeout(TIMEOUT))
        });
        let ready = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let process = Self {
            child,
            stdin,
            lines,
            errors,
            ready,
        };
        (process, read_errors)
    }

    /// A client that may do everything.
    pub(crate) fn client(&self) -> Peer {
        self.client_as(&Open::default())
    }

    /// The same under a name.
    pub(crate) fn client_as(&self, open: &Open) -> Peer {
        let mut peer = Peer::open(self.amqp(), open);
        peer.let_in();
        peer
    }

    /// Memory of the process that is in use, in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/statm", self.pid());
        let text = std::fs::read_to_string(path).expect("the kernel tells");
        let pages = text
            .split(' ')
            .nth(1)
            .and_then(|pages| pages.parse::<u64>().ok());
        pages.expect("the second number are pages") * 4096
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn amqp(&self) -> SocketAddr {
        self.address("amqp")
    }

    pub(crate) fn http(&self) -> Http {
        Http(self.address("http"))
    }

    pub(crate) fn address(&self, listener: &str) -> SocketAddr {
        let address = self.ready[listener]
            .as_str()
            .and_then(|address| address.parse().ok());
        address.unwrap_or_else(|| panic!("no address of {listener}: {}", self.ready))
    }

    /// Sends a signal by its name.
    pub(crate) fn signal(&self, name: &str) {
        signal(self.pid(), name);
    }

    pub(crate) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Sends a signal by its name, and waits until the process has ended.
    pub(crate) fn ended_by(self, signal: &str) -> Ended {
        self.signal(signal);
        self.ended()
    }

    /// Returns the exit code once the process has ended by itself.
    pub(crate) fn exit_code(&mut self) -> Option<i32> {
        wait_for_end(&mut self.child)
    }

    /// Waits until the process has ended by itself.
    pub(crate) fn ended(mut self) -> Ended {
        let code = self.exit_code();
        Ended {
            code,
            stdout: self.lines.iter().collect(),
            stderr: self.errors.recv_timeout(TIMEOUT).unwrap_or_default(),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A loopback address on which only its owner uses ports, if the system has several: on the usual one every connection of
/// every test uses some port.
pub(crate) fn own_loopback(block: u8) -> Option<String> {
    let pid = std::process::id();
    let host = format!("127.{block}.{}.{}", pid / 250 % 250, pid % 250 + 1);
    let is_there = TcpListener::bind((host.as_str(), 0)).is_ok();
    is_there.then_some(host)
}

/// What a run of the binary wrote, and its exit code.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs the binary to its end.
pub(crate) fn run(arguments: &[&str], variables: &[(&str, &str)]) -> Ran {
    end(&mut command(arguments, variables))
}

/// Runs the binary to its end with this standard output.
pub(crate) fn run_into(stdout: impl Into<Stdio>, arguments: &[&str]) -> Ran {
    end(command(arguments, &[]).stdout(stdout))
}

fn end(command: &mut Command) -> Ran {
    let output = command.output().expect("the binary starts");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Ran {
        code: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Runs the binary to its end, which must be good; returns what it wrote to standard output.
#[track_caller]
pub(crate) fn printed(arguments: &[&str]) -> String {
    let ran = run(arguments, &[]);
    assert_eq!(ran.code, Some(0), "{arguments:?}: {ran:?}");
    ran.stdout
}

/// Runs the binary to its end, which must have this exit code and nothing on standard output; returns the errors.
#[track_caller]
pub(crate) fn failure(code: i32, arguments: &[&str]) -> String {
    let ran = run(arguments, &[]);
    assert_eq!(ran.code, Some(code), "{arguments:?}: {ran:?}");
    assert!(ran.stdout.is_empty(), "{arguments:?}: {ran:?}");
    ran.stderr
}

/// Starts the binary with everything piped.
pub(crate) fn spawn(arguments: &[&str], variables: &[(&str, &str)]) -> Child {
    let mut command = command(arguments, variables);
    command.stdin(Stdio::piped());
    command.spawn().expect("the binary starts")
}

/// Sends a signal by its name.
pub(crate) fn signal(pid: u32, name: &str) {
    let arguments = [format!("-{name}"), pid.to_string()];
    let status = Command::new("kill").args(arguments).status();
    assert!(status.expect("kill can be run").success());
}

fn wait_for_end(child: &mut Child) -> Option<i32> {
    let status = eventually("the end of the process", || {
        child.try_wait().expect("it can be waited for")
    });
    status.code()
}

fn command(arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(BINARY);
    let ours = |name: &str| {
        ["SERVICEBUS_", "EMULATOR_", "OTEL_"]
            .iter()
            .any(|own| name.starts_with(own))
    };
    for (name, _) in std::env::vars().filter(|(name, _)| ours(name)) {
        command.env_remove(name);
    }
    // Tests leave nothing in the user's cache directory, and do not depend on its contents.
    command.env("XDG_CACHE_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.args(arguments).envs(variables.iter().copied());
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}
