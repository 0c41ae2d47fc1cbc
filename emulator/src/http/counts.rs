//! How many messages an entity holds.

use std::sync::Arc;

use axum::Json;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use serde::Deserialize;
use serde_json::{Value, json};
use servicebus_broker::{EntityPath, SubQueue};

use super::error::{ApiError, check_whole};
use super::namespaces::Chosen;
use crate::namespace::{Namespace, SharedEntity};
use crate::nodes::{Address, Destination};

#[derive(Debug, Deserialize)]
pub(super) struct Which {
    entity: String,
}

pub(super) async fn show(
    Chosen(namespace): Chosen,
    query: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(Which { entity }) = query?;
    let (entity, kind) = find(&namespace, &entity)?;
    let counts = namespace.read(&entity, |entity| entity.counts(kind));
    Ok(Json(json!({
        "active": counts.active,
        "dead_letter": counts.dead_letter,
        "transfer_dead_letter": counts.transfer_dead_letter,
        "scheduled": counts.scheduled,
        "transfer": counts.transfer,
        "locked": counts.locked,
        "deferred": counts.deferred,
        "size_bytes": counts.size,
    })))
}

/// The receivers that have asked for messages of an entity or wait for a session of it, by the names of their clients.
pub(super) async fn receivers(
    Chosen(namespace): Chosen,
    query: Result<Query<Which>, QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(Which { entity }) = query?;
    let (entity, kind) = find(&namespace, &entity)?;
    let receivers = namespace.receivers(&entity, kind).into_iter();
    let receivers = receivers.map(|(client, credit)| json!({"client": client, "credit": credit}));
    Ok(Json(json!({ "receivers": Vec::from_iter(receivers) })))
}

/// The store that an address means.
pub(super) fn find(
    namespace: &Namespace,
    address: &str,
) -> Result<(Arc<SharedEntity>, SubQueue), ApiError> {
    let parsed = Address::parse(address);
    let path = EntityPath::of_address(&parsed.entity);
    let entity = path.and_then(|path| namespace.entity(&path));
    match (entity, parsed.destination) {
        (Some(entity), Destination::Store(kind)) => {
            check_whole(&entity)?;
            Ok((entity, kind))
        }
        _ => {
            let entities = namespace.entities();
            let known = entities.iter().map(|entity| entity.path.as_str());
            Err(ApiError::unknown("entity", address, known))
        }
    }
}
