//! Runs a test again for each fault at each operation of its first run.
//!
//! [`explore`] runs a test twice without faults, and then with one fault at a time; `harness/EXPLORATION.md` explains its
//! use and its report. Each run has an emulator of its own, on a thread with virtual time.

mod execute;
mod exploration;
mod final_messages;
mod hang;
mod panics;
mod run;
mod virtual_time;

use std::{env, fmt, fs, path::PathBuf, time::Duration};

pub use run::{Party, Run};
pub use servicebus_explore::Effect;
use servicebus_explore::{Options, Token};

use crate::Topology;

/// The environment variable that runs one token alone, disables exploration with `off`, or sets its budget as
/// `runs=5000,within=600`.
pub const EXPLORE_VARIABLE: &str = "SERVICEBUS_EXPLORE";

/// Explores a test with the defaults of [`Explore`].
///
/// # Panics
///
/// Panics if a run fails; the panic shows the report.
#[track_caller]
pub fn explore<F, R>(topology: Topology, test: F)
where
    F: AsyncFn(&Run) -> R + Send + Sync + 'static,
    R: Passes,
{
    Explore::new(topology).run(test);
}

/// The output of a test or a party: `()`, or a `Result` whose error is a failure.
pub trait Passes {
    /// Returns the failure.
    ///
    /// # Errors
    ///
    /// Returns an error if the test failed.
    fn check(self) -> Result<(), String>;
}

impl Passes for () {
    fn check(self) -> Result<(), String> {
        Ok(())
    }
}

impl<E: fmt::Display> Passes for Result<(), E> {
    fn check(self) -> Result<(), String> {
        self.map_err(|error| error.to_string())
    }
}

/// Builds an exploration.
#[derive(Debug, Clone)]
#[must_use = "nothing is explored before `run`"]
pub struct Explore {
    pub(crate) topology: Topology,
    pub(crate) budget: u32,
    pub(crate) within: Duration,
    pub(crate) faults: usize,
    pub(crate) jobs: usize,
    pub(crate) options: Options,
    pub(crate) always: Vec<String>,
    pub(crate) expected: Vec<(String, String)>,
    pub(crate) is_strict: bool,
    pub(crate) is_same_end: bool,
    pub(crate) shuffled: u32,
}

impl Explore {
    /// Creates an exploration whose runs each have a namespace of this topology.
    pub fn new(topology: Topology) -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Self {
            topology,
            budget: 500,
            within: Duration::from_secs(30),
            faults: 1,
            jobs,
            options: Options::default(),
            always: Vec::new(),
            expected: Vec::new(),
            is_strict: false,
            is_same_end: false,
            shuffled: 0,
        }
    }

    /// Sets the largest number of runs; 500 unless set.
    pub fn budget(mut self, runs: u32) -> Self {
        self.budget = runs;
        self
    }

    /// Sets how long new runs may begin, in real time; 30 s unless set.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// Sets the largest number of faults in a run, 1 or 2; 1 unless set.
    pub fn faults(mut self, faults: usize) -> Self {
        self.faults = faults.clamp(1, 2);
        self
    }

    /// Tries only these effects.
    pub fn effects(mut self, effects: impl IntoIterator<Item = Effect>) -> Self {
        self.options.effects = effects.into_iter().collect();
        self
    }

    /// Applies faults only to operations whose keys contain this text, as in `worker.complete`; several calls select
    /// operations with any of the texts.
    pub fn only(mut self, part: impl Into<String>) -> Self {
        self.options.only.push(part.into());
        self
    }

    /// Applies no fault to operations whose keys contain this text.
    pub fn except(mut self, part: impl Into<String>) -> Self {
        self.options.except.push(part.into());
        self
    }

    /// Sets how many runs execute in parallel; one per processor unless set.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs.max(1);
        self
    }

    /// Begins with a run with these faults, such as a failure that was found before. No budget cuts it.
    pub fn always(mut self, token: impl Into<String>) -> Self {
        self.always.push(token.into());
        self
    }

    /// Declares that the run with these faults fails, and why that is correct. The exploration fails if the run passes.
    pub fn expect_failure(mut self, token: impl Into<String>, reason: impl Into<String>) -> Self {
        self.expected.push((token.into(), reason.into()));
        self
    }

    /// Also fails if the runs without faults perform different operations.
    pub fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Also fails if a run passes but its queues and subscriptions, dead letters included, end with other messages than
    /// without faults, or if its messages cannot be peeked.
    pub fn same_end(mut self) -> Self {
        self.is_same_end = true;
        self
    }

    /// Adds this number of runs, fewer if there are no more orders. Each postpones two or three random operations or redirects
    /// deliveries.
    pub fn shuffled(mut self, runs: u32) -> Self {
        self.shuffled = runs;
        self
    }

    /// Runs the exploration.
    ///
    /// # Panics
    ///
    /// Panics if a run fails; the panic shows the report.
    #[track_caller]
    pub fn run<F, R>(self, test: F)
    where
        F: AsyncFn(&Run) -> R + Send + Sync + 'static,
        R: Passes,
    {
        if let Err(report) = self.result(test) {
            panic!("{report}");
        }
    }

    /// Runs the exploration, and returns the report instead of panicking.
    ///
    /// # Errors
    ///
    /// Returns the report as an error if a run fails.
    pub fn result<F, R>(mut self, test: F) -> Result<String, String>
    where
        F: AsyncFn(&Run) -> R + Send + Sync + 'static,
        R: Passes,
    {
        let variable = env::var(EXPLORE_VARIABLE).ok();
        let only = match variable.as_deref() {
            None | Some("") => None,
            Some("off") => {
                self.budget = 0;
                None
            }
            Some(text) if text.contains(':') => {
                Some(text.parse::<Token>().map_err(|e| e.to_string())?)
            }
            Some(text) => {
                self.read_budget(text)?;
                None
            }
        };
        let name = std::thread::current()
            .name()
            .unwrap_or("exploration")
            .to_owned();
        let report = exploration::explore(self, test, name.clone(), only)?;
        keep(&name, &report.json);
        match report.is_failure {
            true => Err(report.text),
            false => Ok(report.text),
        }
    }

    fn read_budget(&mut self, text: &str) -> Result<(), String> {
        for setting in text.split(',') {
            let read = setting.split_once('=').and_then(|(name, value)| {
                Some((
                    name.trim(),
                    value.trim().trim_end_matches('s').parse::<u32>().ok()?,
                ))
            });
            match read {
                Some(("runs", runs)) => self.budget = runs,
                Some(("within", seconds)) => self.within = Duration::from_secs(seconds.into()),
                _ => {
                    return Err(format!(
                        "{EXPLORE_VARIABLE} is \"{text}\"; allowed are a token, `off`, and `runs=500,within=30` with the number of runs and seconds"
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Writes the machine-readable report under `target/servicebus-explore`, if that is possible.
fn keep(name: &str, report: &serde_json::Value) {
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let directory = target.join("servicebus-explore");
    let file = directory.join(format!("{}.json", name.replace("::", "-")));
    // The printed report does not depend on it.
    let _ = fs::create_dir_all(directory).and_then(|()| fs::write(file, report.to_string()));
}
