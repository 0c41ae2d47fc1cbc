//! The connections to a namespace: their transport, and the purpose of each link.

use std::collections::HashMap;
use std::time::Duration;

use axum::Json;
use servicebus_broker::{Entity, EntityId, ReceiverId, SubQueue};
use servicebus_control_api::{Connection, ConnectionLink, Connections};
use tokio::time::timeout;

use super::error::SelectedNamespace;
use crate::connection::LinkView;
use crate::namespace::Namespace;
use crate::router::ConnectionId;

/// How long the response waits for the views of connections, each of which needs a turn.
const TIMEOUT: Duration = Duration::from_secs(1);
/// Maximum number of connections in one response.
const LIMIT: usize = 1000;
/// Maximum number of locks and sessions of an entity that are visited.
const LOOKED_AT: usize = 10_000;

/// The locks and sessions of a store's receivers.
#[derive(Default)]
struct Holders {
    locks: HashMap<ReceiverId, u64>,
    sessions: HashMap<ReceiverId, String>,
}

pub(crate) async fn list(SelectedNamespace(namespace): SelectedNamespace) -> Json<Connections> {
    let alone = namespace.router.request_views().await;
    let answered = namespace.wait_in_turns(|| namespace.router.have_all_views());
    // A connection without a view is left out.
    let _ = timeout(TIMEOUT, answered).await;
    let mut holders = HashMap::new();
    let connections = namespace.router.answers().into_iter().take(LIMIT);
    drop(alone);
    let connections = connections.map(|(ConnectionId(id), view)| Connection {
        id,
        client: view.client,
        product: view.product,
        transport: view.transport.to_owned(),
        party: view.party.map(|party| party.to_string()),
        links: view
            .links
            .iter()
            .map(|link| shown(&namespace, link, &mut holders))
            .collect(),
    });
    Json(Connections {
        connections: connections.collect(),
    })
}

fn shown(
    namespace: &Namespace,
    link: &LinkView,
    holders: &mut HashMap<(EntityId, SubQueue), Holders>,
) -> ConnectionLink {
    let mut shown = ConnectionLink {
        role: link.role.to_owned(),
        entity: None,
        node: link.node.map(str::to_owned),
        credit: link.receiver.map(|(_, credit)| credit),
        locks: None,
        session: None,
    };
    let Some((entity, kind)) = &link.place else {
        return shown;
    };
    shown.entity = Some(entity.store_path(*kind));
    if let Some((receiver, _)) = link.receiver {
        let held = holders
            .entry((entity.id, *kind))
            .or_insert_with(|| namespace.read(entity, |entity| Holders::of(entity, *kind)));
        shown.locks = Some(held.locks.get(&receiver).copied().unwrap_or(0));
        shown.session = held.sessions.get(&receiver).cloned();
    }
    shown
}

impl Holders {
    fn of(entity: &Entity, kind: SubQueue) -> Self {
        let mut holders = Self::default();
        for holder in entity.lock_holders(kind).take(LOOKED_AT) {
            *holders.locks.entry(holder).or_default() += 1;
        }
        if kind == SubQueue::Active {
            let sessions = entity.snapshot_sessions().take(LOOKED_AT);
            let held =
                sessions.filter_map(|session| Some((session.holder?, session.name.to_string())));
            holders.sessions.extend(held);
        }
        holders
    }
}
