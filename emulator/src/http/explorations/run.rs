//! One run of an exploration: its namespace with its faults, and its result.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use axum::http::StatusCode;
use servicebus_control_api::{ExplorationRun, Fault, NamespaceInfo, Pick, RunResult};
use servicebus_explore::{Failure, Outcome, Plan, PlannedRun};
use tokio::task::spawn_blocking;

use super::{Exploration, OpenRun, Runs};
use crate::auth::{Claims, Key, WELL_KNOWN_KEY};
use crate::config::NamespaceConfig;
use crate::http::error::ApiError;
use crate::http::{Control, timeline};
use crate::namespace::Namespace;
use crate::shared::Shared;

/// Bytes of a failure message that are kept.
const MAX_MESSAGE: usize = 4096;

/// Refuses a topology that cannot be served.
pub(crate) async fn check_topology(control: &Control, topology: String) -> Result<(), ApiError> {
    let tier = control.shared.options.tier;
    let read = spawn_blocking(move || {
        NamespaceConfig::parse_as("exploration", &topology, tier, &|_| false)
    });
    match read.await {
        Ok(read) => read.map(drop).map_err(ApiError::of_topology),
        Err(error) => Err(ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "internal-error",
            format!("the topology was not read: {error}"),
        )),
    }
}

/// Begins the next run. One that cannot be begun is repeated.
pub(crate) async fn begin(
    control: &Control,
    exploration: &Exploration,
    runs: &mut Runs,
    planned: PlannedRun,
) -> Result<ExplorationRun, ApiError> {
    let number = runs.begun + 1;
    let namespace = format!("exploration-{}-run-{number}", exploration.id);
    let mut keys = BTreeMap::<&String, Key>::new();
    for party in &exploration.parties {
        keys.insert(party, key_of(party, &namespace));
    }
    let plan = planned.plan.clone();
    // If the client disconnects meanwhile, the run stays open, and its namespace is removed with it.
    runs.begun = number;
    runs.open = Some(OpenRun {
        number,
        planned,
        namespace: namespace.clone(),
        parties: keys
            .iter()
            .map(|(party, key)| (key.name.clone(), (*party).clone()))
            .collect(),
        fault_ids: Vec::new(),
    });
    let made = make(
        control,
        exploration,
        &namespace,
        keys.values().cloned().collect(),
    )
    .await;
    let made = match made {
        Ok(made) => made,
        Err(reason) => {
            if let Some(open) = runs.open.take() {
                runs.progress.requeue(open.planned);
            }
            let message = format!("the namespace of the run was not made: {reason}");
            return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
        }
    };
    let Some(served) = control.shared.namespaces.named(&namespace) else {
        let message = "the namespace of the run was removed at once";
        return Err(ApiError::new(StatusCode::CONFLICT, "conflict", message));
    };
    if let Some(open) = &mut runs.open {
        open.fault_ids = script(&served, &plan, &keys);
    }
    served.faults.record_operations(true);
    served.automate_clock().await;
    let place = &control.shared.namespaces.place;
    let parties = keys.iter().map(|(party, key)| {
        let string = place.connection_string(&served.config, key);
        ((*party).clone(), string)
    });
    Ok(ExplorationRun {
        number,
        token: (!plan.faults.is_empty()).then(|| plan.token().to_string()),
        parties: parties.collect(),
        namespace,
        connection_string: made.connection_string,
        tls_connection_string: made.tls_connection_string,
    })
}

/// Returns the outcome of a run, whose namespace still exists.
pub(crate) async fn outcome(control: &Control, open: &OpenRun, result: RunResult) -> Outcome {
    let failure = (!result.passed).then(|| Failure {
        message: shortened(
            result
                .message
                .unwrap_or_else(|| "the test failed".to_owned()),
        ),
        location: result.location.map(shortened),
    });
    let mut outcome = Outcome {
        failure,
        parties: open.parties.clone(),
        fault_ids: open.fault_ids.clone(),
        ..Outcome::default()
    };
    let Some(namespace) = control.shared.namespaces.named(&open.namespace) else {
        return outcome;
    };
    outcome.take_log(namespace.faults.operations(0, usize::MAX));
    if outcome.failure.is_some() {
        outcome.timelines = timelines(&namespace, &open.planned.plan).await;
    }
    outcome
}

/// Removes the namespace of a run, if it exists.
pub(crate) async fn remove_namespace(shared: &Shared, name: &str) {
    if let Ok(Some(listening)) = shared.remove_namespace(name) {
        listening.close().await;
    }
}

fn key_of(party: &str, namespace: &str) -> Key {
    Key {
        name: format!("{party}-{namespace}"),
        key: WELL_KNOWN_KEY.to_owned(),
        claims: Claims::ALL,
    }
}

/// Creates the namespace; its connection strings are those of the test itself.
async fn make(
    control: &Control,
    exploration: &Exploration,
    name: &str,
    keys: Vec<Key>,
) -> Result<NamespaceInfo, String> {
    let permit = control.shared.namespaces.permit().await;
    let (control, topology) = (control.clone(), exploration.topology.clone());
    let name = name.to_owned();
    let made = spawn_blocking(move || {
        // Not stored: its exploration ends with the process, and a later one of the same number has a run of the same name.
        let creation = control.shared.namespaces.begin(permit).unstored();
        let tier = control.shared.options.tier;
        let is_taken = |key: &str| creation.has_key(key, &name);
        let parsed = NamespaceConfig::parse_as(&name, &topology, tier, &is_taken);
        let mut config = parsed.map_err(|error| error.to_string())?;
        config.keys.extend(keys);
        let made = creation.finish(config, |address| control.listen(address));
        made.map_err(|error| error.to_string())
    });
    let made = made.await.map_err(|error| error.to_string())??;
    Ok(made)
}

/// Adds the faults of a plan for the parties' keys in this run, and returns their ids.
fn script(namespace: &Namespace, plan: &Plan, keys: &BTreeMap<&String, Key>) -> Vec<u64> {
    let added = plan.faults.iter().filter_map(|(point, effect)| {
        let mut filter = point.filter.clone();
        filter.party = keys.get(&point.party).map(|key| key.name.clone());
        // The limit is not reached: a plan has three faults at most.
        namespace.faults.add_planned(Fault {
            operation: point.operation.operation,
            filter,
            pick: Pick::counted(Some(point.nth), None, None, effect.scripted()),
        })
    });
    added.map(|fault| fault.id).collect()
}

/// Returns the timelines of the messages whose operations had faults.
async fn timelines(namespace: &Arc<Namespace>, plan: &Plan) -> Vec<String> {
    let mut timelines = Vec::new();
    for (point, _) in &plan.faults {
        let (Some(entity), Some(id)) = (&point.operation.entity, &point.operation.message_id)
        else {
            continue;
        };
        let Some(timeline) = timeline::of_message(namespace, entity, id).await else {
            continue;
        };
        let mut text = format!("timeline of {id} in {entity} (virtual time)");
        for event in timeline.events {
            let why = event.reason.or(event.detail).unwrap_or_default();
            let _ = write!(
                text,
                "\n  {:+9.3} s  {:<15}  {why}",
                event.offset,
                event.kind.name()
            );
            text.truncate(text.trim_end().len());
        }
        if !timelines.contains(&text) {
            timelines.push(text);
        }
    }
    timelines
}

fn shortened(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_MESSAGE));
    text
}
