//! Reasons to fail a test that has passed, for clients in every language: an internal failure of the emulator, and expected
//! faults that were not applied.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use servicebus_assertions::{near, unfired};
use servicebus_control_api::{EndCheck, EndTest, TestReport};

use super::error::{ApiError, Body, NamespaceName, SelectedNamespace};
use super::{Control, namespaces, timeline};
use crate::namespace::Namespace;
use crate::shared::Shared;

const HINT: &str = "hint: let the test perform the operation of the fault, or remove the fault";

pub(crate) async fn find(
    State(shared): State<Arc<Shared>>,
    SelectedNamespace(namespace): SelectedNamespace,
) -> Json<EndCheck> {
    let problem = problem(&shared, &namespace);
    Json(EndCheck { problem })
}

/// Ends the test of a namespace: answers with its report, if any, and removes the namespace.
pub(crate) async fn end(
    State(control): State<Control>,
    SelectedNamespace(namespace): SelectedNamespace,
    Body(EndTest { passed }): Body<EndTest>,
) -> Result<Json<TestReport>, ApiError> {
    let problem = problem(&control.shared, &namespace).filter(|_| passed);
    let mut report = None;
    if !passed || problem.is_some() {
        let _permit = control.timelines.acquire().await;
        let problem = problem.map_or_else(String::new, |problem| format!("{problem}\n\n"));
        let (name, happened) = (namespace.name(), timeline::newest(&namespace).await);
        report = Some(format!("{problem}timeline of {name}\n{happened}"));
    }
    namespaces::remove(
        State(control.shared),
        NamespaceName(namespace.name().to_owned()),
    )
    .await?;
    Ok(Json(TestReport { report }))
}

/// Returns failures of the emulator first: one of them may be why a fault has not fired.
fn problem(shared: &Shared, namespace: &Namespace) -> Option<String> {
    let own = |name: &Option<String>| name.as_deref() == Some(namespace.name());
    let failures = shared.namespaces.failures.all().into_iter();
    let broken = failures.filter(|failure| own(&failure.namespace));
    let broken = Vec::from_iter(broken.map(|failure| failure.reason));
    match broken.is_empty() {
        true => missed(namespace),
        false => Some(format!(
            "the emulator had an internal failure, which is a bug in it: {}",
            broken.join("; ")
        )),
    }
}

fn missed(namespace: &Namespace) -> Option<String> {
    let (faults, entities) = (namespace.faults.all(), namespace.entities());
    let waiting = faults.iter().filter(|fault| fault.hits == 0);
    let mut lines = Vec::from_iter(waiting.filter_map(|fault| {
        let written = fault.written.as_deref()?;
        let near = near(fault, entities.iter().map(|entity| entity.path.as_str()));
        Some(unfired(written, &near, fault.written_at.as_deref()))
    }));
    if lines.is_empty() {
        return None;
    }
    lines.push(HINT.to_owned());
    Some(lines.join("\n"))
}
