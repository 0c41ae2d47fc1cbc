//! A test binary, and a run of its cases against one target.

use std::{
    env, fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicUsize, Ordering},
    thread,
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use serde_json::Value;
use servicebus_harness::observer::{OBSERVATIONS_VARIABLE, RECORDER_VARIABLE};
use tokio::runtime::{self, Runtime};

use crate::{
    CaseRun, Outcome, Target, outcome, random_number,
    recorder::{CaseRecorder, RecorderOptions},
    target::{self, AUTHORITIES_VARIABLE},
};

/// How long a case may take, which may really wait.
const CASE_WITHIN: Duration = Duration::from_secs(900);
/// Between two looks at a case that runs.
const PAUSE: Duration = Duration::from_millis(5);

/// A test binary whose tests run on this harness.
#[derive(Debug, Clone)]
pub struct Suite {
    executable: PathBuf,
    only: Vec<String>,
    except: Vec<String>,
    at_once: usize,
}

/// What every case of a suite observed at one target.
#[derive(Debug, Clone)]
pub struct Run {
    /// What the target is called.
    pub target: String,
    /// The cases in the order of the suite.
    pub cases: Vec<CaseRun>,
}

/// Why a suite did not run.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// It was not built.
    #[error("cargo did not build the test binary \"{0}\"; see its messages above")]
    Build(String),
    /// It does not list its cases.
    #[error("{} does not list its tests: {reason}", executable.display())]
    List {
        /// The binary.
        executable: PathBuf,
        /// What it said instead.
        reason: String,
    },
    /// None is left.
    #[error("no case is left: none of the suite's {all} has a path that contains one of {only:?}")]
    Empty {
        /// How many there are.
        all: usize,
        /// What was asked for.
        only: Vec<String>,
    },
    /// The recorder's runtime did not start.
    #[error("cannot start the recorder's runtime: {0}")]
    Runtime(io::Error),
    /// A process or a file failed.
    #[error("cannot run the case {case}: {source}")]
    Case {
        /// Which.
        case: String,
        /// What the system said.
        source: io::Error,
    },
}

impl Suite {
    /// Takes a test binary.
    pub fn new(executable: impl Into<PathBuf>) -> Self {
        Self {
            executable: executable.into(),
            only: Vec::new(),
            except: Vec::new(),
            at_once: thread::available_parallelism().map_or(1, usize::from),
        }
    }

