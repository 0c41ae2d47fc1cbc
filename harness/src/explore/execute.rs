//! Executes one run on a thread of its own.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    rc::Rc,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use servicebus_control_api::{Fault, LoggedOperation, Operation, Pick};
use servicebus_emulator::ConductedNamespace;
use servicebus_explore::{Effect, Failure, FaultPoint, Outcome, Plan};
use tokio::{task::LocalSet, time::timeout};

use super::{
    Explore, Passes,
    final_messages::{self, FinalMessages},
    hang::hang,
    panics,
    run::{PARTIES, Run, Supervision},
    virtual_time::VirtualTimeDriver,
};
use crate::{Builder, Mode, background::Background, background::Stopwatch};

/// When a connection drops that lost the reply to an attach or a token: as long as a client waits for an answer.
const LOST_REPLY_TIMEOUT: Duration = Duration::from_secs(60);

/// Runs a test once with these faults. Also returns the messages at the end of a passed test, if the exploration compares
/// them.
pub(crate) fn run<F, R>(
    explore: &Explore,
    test: &F,
    plan: &Plan,
    virtual_time: &Arc<VirtualTimeDriver>,
) -> (Outcome, Option<FinalMessages>)
where
    F: AsyncFn(&Run) -> R,
    R: Passes,
{
    panics::collect();
    Stopwatch::use_virtual_time();
    let runtime = match virtual_time.runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            let outcome = Outcome::failed(format!("cannot create a runtime: {error}"));
            return (outcome, None);
        }
    };
    let local = LocalSet::new();
    let executed = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(local.run_until(execute(virtual_time, explore, test, plan)))
    }));
    drop(catch_unwind(AssertUnwindSafe(|| drop(local))));
    runtime.shutdown_background();
    let (mut outcome, final_messages) = executed.unwrap_or_default();
    if let Some(first) = panics::take().into_iter().next() {
        outcome.failure = Some(first);
    }
    (outcome, final_messages)
}

async fn execute<F, R>(
    virtual_time: &Arc<VirtualTimeDriver>,
    explore: &Explore,
    test: &F,
    plan: &Plan,
) -> (Outcome, Option<FinalMessages>)
where
    F: AsyncFn(&Run) -> R,
    R: Passes,
{
    let background = Arc::new(Background::with_virtual_time(virtual_time.activity()));
    let builder = Builder::default()
        .topology(explore.topology.clone())
        .mode(Mode::InProcess)
        .seed(1);
    let servicebus = builder.explored(background, PARTIES).start().await;
    let Some(namespace) = servicebus.exploration_namespace() else {
        let outcome = Outcome::failed(
            "an exploration runs in the process of its test: remove SERVICEBUS_HARNESS_ADDRESS from its environment".to_owned(),
        );
        return (outcome, None);
    };
    namespace.record_operations(true);
    let run = Run::new(servicebus, namespace.clone());
    let fault_ids = add_faults(&run, plan);
    tokio::task::spawn_local(complete_faults(
        Arc::clone(virtual_time),
        namespace,
        plan.clone(),
        Rc::clone(&run.supervision),
    ));
    let tested = async {
        tokio::select! {
            biased;
            passed = run.supervision.wakes.count(test(&run)) => passed.check().err(),
            hangs = hang(&run) => Some(hangs.to_owned()),
        }
    };
    let tested = AssertUnwindSafe(Box::pin(tested)).catch_unwind().await;
    let mut outcome = Outcome {
        fault_ids,
        ..Outcome::default()
    };
    for (name, key) in run.parties.borrow().iter() {
        outcome.parties.insert(key.key_name.clone(), name.clone());
    }
    // The panic's message has been collected.
    let failure = tested.unwrap_or_else(|_panic| Some("the test panicked".to_owned()));
    outcome.failure = failure.map(|message| Failure {
        message,
        location: None,
    });
    if outcome.failure.is_none() {
        outcome.failure = run.supervision.failures.borrow().first().cloned();
    }
    outcome.take_log(run.namespace.operations(0, usize::MAX));
    let final_messages = match explore.is_same_end {
        true => final_messages(&run, &mut outcome).await,
        false => None,
    };
    outcome.timelines = timelines(&run, plan, &outcome).await;
    run.end_parties();
    // A drop would wait for the runtime on the runtime's own thread.
    run.servicebus.stop().await;
    (outcome, final_messages)
}

/// Returns the messages at the end of a passed test. A run whose messages are unknown fails, because nothing shows that they
/// are the same.
async fn final_messages(run: &Run, outcome: &mut Outcome) -> Option<FinalMessages> {
    if outcome.failure.is_some() {
        return None;
    }
    match final_messages::final_messages(&run.servicebus).await {
        Ok(final_messages) => Some(final_messages),
        Err(error) => {
            let message =
                format!("the messages at the end of the test cannot be compared: {error}");
            outcome.failure = Outcome::failed(message).failure;
            None
        }
    }
}

