//! Message counts of an entity, and its receivers.

use std::sync::Arc;

use axum::Json;
use serde::Deserialize;
use servicebus_broker::{Entity, EntityPath, SubQueue};
use servicebus_control_api::{Counts, Receiver, Receivers};

use super::error::{ApiError, QueryParams, SelectedNamespace, check_not_broken};
use crate::namespace::{Namespace, SharedEntity};
use crate::nodes::{Address, Destination};

/// The address of an entity.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EntityQuery {
    pub(crate) entity: String,
}

pub(crate) async fn show(
    SelectedNamespace(namespace): SelectedNamespace,
    QueryParams(EntityQuery { entity }): QueryParams<EntityQuery>,
) -> Result<Json<Counts>, ApiError> {
    let (entity, kind) = find(&namespace, &entity)?;
    Ok(Json(of_entity(&namespace, &entity, kind)))
}

/// Returns the message counts of a store and those beside it.
pub(crate) fn of_entity(namespace: &Namespace, entity: &SharedEntity, kind: SubQueue) -> Counts {
    namespace.read(entity, |entity| shown(entity, kind))
}

/// Returns the counts as the control API shows them, with the size that the administration API shows.
pub(crate) fn shown(entity: &Entity, kind: SubQueue) -> Counts {
    let counts = entity.counts(kind);
    let mut shown = Counts::default();
    shown.active = counts.active as u64;
    shown.dead_letter = counts.dead_letter as u64;
    shown.transfer_dead_letter = counts.transfer_dead_letter as u64;
    shown.scheduled = counts.scheduled as u64;
    shown.transfer = counts.transfer as u64;
    shown.locked = counts.locked as u64;
    shown.deferred = counts.deferred as u64;
    shown.size_bytes = match kind {
        SubQueue::Active => entity.whole_size(),
        SubQueue::DeadLetter | SubQueue::TransferDeadLetter => counts.size,
    };
    shown
}

/// Answers with the receivers that have asked for messages of an entity or wait for a session of it, by the names of their
/// clients.
pub(crate) async fn receivers(
    SelectedNamespace(namespace): SelectedNamespace,
    QueryParams(EntityQuery { entity }): QueryParams<EntityQuery>,
) -> Result<Json<Receivers>, ApiError> {
    let (entity, kind) = find(&namespace, &entity)?;
    let receivers = receivers_of(&namespace, &entity, kind);
    Ok(Json(Receivers { receivers }))
}

/// Returns the receivers of a store.
pub(crate) fn receivers_of(
    namespace: &Namespace,
    entity: &SharedEntity,
    kind: SubQueue,
) -> Vec<Receiver> {
    let receivers = namespace.receivers(entity, kind).into_iter();
    let receivers = receivers.map(|(client, credit)| Receiver { client, credit });
    receivers.collect()
}

/// Returns the store at an address.
pub(crate) fn find(
    namespace: &Namespace,
    address: &str,
) -> Result<(Arc<SharedEntity>, SubQueue), ApiError> {
    let parsed = Address::parse(address);
    let path = EntityPath::of_address(&parsed.entity);
    let entity = path.and_then(|path| namespace.entity(&path));
    match (entity, parsed.destination) {
        (Some(entity), Destination::Store(kind)) => {
            check_not_broken(&entity)?;
            Ok((entity, kind))
        }
        _ => {
            let entities = namespace.entities();
            let known = entities.iter().map(|entity| entity.path.as_str());
            Err(ApiError::unknown("entity", address, known))
        }
    }
}
