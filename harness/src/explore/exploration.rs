//! Executes the runs of an exploration, each on a thread of its own, several in parallel.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use servicebus_explore::{Coming, Next, Outcome, Plan, Progress, Settings, Token, Told};

use super::{
    Explore, Passes, attempt,
    conductor::Conductor,
    end::{End, Expected},
    run::Run,
};

/// How long a run may take in real time.
const STUCK: Duration = Duration::from_secs(20);

/// Executes a run with these faults.
type Attempt = dyn Fn(&Plan, &Arc<Conductor>) -> Ended + Send + Sync;
type Ended = (Outcome, Option<End>);
/// An unfinished run, with its start.
type UnderWay = (Coming, Instant, Arc<Conductor>);

/// Explores, or executes only the faults of one token.
pub(crate) fn explore<F, R>(
    explore: Explore,
    test: F,
    name: String,
    token: Option<Token>,
) -> Result<Told, String>
where
    F: AsyncFn(&Run) -> R + Send + Sync + 'static,
    R: Passes,
{
    let settings = settings(&explore, name, token)?;
    let patience = STUCK.min(explore.within);
    let exploration = Exploration {
        progress: Progress::new(settings),
        jobs: explore.jobs,
        patience,
        is_same_end: explore.is_same_end,
        ends: Vec::new(),
        end: None,
    };
    let attempt = move |plan: &Plan, conductor: &Arc<Conductor>| {
        attempt::run(&explore, &test, plan, conductor)
    };
    Ok(exploration.explore(&(Arc::new(attempt) as Arc<Attempt>)))
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
    patience: Duration,
    is_same_end: bool,
    /// The messages at the end of runs without faults.
    ends: Vec<End>,
    /// The messages that every other run must end with, if that is required.
    end: Option<Expected>,
}

impl Exploration {
    fn explore(mut self, attempt: &Arc<Attempt>) -> Told {
        let (sender, outcomes) = mpsc::channel();
        let mut open = BTreeMap::<u32, UnderWay>::new();
        let mut begun = 0;
        loop {
            while open.len() < self.jobs
                && let Next::Run(coming) = self.progress.next(Instant::now())
            {
                let (attempt, sender) = (Arc::clone(attempt), sender.clone());
                let (number, plan) = (begun, coming.plan.clone());
                let conductor = Arc::<Conductor>::default();
                open.insert(number, (coming, Instant::now(), Arc::clone(&conductor)));
                thread::spawn(move || {
                    // Fails only if the exploration no longer waits for this run.
                    let _ = sender.send((number, attempt(&plan, &conductor)));
                });
                begun += 1;
            }
            let Some((_, (_, oldest, _))) = open.first_key_value() else {
                return self.progress.told(Instant::now());
            };
            match outcomes.recv_timeout(self.patience.saturating_sub(oldest.elapsed())) {
                Ok((number, ended)) => {
                    if let Some((coming, ..)) = open.remove(&number) {
                        self.take(coming, ended);
                    }
                }
                Err(_) => {
                    if let Some((_, (coming, _, conductor))) = open.pop_first() {
                        self.take(coming, (stuck(self.patience, &conductor), None));
                    }
                }
            }
        }
    }

    fn take(&mut self, coming: Coming, (mut outcome, end): Ended) {
        match (&self.end, end) {
            (Some(expected), Some(end)) => expected.check(&mut outcome, &end),
            (None, Some(end)) => self.ends.push(end),
            (_, None) => {}
        }
        self.progress.take(coming, outcome);
        if self.is_same_end
            && self.end.is_none()
            && let [first, second] = self.ends.as_slice()
        {
            match Expected::of(first.clone(), second) {
                Ok(end) => self.end = Some(end),
                Err(difference) => self.progress.stop(format!(
                    "`same_end` was said, and two runs without a fault end otherwise:{difference}"
                )),
            }
        }
    }
}

/// Returns the outcome of a run that did not end in time.
fn stuck(patience: Duration, conductor: &Conductor) -> Outcome {
    let seconds = patience.as_secs_f64();
    let why = match conductor.is_parked() {
        true => {
            "time stands until the tasks of `tokio::task::spawn_blocking` and what `run.outside(…)` waits for have ended, and one has not; end it by a timeout of its own"
        }
        false => {
            "it still runs; do not block the thread (`std::thread::sleep`, a lock, a blocking client) and do not spin: await, or put it into `tokio::task::spawn_blocking` or `run.outside(…)`"
        }
    };
    let mut outcome = Outcome::failed(format!(
        "the run does not end: after {seconds} s of real time {why}"
    ));
    outcome.is_stuck = true;
    outcome
}
