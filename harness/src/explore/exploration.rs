//! The runs of an exploration: makes each that comes next on a thread of its own, several at a time.

use std::{
    collections::BTreeMap,
    sync::{Arc, mpsc},
    thread,
    time::{Duration, Instant},
};

use servicebus_explore::{Coming, Next, Outcome, Plan, Progress, Settings, Token, Told};

use super::{
    Explore, Passes, attempt,
    end::{End, Expected},
    run::Run,
};

/// How long a run may take in real time.
const STUCK: Duration = Duration::from_secs(20);

/// Makes a run with these faults.
type Attempt = dyn Fn(&Plan) -> Ended + Send + Sync;
type Ended = (Outcome, Option<End>);

/// Explores, or runs the faults of one token alone.
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
    let attempt = move |plan: &Plan| attempt::run(&explore, &test, plan);
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
    /// How the runs without a fault have ended.
    ends: Vec<End>,
    /// What each other run has to end with, if it has to.
    end: Option<Expected>,
}

impl Exploration {
    fn explore(mut self, attempt: &Arc<Attempt>) -> Told {
        let (sender, outcomes) = mpsc::channel();
        let mut open = BTreeMap::<u32, Coming>::new();
        let mut begun = 0;
        loop {
            while open.len() < self.jobs
                && let Next::Run(coming) = self.progress.next(Instant::now())
            {
                let (attempt, sender) = (Arc::clone(attempt), sender.clone());
                let (number, plan) = (begun, coming.plan.clone());
                // Sending fails only when the run was not waited for any longer.
                thread::spawn(move || sender.send((number, attempt(&plan))));
                open.insert(number, coming);
                begun += 1;
            }
            if open.is_empty() {
                return self.progress.told(Instant::now());
            }
            match outcomes.recv_timeout(self.patience) {
                Ok((number, ended)) => {
                    if let Some(coming) = open.remove(&number) {
                        self.take(coming, ended);
                    }
                }
                Err(_) => {
                    for coming in std::mem::take(&mut open).into_values() {
                        self.take(coming, (stuck(self.patience), None));
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

/// What is said of a run that could not be ended.
fn stuck(patience: Duration) -> Outcome {
    let seconds = patience.as_secs_f64();
    let mut outcome = Outcome::failed(format!(
        "the run does not end: after {seconds} s of real time it still runs; do not block the thread (`std::thread::sleep`, a lock, a blocking client) and do not spin: await, or put it into `tokio::task::spawn_blocking` or `run.outside(…)`"
    ));
    outcome.is_stuck = true;
    outcome
}
