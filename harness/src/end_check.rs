//! Checks at the end of a namespace: that all scripted faults have fired, that no messages are left if the test requires
//! that, and that the emulator had no internal failure.
//!
//! The checks are fields of the namespace that drop before the emulator. A drop cannot await, so it blocks while the
//! background runtime sends the requests; without a request it does not block.

use std::{sync::Arc, thread, time::Duration};

use servicebus_assertions::{near, unfired};
use servicebus_control_api::{Failure, Faults, Pick};

use crate::{
    assertion::describe_remaining, background::Stopwatch, catalog::EntityKind,
    clients::SubQueueClient, connections::Connections, error::Error, error::control::ControlError,
    fixture::take_returned_error, running::OwnEmulator, scripted_faults::ScriptedFault,
};

/// The hint of an error about faults that never fired.
const HINT: &str =
    "hint: let the test perform the operation of the fault, or remove the fault with `remove()`";
/// The test may have returned an error, which only `#[servicebus_harness::test]` sees.
const LOST_ERROR: &str =
    "; if the test returned early with `?`, this failure hides its error: unwrap there to see it";
/// The interval between two polls of the remaining messages.
const PAUSE: Duration = Duration::from_millis(10);

/// A check at the end of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndCheckKind {
    /// All faults have fired.
    Faults,
    /// No active messages remain, locked ones included.
    Leaks,
    /// The emulator had no internal failure.
    Health,
}

/// Runs its check on drop and fails the test if the check fails. While the test already panics, it only reports a failed
/// emulator, which may be the cause.
#[derive(Debug)]
pub(crate) struct EndCheck {
    kind: EndCheckKind,
    /// `None` once it has run.
    connections: Option<Arc<Connections>>,
    /// An emulator in this process.
    own: Option<Arc<dyn OwnEmulator>>,
}

impl EndCheck {
    pub(crate) fn new(
        kind: EndCheckKind,
        connections: &Arc<Connections>,
        own: Option<Arc<dyn OwnEmulator>>,
    ) -> Self {
        Self {
            kind,
            connections: Some(Arc::clone(connections)),
            own,
        }
    }

    /// Leaves the check out.
    pub(crate) fn cancel(&mut self) {
        self.connections = None;
    }

    /// Returns whether an emulator in this process certainly had no failure. Whether a failure belongs to this namespace
    /// takes a request.
    fn is_healthy(&self) -> bool {
        let own = self.own.as_ref();
        let failures = own.and_then(|own| own.failures());
        self.kind == EndCheckKind::Health && failures.is_some_and(|failures| failures.is_empty())
    }

    /// Runs the check where it can be awaited.
    ///
    /// # Panics
    ///
    /// Panics if the check fails.
    pub(crate) async fn check(mut self) {
        let Some(connections) = self.connections.take() else {
            return;
        };
        let kind = self.kind;
        if self.is_healthy() || !kind.is_enabled(&connections) {
            return;
        }
        let answer = connections.run(|connections| kind.run(connections));
        if let Some(failure) = answer.await {
            panic!("{failure}");
        }
    }
}

impl Drop for EndCheck {
    fn drop(&mut self) {
        let Some(connections) = self.connections.take() else {
            return;
        };
        let kind = self.kind;
        if thread::panicking() && kind == EndCheckKind::Faults {
            report_random_faults(&connections);
        }
        let is_of_interest = !thread::panicking() || kind == EndCheckKind::Health;
        if !is_of_interest || self.is_healthy() || !kind.is_enabled(&connections) {
            return;
        }
        // Every request has a deadline of its own.
        let running = kind.run(Arc::clone(&connections));
        let answer = connections.background.wait_for(Duration::MAX, running);
        if let Some(Some(failure)) = answer {
            match thread::panicking() {
                true => eprintln!("{failure}"),
                false => panic!("{}", with_returned_error(failure)),
            }
        }
    }
}

/// Reports random faults, which a test that fails may have to repeat. On virtual time no request can be awaited here.
fn report_random_faults(connections: &Arc<Connections>) {
    if connections.scripted_faults.has_random_faults() {
        let fired = match connections.background.activity() {
            None => {
                let counting = random_hits(Arc::clone(connections));
                connections.background.wait_for(Duration::MAX, counting)
            }
            Some(_) => None,
        };
        let fired = fired.flatten();
        eprintln!("{}", connections.scripted_faults.describe_random(fired));
    }
}

