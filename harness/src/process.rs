//! Runs the emulator as a child process.
//!
//! The child listens on a loopback address and prints one line of JSON when it is ready. It ends when its standard input
//! closes, so a killed test leaves no child behind. The harness keeps the end of its standard error for error messages.

mod child;

use std::{
    env,
    ffi::OsString,
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use child::{ChildProcess, ExitedEarly, check_version, endpoints, parse};

use crate::{
    address::{AddressSearch, ListenAddress, RELEASE_TIMEOUT, random_number, retry_while_in_use},
    background::Background,
    data::Data,
    endpoints::{HttpPorts, Namespace},
    error::Error,
    keep,
    liveness::{Liveness, describe_output},
    running::{RestartFuture, Running, Started, StopFuture, Termination},
    text,
};

/// The exit code of an emulator that cannot listen.
const CANNOT_LISTEN: i32 = 3;

/// The start options of a child.
#[derive(Debug, Clone)]
pub(crate) struct ProcessOptions {
    pub(crate) binary: Option<PathBuf>,
    pub(crate) topology: Option<String>,
    pub(crate) seed: Option<u64>,
    pub(crate) ready_within: Duration,
    pub(crate) ports: HttpPorts,
    pub(crate) listen: ListenAddress,
    /// Whether the child may keep running when its namespace is kept.
    pub(crate) may_outlive_test: bool,
    pub(crate) data: Option<Data>,
}

/// How to start the child, the first time and again.
#[derive(Debug, Clone)]
struct Launch {
    binary: PathBuf,
    options: ProcessOptions,
    address: Ipv4Addr,
    outlives_test: bool,
}

/// An emulator in a child process.
#[derive(Debug)]
struct ProcessEmulator {
    child: Arc<ChildProcess>,
    launch: Launch,
}

/// Starts a child on an address of the place.
pub(crate) async fn start(
    background: &Arc<Background>,
    options: ProcessOptions,
) -> Result<Started, Error> {
    let binary = find_binary(options.binary.as_deref())?;
    let outlives_test = options.may_outlive_test && keep::is_asked()?;
    let mut search = AddressSearch::new(options.listen);
    loop {
        let address = search.next(background).await?;
        let launch = Launch {
            binary: binary.clone(),
            options: options.clone(),
            address,
            outlives_test,
        };
        let starting = launch.clone();
        // The deadline is in real time, also when the test's runtime is paused.
        match background
            .spawn(async move { starting.start().await })
            .await
        {
            Ok((child, line)) => return started(launch, child, &line),
            Err(NotReady::PortInUse(last)) => search.ports_taken(last),
            Err(NotReady::Failed(error)) => return Err(error),
        }
    }
}

/// Why a child did not become ready.
enum NotReady {
    /// Another process uses its ports.
    PortInUse(String),
    Failed(Error),
}

impl From<NotReady> for Error {
    fn from(not_ready: NotReady) -> Self {
        match not_ready {
            NotReady::PortInUse(last) => Self::start(last),
            NotReady::Failed(error) => error,
        }
    }
}

impl Launch {
    /// Starts a child and returns its first line. Must run on a runtime with real time.
    async fn start(&self) -> Result<(ChildProcess, String), NotReady> {
        let failed = |sentence| NotReady::Failed(Error::start(sentence));
        let topology = self.options.topology.as_deref();
        let topology = topology.map(TemporaryFile::write).transpose();
        let topology = topology.map_err(|error| {
            failed(format!(
                "cannot write the topology for the emulator process: {error}"
            ))
        })?;
        let arguments = arguments(
            &self.options,
            self.address,
            self.outlives_test,
            topology.as_ref(),
        );
        let spawned = ChildProcess::spawn(&self.binary, &arguments, self.outlives_test);
        let mut child = spawned
            .map_err(|error| failed(format!("cannot run {}: {error}", self.binary.display())))?;
        let within = self.options.ready_within;
        match child.ready_line(within).await {
            Ok(line) => Ok((child, line)),
            Err(_) if failed_to_listen(&child) => {
                Err(NotReady::PortInUse(child.view().last_output()))
            }
            Err(early) => {
                let error = not_ready(&self.binary, &child, early, within);
                Err(NotReady::Failed(error))
            }
        }
    }
}

impl Running for ProcessEmulator {
    fn process(&self) -> Option<u32> {
        self.launch.outlives_test.then(|| self.child.id())
    }

    fn liveness(&self) -> Liveness {
        self.child.liveness()
    }

    fn restart(&self, termination: Termination) -> RestartFuture {
        let (child, launch) = (Arc::clone(&self.child), self.launch.clone());
        Box::pin(async move {
            child.end(termination).await;
            let is_taken = |error: &NotReady| matches!(error, NotReady::PortInUse(_));
            let start = || {
                let launch = launch.clone();
                async move { launch.start().await }
            };
            let (started, _) = retry_while_in_use(RELEASE_TIMEOUT, start, is_taken).await?;
            child.replace_with(started);
            Ok(())
        })
    }

    fn stop(self: Box<Self>) -> StopFuture {
        Box::pin(async move { self.child.end(Termination::Stop).await })
    }
}

fn arguments(
    options: &ProcessOptions,
    address: Ipv4Addr,
    outlives_test: bool,
    topology: Option<&TemporaryFile>,
) -> Vec<String> {
    // The ports are explicit, so that variables in the test's environment do not change them.
    let fixed = [
        "--record-messages",
        "--amqp-port",
        "5672",
        "--amqps-port",
        "5671",
    ];
    let mut arguments = fixed.map(str::to_owned).to_vec();
    if !outlives_test {
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
    if let Some(data) = &options.data {
        let directory = data.directory().display().to_string();
        arguments.extend(["--data".to_owned(), directory]);
        arguments.extend(["--sync", "process"].map(str::to_owned));
    }
    if let Some(file) = topology {
        arguments.extend(["--config".to_owned(), file.0.display().to_string()]);
    }
    arguments
}

fn started(launch: Launch, child: ChildProcess, line: &str) -> Result<Started, Error> {
    let ready = parse(line)?;
    check_version(&launch.binary, &ready.version)?;
    Ok(Started {
        endpoints: endpoints(&ready),
        namespaces: ready.namespaces.into_iter().map(Namespace::from).collect(),
        ca_file: ready.ca_certificate,
        file_lock: None,
        running: Box::new(ProcessEmulator {
            child: Arc::new(child),
            launch,
        }),
    })
}

fn failed_to_listen(child: &ChildProcess) -> bool {
    let status = child.view().status();
    status.and_then(|status| status.code()) == Some(CANNOT_LISTEN)
}

fn not_ready(binary: &Path, child: &ChildProcess, early: ExitedEarly, within: Duration) -> Error {
    let (binary, output) = (
        binary.display(),
        describe_output(&child.view().last_output()),
    );
    Error::start(match early {
        ExitedEarly::Deadline => {
            let within = text::seconds(within);
            format!("{binary} did not become ready within {within}; {output}")
        }
        ExitedEarly::Ended => {
            let status = child.view().status();
            let status =
                status.map_or_else(|| "no exit status yet".to_owned(), |it| it.to_string());
            format!("{binary} ended before it was ready ({status}); {output}")
        }
    })
}

/// A file for the child to read, removed once the child is ready or has failed.
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
        // A remaining file in the temporary directory is harmless.
        let _ = fs::remove_file(&self.0);
    }
}

