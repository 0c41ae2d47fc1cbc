//! The operation log of a namespace: switched on and off, and read in pages.

use axum::Json;
use serde::Deserialize;
use servicebus_control_api::{Operations, RecordOperations, Released};

use super::error::{ApiError, Body, QueryParams, SelectedNamespace, check_limit};

/// Default number of operations in one response.
const LIMIT: usize = 1000;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OperationsQuery {
    /// The number after which the page begins.
    #[serde(default)]
    after: u64,
    limit: Option<usize>,
}

/// Starts or stops recording operations.
pub(crate) async fn record(
    SelectedNamespace(namespace): SelectedNamespace,
    Body(RecordOperations { recording }): Body<RecordOperations>,
) -> Json<Operations> {
    namespace.faults.record_operations(recording);
    Json(namespace.faults.operations(0, 0))
}

/// Resumes the oldest postponed operation.
pub(crate) async fn release(SelectedNamespace(namespace): SelectedNamespace) -> Json<Released> {
    Json(Released {
        released: namespace.release_postponed(),
        waiting: namespace.faults.postponed.count(),
    })
}

pub(crate) async fn show(
    SelectedNamespace(namespace): SelectedNamespace,
    QueryParams(OperationsQuery { after, limit }): QueryParams<OperationsQuery>,
) -> Result<Json<Operations>, ApiError> {
    let limit = check_limit(limit, LIMIT)?;
    Ok(Json(namespace.faults.operations(after, limit)))
}
