//! Executes the runs of an exploration, each on a thread of its own, several in parallel.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use servicebus_explore::{
    Next, Outcome, Plan, PlannedRun, Progress, ProgressReport, Settings, Token,
};

use super::{
    Explore, Passes, execute,
    final_messages::{ExpectedMessages, FinalMessages},
    run::Run,
    virtual_time::VirtualTimeDriver,
};

/// How long a run may take in real time.
const RUN_TIMEOUT: Duration = Duration::from_secs(20);

/// Executes a run with these faults.
type ExecuteRun = dyn Fn(&Plan, &Arc<VirtualTimeDriver>) -> RunResult + Send + Sync;
type RunResult = (Outcome, Option<FinalMessages>);
/// An unfinished run, with its start.
type ActiveRun = (PlannedRun, Instant, Arc<VirtualTimeDriver>);

/// Explores, or executes only the faults of one token.
pub(crate) fn explore<F, R>(
    explore: Explore,
    test: F,
    name: String,
    token: Option<Token>,
) -> Result<ProgressReport, String>
where
    F: AsyncFn(&Run) -> R + Send + Sync + 'static,
    R: Passes,
{
    let settings = settings(&explore, name, token)?;
    let run_timeout = RUN_TIMEOUT.min(explore.within);
    let exploration = Exploration {
        progress: Progress::new(settings),
        jobs: explore.jobs,
        run_timeout,
        is_same_end: explore.is_same_end,
        base_messages: Vec::new(),
        expected_messages: None,
    };
    let execute = move |plan: &Plan, virtual_time: &Arc<VirtualTimeDriver>| {
        execute::run(&explore, &test, plan, virtual_time)
    };
    Ok(exploration.explore(&(Arc::new(execute) as Arc<ExecuteRun>)))
}

fn settings(explore: &Explore, name: String, token: Option<Token>) -> Result<Settings, String> {
    let read = |text: &String| text.parse::<Token>().map_err(|error| error.to_string());
    let expected = explore.expected.iter();
    let expected = expected.map(|(token, reason)| Ok((read(token)?, reason.clone())));
    Ok(Settings {
        name,
        runs: explore.budget,
        within: explore.within,
        faults: explore.faults,
        options: explore.options.clone(),
        token,
        always: explore.always.iter().map(read).collect::<Result<_, _>>()?,
        expected: expected.collect::<Result<_, String>>()?,
        shuffled: explore.shuffled,
        is_strict: explore.is_strict,
        operations: usize::MAX,
        is_statistical: false,
    })
}

struct Exploration {
    progress: Progress,
    jobs: usize,
    /// How long a run may take in real time.
    run_timeout: Duration,
    is_same_end: bool,
    /// The messages at the end of runs without faults.
    base_messages: Vec<FinalMessages>,
    /// The messages that every other run must end with, if that is required.
    expected_messages: Option<ExpectedMessages>,
}

impl Exploration {
    fn explore(mut self, execute: &Arc<ExecuteRun>) -> ProgressReport {
        let (sender, outcomes) = mpsc::channel();
        let mut active = BTreeMap::<u32, ActiveRun>::new();
        let mut begun = 0;
        loop {
            while active.len() < self.jobs
                && let Next::Run(run) = self.progress.next(Instant::now())
            {
                let (execute, sender) = (Arc::clone(execute), sender.clone());
                let (number, plan) = (begun, run.plan.clone());
                let virtual_time = Arc::<VirtualTimeDriver>::default();
                active.insert(number, (run, Instant::now(), Arc::clone(&virtual_time)));
                thread::spawn(move || {
                    // Fails only if the exploration no longer waits for this run.
                    let _ = sender.send((number, execute(&plan, &virtual_time)));
                });
                begun += 1;
            }
            let Some((_, (_, oldest, _))) = active.first_key_value() else {
                return self.progress.report(Instant::now());
            };
            match outcomes.recv_timeout(self.run_timeout.saturating_sub(oldest.elapsed())) {
                Ok((number, ended)) => {
                    if let Some((run, ..)) = active.remove(&number) {
                        self.take(run, ended);
                    }
                }
                Err(_) => {
                    if let Some((_, (run, _, virtual_time))) = active.pop_first() {
                        self.take(run, (timed_out(self.run_timeout, &virtual_time), None));
                    }
                }
            }
        }
    }

    fn take(&mut self, run: PlannedRun, (mut outcome, final_messages): RunResult) {
        match (&self.expected_messages, final_messages) {
            (Some(expected), Some(final_messages)) => expected.check(&mut outcome, &final_messages),
            (None, Some(final_messages)) if run.plan.faults.is_empty() => {
                self.base_messages.push(final_messages);
            }
            (None, Some(_)) | (_, None) => {}
        }
        self.progress.record_outcome(run, outcome);
        if self.is_same_end
            && self.expected_messages.is_none()
            && let [first, second] = self.base_messages.as_slice()
        {
            match ExpectedMessages::of(first.clone(), second) {
                Ok(final_messages) => self.expected_messages = Some(final_messages),
                Err(difference) => self.progress.stop(format!(
                    "`same_end` is set, but two runs without faults end with different messages:{difference}"
                )),
            }
        }
    }
}

/// Returns the outcome of a run that did not end in time.
fn timed_out(run_timeout: Duration, virtual_time: &VirtualTimeDriver) -> Outcome {
    let seconds = run_timeout.as_secs_f64();
    let why = match virtual_time.is_parked() {
        true => {
            "virtual time does not advance until the tasks of `tokio::task::spawn_blocking` and the futures of `run.outside(…)` have ended, and one has not; end it with a timeout"
        }
        false => {
            "it still runs; do not block the thread (`std::thread::sleep`, a lock, a blocking client) and do not spin: await, or put it into `tokio::task::spawn_blocking` or `run.outside(…)`"
        }
    };
    let mut outcome = Outcome::failed(format!(
        "the run does not end: after {seconds} s of real time {why}"
    ));
    outcome.is_hung = true;
    outcome
}