const VARIABLE: &str = "SERVICEBUS_EMULATOR_BIN";
const NAME: &str = "servicebus-emulator";
/// How to get the emulator's binary, also outside its checkout. No registry has it.
const HOW_TO_BUILD: &str = "run `cargo install --path <checkout>/emulator`, or in the checkout `cargo build -p servicebus-emulator`";

/// Finds the emulator's binary.
pub(crate) fn find_binary(named: Option<&Path>) -> Result<PathBuf, Error> {
    if let Some(path) = named {
        return existing(path, "the builder");
    }
    if let Some(path) = nonempty(env::var_os(VARIABLE)) {
        return existing(&path, VARIABLE);
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
                "{NAME} is neither beside the tests ({}) nor on the PATH; {HOW_TO_BUILD}, or set its path in {VARIABLE}",
                beside.display()
            ))
        })
}

/// Returns the path in a variable. CI systems cannot always remove a variable, so an empty one counts as not set.
fn nonempty(variable: Option<OsString>) -> Option<PathBuf> {
    let path = variable.filter(|path| !path.is_empty());
    path.map(PathBuf::from)
}

fn existing(path: &Path, named_by: &'static str) -> Result<PathBuf, Error> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    Err(Error::start(format!(
        "no emulator binary at {}, named by {named_by}; {HOW_TO_BUILD}, or name none, so that the harness searches for it",
        path.display()
    )))
}

fn directories(executable: Option<PathBuf>, path: Option<OsString>) -> Vec<PathBuf> {
    // Test executables are in `target/debug/deps`, examples in `target/debug/examples`, binaries in `target/debug`.
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
    fn an_empty_variable_names_no_binary() {
        assert_eq!(nonempty(None), None);
        assert_eq!(nonempty(Some("".into())), None);
        assert_eq!(nonempty(Some("/bin/x".into())), Some("/bin/x".into()));
    }
}