/// Scripts the faults of a plan, and returns their ids.
fn add_faults(run: &Run, plan: &Plan) -> Vec<u64> {
    let added = plan.faults.iter().filter_map(|(point, effect)| {
        run.namespace.add_fault(Fault {
            operation: point.operation.operation,
            filter: point.filter.clone(),
            pick: Pick::counted(Some(point.nth), None, None, effect.scripted()),
        })
    });
    added.map(|fault| fault.id).collect()
}

/// Completes faults beyond what the emulator does: releases postponed operations when nothing else can happen, ends the code
/// of a crashed party, and drops connections that lost a reply after a while.
async fn complete_faults(
    virtual_time: Arc<VirtualTimeDriver>,
    namespace: ConductedNamespace,
    plan: Plan,
    supervision: Rc<Supervision>,
) {
    let is_completed_here =
        |effect: &Effect, operation| effect.is_crash() || drops_reply(*effect, operation);
    let mut open: Vec<(usize, FaultPoint, Effect)> = plan
        .faults
        .into_iter()
        .enumerate()
        .map(|(index, (point, effect))| (index, point, effect))
        .filter(|(_, point, effect)| is_completed_here(effect, point.operation.operation))
        .collect();
    let (applied, watched) = (Arc::new(AtomicUsize::new(0)), namespace.clone());
    let counted: Vec<usize> = open.iter().map(|&(index, ..)| index).collect();
    virtual_time.on_idle(move |is_quiet| match is_quiet {
        true => watched.postponed() > 0 && watched.release_postponed(),
        false if counted.is_empty() => false,
        false => {
            let faults = watched.faults();
            let has_hit = |index: &&usize| faults.get(**index).is_some_and(|fault| fault.hits > 0);
            let now = counted.iter().filter(has_hit).count();
            applied.swap(now, Ordering::Relaxed) < now
        }
    });
    loop {
        virtual_time.progress().await;
        let faults = namespace.faults();
        open.retain(|(index, point, effect)| {
            let Some(fault) = faults.get(*index).filter(|fault| fault.hits > 0) else {
                return true;
            };
            if effect.is_crash() {
                supervision.crashed.crash(&point.party);
            } else {
                tokio::task::spawn_local(drop_later(namespace.clone(), fault.id));
            }
            false
        });
    }
}

/// Returns whether the client waits for a reply that does not come, possibly without a timeout of its own.
fn drops_reply(effect: Effect, operation: Operation) -> bool {
    effect == Effect::LoseReply && matches!(operation, Operation::Attach | Operation::Token)
}

/// Drops the connection of a lost reply later, because in reality a reply is only lost with its connection.
async fn drop_later(namespace: ConductedNamespace, fault: u64) {
    tokio::time::sleep(LOST_REPLY_TIMEOUT).await;
    let log = namespace.operations(0, usize::MAX).operations;
    let hit = |operation: &&LoggedOperation| {
        let mut faults = operation.faults.iter();
        faults.any(|applied| applied.fault == fault)
    };
    if let Some(connection) = log.iter().find(hit).and_then(|found| found.connection) {
        namespace.drop_connection(connection);
    }
}

/// Returns the timelines of the messages whose operations had faults, with the names of parties instead of connections.
async fn timelines(run: &Run, plan: &Plan, outcome: &Outcome) -> Vec<String> {
    let mut timelines = Vec::new();
    for (point, effect) in &plan.faults {
        let (Some(entity), Some(id)) = (&point.operation.entity, &point.operation.message_id)
        else {
            continue;
        };
        let client = run.queue(entity.split("/$").next().unwrap_or(entity));
        let requested = timeout(Duration::from_secs(60), run.timeline(&client).result()).await;
        let Ok(Ok(timeline)) = requested else {
            continue;
        };
        let mut text = timeline.of_message(id).titled(id).to_string();
        for operation in &outcome.operations {
            let party = operation
                .party
                .as_ref()
                .and_then(|key| outcome.parties.get(key));
            if let (Some(client), Some(party)) = (&operation.client, party) {
                text = text.replace(client.as_str(), party);
            }
        }
        if *effect == Effect::ServerBusy && !is_repeated(point, &outcome.operations) {
            text += "\n     it was not sent again: its sender gave up, or got a success, as azservicebus 0.25.1 reports after a retry";
        }
        timelines.push(text);
    }
    timelines.dedup();
    timelines
}

/// Returns whether the party repeats the operation on its message.
fn is_repeated(point: &FaultPoint, log: &[LoggedOperation]) -> bool {
    let key = |operation: &LoggedOperation| {
        let (party, id) = (operation.party.clone(), operation.message_id.clone());
        (operation.operation, party, operation.entity.clone(), id)
    };
    let same = log.iter().filter(|one| key(one) == key(&point.operation));
    same.count() as u64 > point.nth
}
