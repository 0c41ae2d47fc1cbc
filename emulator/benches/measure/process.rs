//! The measured processes, which end when they are dropped.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, io};

use serde_json::Value;

use crate::arguments::ROLE;
use crate::secured_echo::{Listener, Wrapping};

/// The queue that the benchmarks use.
pub(crate) const QUEUE: &str = "bench";
/// The queue that requires sessions.
pub(crate) const SESSIONS: &str = "sessions";

/// Names another program to measure, to compare two builds.
const VARIABLE: &str = "SERVICEBUS_EMULATOR_BIN";

/// Locks that outlast every measurement, and no expiry.
const TOPOLOGY: &str = r#"{"UserConfig": {"Namespaces": [{"Name": "sbemulatorns", "Queues": [
    {"Name": "bench", "Properties": {"LockDuration": "PT5M", "MaxSizeInMegabytes": 81920}},
    {"Name": "sessions", "Properties": {"LockDuration": "PT5M", "RequiresSession": true}}
]}]}}"#;

/// A running emulator.
#[derive(Debug)]
pub(crate) struct Emulator {
    process: Process,
    pub(crate) amqp: SocketAddr,
    pub(crate) amqps: SocketAddr,
    pub(crate) http: SocketAddr,
    /// The file with the certificate for TLS clients.
    pub(crate) ca_certificate: PathBuf,
    /// For SDKs.
    pub(crate) connection_string: String,
}

/// A server that echoes its input.
#[derive(Debug)]
pub(crate) struct Echo {
    process: Process,
    pub(crate) address: SocketAddr,
}

/// An echo server over TLS, or over WebSocket and TLS.
#[derive(Debug)]
pub(crate) struct SecuredEcho {
    process: Process,
    pub(crate) listener: Listener,
}

/// A child that ends with its handle.
#[derive(Debug)]
struct Process(Child);

impl Emulator {
    /// Starts one on free ports.
    pub(crate) fn start() -> io::Result<Self> {
        Self::start_local(&[])
    }

    /// Starts an emulator on free ports with these arguments.
    pub(crate) fn start_local(arguments: &[&str]) -> io::Result<Self> {
        Self::start_with(&[&["--host", "127.0.0.1", "--amqp-port", "0"], arguments].concat())
    }

    /// Starts an emulator on a loopback address of its own and the port of AMQP, the only one that the Rust SDK uses.
    pub(crate) fn start_for_sdk(arguments: &[&str]) -> io::Result<Self> {
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let host = format!("127.77.{high}.{low}");
        Self::start_with(&[&["--host", host.as_str()], arguments].concat())
    }

    /// Starts an emulator on free ports in callgrind, which writes its counts to `log` when the emulator ends.
    pub(crate) fn start_under_callgrind(log: &Path) -> io::Result<Self> {
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        let log_file = format!("--log-file={}", log.display());
        command.arg(log_file).arg(Self::binary());
        command.env("TOKIO_WORKER_THREADS", "1");
        let arguments = [
            "--host",
            "127.0.0.1",
            "--amqp-port",
            "0",
            "--exit-with-stdin",
        ];
        Self::start_by(command, &arguments)
    }

    /// Closes its standard input, and waits until it has ended.
    pub(crate) fn end(mut self) -> io::Result<()> {
        drop(self.process.0.stdin.take());
        self.process.0.wait().map(drop)
    }

    fn start_with(arguments: &[&str]) -> io::Result<Self> {
        Self::start_by(Command::new(Self::binary()), arguments)
    }

    fn start_by(mut command: Command, arguments: &[&str]) -> io::Result<Self> {
        command.args(arguments).args(["--http-port", "0"]);
        command.arg("--config").arg(topology()?);
        let (process, line) = Process::start(&mut command)?;
        let ready: Value = serde_json::from_str(&line)?;
        let address = |listener: &str| {
            let address = ready[listener].as_str().unwrap_or_default();
            address
                .parse()
                .map_err(|_| io::Error::other(format!("no address in {line}")))
        };
        let connection_string = &ready["namespaces"][0]["connection_string"];
        Ok(Self {
            process,
            amqp: address("amqp")?,
            amqps: address("amqps")?,
            ca_certificate: ready["ca_certificate"].as_str().unwrap_or_default().into(),
            http: address("http")?,
            connection_string: connection_string.as_str().unwrap_or_default().to_owned(),
        })
    }

    /// Returns the program: that of this build, unless the variable names another.
    pub(crate) fn binary() -> PathBuf {
        let built = || env!("CARGO_BIN_EXE_servicebus-emulator").into();
        env::var_os(VARIABLE).map_or_else(built, PathBuf::from)
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

impl Echo {
    /// Starts this executable in its other role.
    pub(crate) fn start() -> io::Result<Self> {
        let (process, line) =
            Process::start(Command::new(env::current_exe()?).args([ROLE, "echo"]))?;
        let address = line.trim().parse().map_err(io::Error::other)?;
        Ok(Self { process, address })
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

impl SecuredEcho {
    /// Starts this executable in its other role.
    pub(crate) fn start(wrapping: Wrapping) -> io::Result<Self> {
        let role = match wrapping {
            Wrapping::Tls => "echo-tls",
            Wrapping::WebSocket => "echo-websocket",
        };
        let (process, line) = Process::start(Command::new(env::current_exe()?).args([ROLE, role]))?;
        Ok(Self {
            process,
            listener: Listener::read(&line)?,
        })
    }

    /// The number of its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.0.id()
    }
}

impl Process {
    /// Starts a program; returns after its first line.
    fn start(command: &mut Command) -> io::Result<(Self, String)> {
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut process = Self(child);
        let mut line = String::new();
        if let Some(stdout) = process.0.stdout.take() {
            BufReader::new(stdout).read_line(&mut line)?;
        }
        Ok((process, line))
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns the time from the start of a program to its first line; then ends it.
pub(crate) fn time_to_first_line(command: &mut Command) -> io::Result<std::time::Duration> {
    let begin = std::time::Instant::now();
    let (_process, line) = Process::start(command)?;
    let took = begin.elapsed();
    match line.is_empty() {
        true => Err(io::Error::other("the program said nothing")),
        false => Ok(took),
    }
}

/// The configuration file of the benchmarks.
fn topology() -> io::Result<PathBuf> {
    let path = scratch("topology.json");
    fs::write(&path, TOPOLOGY)?;
    Ok(path)
}

/// A file of ours in the build directory.
pub(crate) fn scratch(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}