    /// Has cargo build a test target of the package in the current directory.
    pub fn of_cargo(test: &str) -> Result<Self, SuiteError> {
        let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut build = Command::new(cargo);
        build.args(["test", "--no-run", "--message-format=json", "--test", test]);
        // What cargo says to a program that it runs would have it build again what depends on these variables.
        for (name, _) in env::vars_os() {
            let text = name.to_string_lossy();
            if text.starts_with("CARGO_PKG_") || text.starts_with("CARGO_MANIFEST_") {
                build.env_remove(&name);
            }
        }
        let built = build.stderr(Stdio::inherit()).output();
        let built = built.map_err(|source| SuiteError::Case {
            case: test.to_owned(),
            source,
        })?;
        let messages = String::from_utf8_lossy(&built.stdout);
        let messages = messages
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok());
        let executable = messages
            .filter(|message: &Value| message["target"]["name"] == test)
            .find_map(|message| message["executable"].as_str().map(PathBuf::from));
        executable
            .map(Self::new)
            .ok_or_else(|| SuiteError::Build(test.to_owned()))
    }

    /// Keeps only cases whose path contains one of these texts.
    pub fn only<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.only.extend(texts.into_iter().map(Into::into));
        self
    }

    /// Leaves out cases whose path contains one of these texts.
    pub fn except<T: Into<String>>(mut self, texts: impl IntoIterator<Item = T>) -> Self {
        self.except.extend(texts.into_iter().map(Into::into));
        self
    }

    /// Lists the paths of the cases.
    pub fn cases(&self) -> Result<Vec<String>, SuiteError> {
        let failed = |reason: String| SuiteError::List {
            executable: self.executable.clone(),
            reason,
        };
        let mut list = Command::new(&self.executable);
        let listed = list.args(["--list", "--format", "terse"]).output();
        let listed = listed.map_err(|error| failed(error.to_string()))?;
        if !listed.status.success() {
            let stderr = String::from_utf8_lossy(&listed.stderr).into_owned();
            return Err(failed(stderr));
        }
        let text = String::from_utf8_lossy(&listed.stdout);
        let all = text.lines().filter_map(|line| line.strip_suffix(": test"));
        let all = Vec::from_iter(all);
        let is_in = |case: &str, texts: &[String]| texts.iter().any(|text| case.contains(text));
        let kept = all.iter().filter(|case| {
            (self.only.is_empty() || is_in(case, &self.only)) && !is_in(case, &self.except)
        });
        let kept = Vec::from_iter(kept.map(|case| (*case).to_owned()));
        match kept.is_empty() {
            true => Err(SuiteError::Empty {
                all: all.len(),
                only: self.only.clone(),
            }),
            false => Ok(kept),
        }
    }

    /// Runs every case against a target: side by side, but in a namespace one after the other.
    pub fn run(&self, target: &Target) -> Result<Run, SuiteError> {
        let cases = self.cases()?;
        let recording = runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("recorder")
            .enable_all()
            .build()
            .map_err(SuiteError::Runtime)?;
        let at_once = if target.is_shared() { 1 } else { self.at_once };
        let (next, done) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
        thread::scope(|scope| {
            for _ in 0..at_once {
                scope.spawn(|| {
                    while let Some(case) = cases.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let run = self.run_case(case, target, &recording);
                        done.lock().push(run);
                    }
                });
            }
        });
        // The caller may be on a runtime of its own, where another one is not to be waited for.
        recording.shutdown_background();
        let done = done.into_inner();
        let mut ran = done.into_iter().collect::<Result<Vec<CaseRun>, _>>()?;
        ran.sort_by_key(|run| cases.iter().position(|case| *case == run.case));
        Ok(Run {
            target: target.name().to_owned(),
            cases: ran,
        })
    }

    fn run_case(
        &self,
        case: &str,
        target: &Target,
        recording: &Runtime,
    ) -> Result<CaseRun, SuiteError> {
        let failed = |source| SuiteError::Case {
            case: case.to_owned(),
            source,
        };
        let dir = TempDir::new().map_err(failed)?;
        let mut options = RecorderOptions {
            changes: target.changes().clone(),
            authorities: None,
        };
        if let Some(stderr) = target.authorities() {
            target::write(&dir.file("authorities.pem"), stderr).map_err(failed)?;
            options.authorities = Some(dir.file("authorities.pem"));
        }
        let recorder = CaseRecorder::start(recording, options).map_err(failed)?;
        let played = self.run_process(case, target, recorder.address, &dir);
        let recorded = recorder.finish(recording);
        let (status, output) = played.map_err(failed)?;
        let outcome = match status {
            Some(status) => Outcome::read(status.success(), &output),
            None => Outcome::Failed(format!("did not end within {} s", CASE_WITHIN.as_secs())),
        };
        let mut observations = outcome::read(&dir.file("observations")).map_err(failed)?;
        observations.extend(recorded.into_iter().take(outcome::MAX_RECORDED));
        Ok(CaseRun {
            case: case.to_owned(),
            outcome,
            observations,
        })
    }

    /// Runs one case; without a status it was killed.
    fn run_process(
        &self,
        case: &str,
        target: &Target,
        recorder: SocketAddr,
        dir: &TempDir,
    ) -> io::Result<(Option<ExitStatus>, String)> {
        let mut command = Command::new(&self.executable);
        target.set(&mut command);
        if target.authorities().is_some() {
            command.env(AUTHORITIES_VARIABLE, dir.file("authorities.pem"));
        }
        command
            .args(["--exact", case])
            .env(OBSERVATIONS_VARIABLE, dir.file("observations"))
            .env(RECORDER_VARIABLE, recorder.to_string())
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(fs::File::create(dir.file("output"))?)
            .stderr(fs::File::create(dir.file("errors"))?);
        let status = exit_status(&mut command.spawn()?)?;
        let mut output = String::new();
        for file in [dir.file("output"), dir.file("errors")] {
            output += &String::from_utf8_lossy(&fs::read(file)?);
        }
        Ok((status, output))
    }
}

fn exit_status(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let since = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if since.elapsed() >= CASE_WITHIN {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(PAUSE);
    }
}

/// What one case writes, removed when it has been read.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> io::Result<Self> {
        let name = format!("servicebus-case-{:016x}", random_number());
        let directory = env::temp_dir().join(name);
        fs::create_dir(&directory)?;
        Ok(Self(directory))
    }

    fn file(&self, name: &str) -> PathBuf {
        Path::join(&self.0, name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        // A directory left behind among temporary ones is harmless.
        let _ = fs::remove_dir_all(&self.0);
    }
}
