//! The emulator as a child process.
//!
//! The child listens on a loopback address and says so in one line of JSON. It ends when its
//! standard input closes, so a killed test leaves none behind; what it writes to standard error is kept for
//! the day it fails.

mod binary;
mod child;
mod ready;

use std::{
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use crate::{
    address::{Place, Search, random_number},
    background::Background,
    keep,
    running::{HttpPorts, Namespace, Running, Started},
    start_error::StartError,
};

pub(crate) use child::{ChildProcess, ChildView};
pub(crate) use ready::ReadyError;

use child::ExitedEarly;

/// The exit code by which the emulator says that it cannot listen.
const CANNOT_LISTEN: i32 = 3;

/// What a child is started with.
#[derive(Debug, Clone)]
pub(crate) struct ProcessOptions {
    pub(crate) binary: Option<PathBuf>,
    pub(crate) topology: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) ready_within: Duration,
    pub(crate) ports: HttpPorts,
    pub(crate) place: Place,
    /// Whether it may go on when its namespace is kept.
    pub(crate) may_stay: bool,
}

/// Starts a child on an address of the place.
pub(crate) async fn start(
    background: &Arc<Background>,
    options: ProcessOptions,
) -> Result<Started, StartError> {
    let binary = binary::find(options.binary.as_deref())?;
    let topology = options
        .topology
        .as_deref()
        .map(TemporaryFile::write)
        .transpose()
        .map_err(StartError::TemporaryFile)?;

    let stays = options.may_stay && keep::is_asked();
    let mut search = Search::new(options.place);
    loop {
        let address = search.next(background).await?;
        let arguments = arguments(&options, address, stays, topology.as_ref());
        let spawned = ChildProcess::spawn(&binary, &arguments, stays);
        let mut child = spawned.map_err(|source| StartError::Spawn {
            binary: binary.clone(),
            source,
        })?;
        let waiting = child.ready_line(options.ready_within);
        // The deadline is real time, also when the test's runtime is paused.
        match background.spawn(waiting).await {
            Ok(line) => return Ok(started(&binary, child, &line)?),
            Err(_) if child.exit_code() == Some(CANNOT_LISTEN) => {
                search.taken(child.last_output());
            }
            Err(early) => {
                return Err(not_ready(&binary, &child, early, options.ready_within).into());
            }
        }
    }
}

fn arguments(
    options: &ProcessOptions,
    address: Ipv4Addr,
    stays: bool,
    topology: Option<&TemporaryFile>,
) -> Vec<String> {
    // The ports are said, so that the environment of the test does not say others.
    let fixed = [
        "--record-messages",
        "--amqp-port",
        "5672",
        "--amqps-port",
        "5671",
    ];
    let mut arguments = fixed.map(str::to_owned).to_vec();
    if !stays {
        arguments.push("--exit-with-stdin".to_owned());
    }
    let https = options.ports.https;
    let https = https.map_or_else(|| "off".to_owned(), |port| port.to_string());
    arguments.extend(["--https-port".to_owned(), https]);
    arguments.extend(["--http-port".to_owned(), options.ports.http.to_string()]);
    arguments.extend(["--host".to_owned(), address.to_string()]);
    if let Some(seed) = options.seed {
        arguments.extend(["--seed".to_owned(), seed.to_string()]);
    }
    if let Some(file) = topology {
        arguments.extend(["--config".to_owned(), file.0.display().to_string()]);
    }
    arguments
}

fn started(binary: &Path, child: ChildProcess, line: &str) -> Result<Started, ReadyError> {
    let ready = ready::parse(line)?;
    ready::check_version(binary, &ready.version)?;
    Ok(Started {
        endpoints: ready::endpoints(&ready),
        namespaces: ready.namespaces.into_iter().map(Namespace::from).collect(),
        ca_file: ready.ca_certificate,
        running: Running::Process(child),
    })
}

fn not_ready(
    binary: &Path,
    child: &ChildProcess,
    early: ExitedEarly,
    within: Duration,
) -> ReadyError {
    let binary = binary.to_owned();
    let output = child.last_output();
    match early {
        ExitedEarly::Deadline => ReadyError::Late {
            binary,
            within,
            output,
        },
        ExitedEarly::Ended => ReadyError::Ended {
            binary,
            status: child.status_text(),
            output,
        },
    }
}

/// A file for the child to read, removed when the child is ready or has failed.
#[derive(Debug)]
struct TemporaryFile(PathBuf);

impl TemporaryFile {
    fn write(text: &str) -> io::Result<Self> {
        let name = format!(
            "servicebus-harness-{}-{:016x}.json",
            std::process::id(),
            random_number()
        );
        let path = std::env::temp_dir().join(name);
        fs::write(&path, text)?;
        Ok(Self(path))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        // A file left behind in the temporary directory is harmless.
        let _ = fs::remove_file(&self.0);
    }
}