/// Counts the random faults that fired; `None` if the emulator does not know, because it was restarted or has ended.
async fn random_hits(connections: Arc<Connections>) -> Option<u64> {
    let listed = connections.backend.faults().await.ok()?.faults;
    let random = listed
        .iter()
        .filter(|listed| matches!(listed.fault.pick, Pick::Random { .. }));
    random
        .map(|listed| listed.hits)
        .reduce(|sum, hits| sum + hits)
}

/// Puts the test's returned error before the failure, because the test runner cannot show it.
fn with_returned_error(failure: String) -> String {
    match take_returned_error() {
        Some(error) => format!(
            "the test returned the error {error}\n\n{}",
            failure.replace(LOST_ERROR, "")
        ),
        None => failure,
    }
}

impl EndCheckKind {
    pub(crate) const ALL: [Self; 3] = [Self::Faults, Self::Leaks, Self::Health];

    fn is_enabled(self, connections: &Connections) -> bool {
        match self {
            Self::Faults => connections.scripted_faults.needs_check(),
            Self::Leaks => connections.leak_check,
            Self::Health => connections.backend.control_url().is_some(),
        }
    }

    /// Runs the check, and returns the failure.
    async fn run(self, connections: Arc<Connections>) -> Option<String> {
        let failure = match self {
            // It names the lines of the faults.
            Self::Faults => {
                let mut failures = connections.scripted_faults.take_ended_unfired();
                failures.extend(take_unfired(&connections).await);
                return (!failures.is_empty())
                    .then(|| format!("{}\n{HINT}{LOST_ERROR}", failures.join("\n")));
            }
            Self::Leaks => remaining_messages(&connections).await,
            // An emulator that no longer answers was stopped by the test.
            Self::Health => emulator_failures(&connections).await,
        };
        // The panic of a drop has no line of the test.
        let started_at = connections.started_at;
        failure.map(|failure| format!("{failure}\n\nthe namespace was started at {started_at}"))
    }
}

/// Removes the scripted faults, and describes those that have not fired.
pub(crate) async fn take_unfired(connections: &Connections) -> Vec<String> {
    let faults = connections.scripted_faults.take();
    if faults.is_empty() {
        return Vec::new();
    }
    let listed = connections.backend.faults().await;
    let catalog = connections.catalog().await;
    let names = || catalog.names().map(|(_, name)| name);
    let unfired = faults
        .iter()
        .filter_map(|fault| failure(fault, &listed, names()));
    unfired.collect()
}

fn failure<'a>(
    fault: &ScriptedFault,
    listed: &Result<Faults, ControlError>,
    entities: impl Iterator<Item = &'a str>,
) -> Option<String> {
    let near = match listed {
        Ok(listed) => {
            let listed = listed.faults.iter().find(|listed| listed.id == fault.id)?;
            if listed.hits > 0 {
                return None;
            }
            near(listed, entities)
        }
        Err(error) => format!("or it is not known: {error}"),
    };
    let at = fault.at.to_string();
    Some(unfired(&fault.source_text, &near, Some(&at)))
}

/// Polls until no messages are left: like assertions, it waits for messages in flight.
async fn remaining_messages(connections: &Arc<Connections>) -> Option<String> {
    let started = Stopwatch::start();
    loop {
        let left = match clients_with_messages(connections).await {
            Ok(left) => left,
            Err(error) => return Some(error.to_string()),
        };
        if left.is_empty() {
            return None;
        }
        if started.elapsed() >= connections.within {
            return Some(describe_remaining(&left).await);
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Returns the queues and subscriptions with active messages, locked ones included.
async fn clients_with_messages(
    connections: &Arc<Connections>,
) -> Result<Vec<SubQueueClient>, Error> {
    let catalog = connections.catalog().await;
    let mut left = Vec::new();
    for (kind, name) in catalog.names() {
        if kind == EntityKind::Topic || !connections.backend.is_own(name) {
            continue;
        }
        let client = SubQueueClient::new(Arc::clone(connections), kind, name.to_owned());
        if client.try_counts().await?.active > 0 {
            left.push(client);
        }
    }
    Ok(left)
}

/// Reports internal failures of the emulator.
async fn emulator_failures(connections: &Connections) -> Option<String> {
    let failures = connections.backend.failures().await.ok()?;
    let rendered: Vec<String> = failures.iter().map(describe).collect();
    (!rendered.is_empty()).then(|| {
        format!(
            "the emulator had an internal failure, which is a bug in it:\n{}",
            rendered.join("\n")
        )
    })
}

fn describe(failure: &Failure) -> String {
    match &failure.entity {
        Some(entity) => format!("  {entity} is broken: {}", failure.reason),
        None => format!("  {}", failure.reason),
    }
}
