//! A test that is run again for each thing that can go wrong at each operation of its first run.
//!
//! [`explore`] runs a test twice as it is, and then with one fault at a time; `harness/EXPLORATION.md` tells how it is used and
//! what a report says. Each run has an emulator of its own on a thread whose time is virtual.

mod attempt;
mod conductor;
mod end;
mod exploration;
mod hang;
mod panics;
mod run;

use std::{env, fmt, fs, path::PathBuf, time::Duration};

pub use run::{Party, Run};
pub use servicebus_explore::Effect;
use servicebus_explore::{Options, Token};

use crate::Topology;

/// The environment variable that runs one token alone, switches exploration off with `off`, or sets its budget as
/// `runs=5000,within=600`.
pub const EXPLORE_VARIABLE: &str = "SERVICEBUS_EXPLORE";

/// Explores a test with the defaults of [`Explore`].
///
/// # Panics
///
/// When a run fails, with the report.
#[track_caller]
pub fn explore<F, R>(topology: Topology, test: F)
where
    F: AsyncFn(&Run) -> R + Send + Sync + 'static,
    R: Passes,
{
    Explore::new(topology).run(test);
}

/// What a test or a party returns: nothing, or a result whose error is a failure.
pub trait Passes {
    /// Returns what failed.
    ///
    /// # Errors
    ///
    /// When it failed.
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

/// An exploration that is described before it runs.
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
    /// Begins one whose runs each have a namespace of this topology.
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

    /// Sets how many runs there are at most; 500 unless set.
    pub fn budget(mut self, runs: u32) -> Self {
        self.budget = runs;
        self
    }

    /// Sets after how long, in real time, no run begins any more; 30 s unless set.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    /// Sets how many faults a run has at most, 1 or 2; 1 unless set.
    pub fn faults(mut self, faults: usize) -> Self {
        self.faults = faults.clamp(1, 2);
        self
    }

    /// Tries these effects alone.
    pub fn effects(mut self, effects: impl IntoIterator<Item = Effect>) -> Self {
        self.options.effects = effects.into_iter().collect();
        self
    }

    /// Applies faults only to operations with this text in their keys, as in `worker.complete`; said again, those with either.
    pub fn only(mut self, part: impl Into<String>) -> Self {
        self.options.only.push(part.into());
        self
    }

    /// Applies no fault to operations with this text in their keys.
    pub fn except(mut self, part: impl Into<String>) -> Self {
        self.options.except.push(part.into());
        self
    }

    /// Sets how many runs there are at the same time; as many as processors unless set.
    pub fn jobs(mut self, jobs: usize) -> Self {
        self.jobs = jobs.max(1);
        self
    }

    /// Runs with these faults first, whatever else is planned: a failure that was found once.
    pub fn always(mut self, token: impl Into<String>) -> Self {
        self.always.push(token.into());
        self
    }

    /// Says that the run with these faults fails, and why that is right. It fails the exploration where that passes.
    pub fn expect_failure(mut self, token: impl Into<String>, reason: impl Into<String>) -> Self {
        self.expected.push((token.into(), reason.into()));
        self
    }

    /// Fails also where the runs without faults differ in what they do.
    pub fn strict(mut self) -> Self {
        self.is_strict = true;
        self
    }

    /// Fails also where a run passes and its queues and subscriptions, dead letters included, hold others than without faults.
    pub fn same_end(mut self) -> Self {
        self.is_same_end = true;
        self
    }

    /// Makes so many runs more in each of which two or three operations by chance are postponed or deliveries go elsewhere.
    pub fn shuffled(mut self, runs: u32) -> Self {
        self.shuffled = runs;
        self
    }

    /// Explores.
    ///
    /// # Panics
    ///
    /// When a run fails, with the report.
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

    /// Explores, and returns the report instead of a panic.
    ///
    /// # Errors
    ///
    /// When a run fails, with the report.
    pub fn result<F, R>(mut self, test: F) -> Result<String, String>
    where
        F: AsyncFn(&Run) -> R + Send + Sync + 'static,
        R: Passes,
    {
        let said = env::var(EXPLORE_VARIABLE).ok();
        let only = match said.as_deref() {
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
        let told = exploration::explore(self, test, name.clone(), only)?;
        keep(&name, &told.json);
        match told.is_failure {
            true => Err(told.text),
            false => Ok(told.text),
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

/// Writes the report for programs under `target/servicebus-explore`; where that is not possible, there is none.
fn keep(name: &str, report: &serde_json::Value) {
    let target =
        env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let directory = target.join("servicebus-explore");
    let file = directory.join(format!("{}.json", name.replace("::", "-")));
    // The report for people does not depend on it.
    let _ = fs::create_dir_all(directory).and_then(|()| fs::write(file, report.to_string()));
}
