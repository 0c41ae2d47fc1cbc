//! Scripted faults: added, listed with the number of matches, and removed.

mod read;

use axum::Json;
use axum::http::StatusCode;
use servicebus_control_api::{FaultRequest, Faults, ScriptedFault};

use super::error::{ApiError, Body, Id, SelectedNamespace};
use crate::faults::MAX;
use crate::namespace::Namespace;

/// Answers with all faults in the order in which they were added.
pub(crate) async fn list(SelectedNamespace(namespace): SelectedNamespace) -> Json<Faults> {
    let faults = namespace.faults.all();
    Json(Faults { faults })
}

pub(crate) async fn show(
    SelectedNamespace(namespace): SelectedNamespace,
    Id(id): Id,
) -> Result<Json<ScriptedFault>, ApiError> {
    let all = namespace.faults.all().into_iter();
    let found = { all }.find(|fault| fault.id.to_string() == id);
    found.map(Json).ok_or_else(|| unknown(&namespace, &id))
}

/// Adds a fault; the response has its id.
pub(crate) async fn add(
    SelectedNamespace(namespace): SelectedNamespace,
    Body(mut request): Body<FaultRequest>,
) -> Result<(StatusCode, Json<ScriptedFault>), ApiError> {
    let mut written = [
        read::written("written", request.written.take())?,
        read::written("written_at", request.written_at.take())?,
    ];
    let fault = read::fault(request)?;
    if let [how @ None, Some(_)] = &mut written {
        *how = Some(read::rendered(&fault));
    }
    check_party(&namespace, fault.filter.party.as_deref())?;
    let added = namespace
        .faults
        .add_written(fault, written)
        .ok_or_else(|| {
            let message = format!("there are {MAX} faults already, as many as there may be");
            ApiError::new(StatusCode::CONFLICT, "too-many", message)
        })?;
    Ok((StatusCode::CREATED, Json(added)))
}

pub(crate) async fn remove(
    SelectedNamespace(namespace): SelectedNamespace,
    Id(id): Id,
) -> Result<StatusCode, ApiError> {
    let removed = id.parse().is_ok_and(|id| namespace.faults.remove(id));
    match removed {
        true => Ok(StatusCode::NO_CONTENT),
        false => Err(unknown(&namespace, &id)),
    }
}

pub(crate) async fn remove_all(SelectedNamespace(namespace): SelectedNamespace) -> StatusCode {
    namespace.faults.clear();
    StatusCode::NO_CONTENT
}

/// Refuses a party without a key, since its operations would never occur.
fn check_party(namespace: &Namespace, party: Option<&str>) -> Result<(), ApiError> {
    let known = namespace.key_names();
    match party {
        Some(party) if !known.contains(party) => {
            let known = Vec::from_iter(known).join(", ");
            let allowed = format!("the name of a key: {known}");
            Err(ApiError::not_allowed("party", party, allowed))
        }
        _ => Ok(()),
    }
}

/// Drops all locks and detaches every link, as an update of the service does.
pub(crate) async fn update_service(SelectedNamespace(namespace): SelectedNamespace) -> StatusCode {
    namespace.update_service();
    StatusCode::NO_CONTENT
}

fn unknown(namespace: &Namespace, id: &str) -> ApiError {
    let all = namespace.faults.all();
    let known: Vec<String> = all.iter().map(|fault| fault.id.to_string()).collect();
    ApiError::unknown("fault", id, known.iter().map(String::as_str))
}
