//! The emulator as a child process.
//!
//! The child listens on a loopback address and says so in one line of JSON. It ends when its
//! standard input closes, so a killed test leaves none behind; what it writes to standard error is kept for
//! the day it fails.

mod child;

use std::{
    env, fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use child::{ChildProcess, ExitedEarly, check_version, endpoints, parse};

use crate::{
    address::{Place, Search, random_number},
    background::Background,
    endpoints::{HttpPorts, Namespace},
    error::Error,
    keep,
    liveness::described,
    running::Started,
    text,
};

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
) -> Result<Started, Error> {
    let binary = find_binary(options.binary.as_deref())?;
    let topology = options
        .topology
        .as_deref()
        .map(TemporaryFile::write)
        .transpose()
        .map_err(|error| {
            Error::start(format!(
                "cannot write the topology for the emulator process: {error}"
            ))
        })?;

    let stays = options.may_stay && keep::is_asked();
    let mut search = Search::new(options.place);
    loop {
        let address = search.next(background).await?;
        let arguments = arguments(&options, address, stays, topology.as_ref());
        let spawned = ChildProcess::spawn(&binary, &arguments, stays);
        let mut child = spawned
            .map_err(|error| Error::start(format!("cannot run {}: {error}", binary.display())))?;
        let waiting = child.ready_line(options.ready_within);
        // The deadline is real time, also when the test's runtime is paused.
        match background.spawn(waiting).await {
            Ok(line) => return started(&binary, child, &line),
            Err(_) if child.exit_code() == Some(CANNOT_LISTEN) => {
                search.taken(child.last_output());
            }
            Err(early) => {
                return Err(not_ready(&binary, &child, early, options.ready_within));
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

fn started(binary: &Path, child: ChildProcess, line: &str) -> Result<Started, Error> {
    let ready = parse(line)?;
    check_version(binary, &ready.version)?;
    Ok(Started {
        endpoints: endpoints(&ready),
        namespaces: ready.namespaces.into_iter().map(Namespace::from).collect(),
        ca_file: ready.ca_certificate,
        running: Box::new(child),
    })
}

fn not_ready(binary: &Path, child: &ChildProcess, early: ExitedEarly, within: Duration) -> Error {
    let (binary, output) = (binary.display(), described(&child.last_output()));
    Error::start(match early {
        ExitedEarly::Deadline => {
            let within = text::seconds(within);
            format!("{binary} did not become ready within {within}; {output}")
        }
        ExitedEarly::Ended => {
            let status = child.status_text();
            format!("{binary} ended before it was ready ({status}); {output}")
        }
    })
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
        let path = env::temp_dir().join(name);
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

const VARIABLE: &str = "SERVICEBUS_EMULATOR_BIN";
const NAME: &str = "servicebus-emulator";

/// Finds the binary.
pub(crate) fn find_binary(named: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = named {
        return existing(path, "the builder");
    }
    if let Some(path) = env::var_os(VARIABLE) {
        return existing(Path::new(&path), VARIABLE);
    }
    let searched = directories(env::current_exe().ok(), env::var_os("PATH"));
    searched
        .iter()
        .map(|directory| {
            directory
                .join(NAME)
                .with_extension(env::consts::EXE_EXTENSION)
        })
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| {
            let beside = searched.first().cloned().unwrap_or_default();
            Error::start(format!(
                "{NAME} is neither beside the tests ({}) nor on the PATH; run `cargo build -p servicebus-emulator`, or name it in {VARIABLE}",
                beside.display()
            ))
        })
}

fn existing(path: &Path, named_by: &'static str) -> Result<PathBuf, Error> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    Err(Error::start(format!(
        "no emulator binary at {}, named by {named_by}; run `cargo build -p servicebus-emulator`, and name none to have it found",
        path.display()
    )))
}

fn directories(executable: Option<PathBuf>, path: Option<std::ffi::OsString>) -> Vec<PathBuf> {
    // Test executables are in `target/debug/deps`, examples in `target/debug/examples`, programs above.
    let beside = executable.and_then(|file| Some(file.parent()?.to_owned()));
    let above = beside.as_ref().and_then(|directory| directory.parent());
    let mut searched: Vec<PathBuf> = above.map(Path::to_owned).into_iter().collect();
    searched.extend(beside);
    searched.extend(path.iter().flat_map(env::split_paths));
    searched
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_directory_comes_before_the_path() {
        let searched = directories(
            Some(PathBuf::from("/target/debug/deps/test-1")),
            Some("/usr/bin".into()),
        );
        let expected = ["/target/debug", "/target/debug/deps", "/usr/bin"];
        assert_eq!(searched, expected.map(PathBuf::from));
    }

    #[test]
    fn a_named_binary_that_is_missing_is_an_error() {
        let error = find_binary(Some(Path::new("/nowhere/servicebus-emulator"))).unwrap_err();
        assert_eq!(
            error.to_string(),
            "no emulator binary at /nowhere/servicebus-emulator, named by the builder; run `cargo build -p servicebus-emulator`, and name none to have it found"
        );
    }
}
