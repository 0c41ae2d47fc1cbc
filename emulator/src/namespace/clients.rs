//! The names of clients and locations in the record and in errors.
//!
//! A connection has one name, and a link with an identifier of its own has another. Both are remembered after they are gone,
//! up to a limit, because the record refers to them.

use std::collections::BTreeMap;
use std::sync::Arc;

use servicebus_broker::{ClientId, EntityKind, ReceiverId, SubQueue};

use super::{AUTOMATIC_CLOCK, INSPECTOR, Namespace, SharedEntity};
use crate::router::ConnectionId;

/// How many names are remembered; the oldest are forgotten first.
const CLIENTS: usize = 4096;
/// Characters of a name that are remembered: those of clients without a token are remembered, too.
const NAME_CHARS: usize = 256;

/// The names of clients.
#[derive(Debug, Default)]
pub(super) struct Clients {
    names: BTreeMap<ClientId, Arc<str>>,
    /// Receivers with other names than their connections.
    receivers: BTreeMap<ReceiverId, ClientId>,
}

impl Namespace {
    /// Records the name of a client.
    pub(crate) fn name_client(&self, client: ClientId, name: &str) {
        let names = &mut self.clients.lock().names;
        if names.len() >= CLIENTS {
            names.pop_first();
        }
        let name: String = name.chars().take(NAME_CHARS).collect();
        names.insert(client, name.into());
    }

    /// Records that a receiver belongs to a client with a name of its own.
    pub(crate) fn name_receiver(&self, receiver: ReceiverId, client: ClientId) {
        self.clients.lock().receivers.insert(receiver, client);
    }

    /// Forgets a receiver that is detached.
    pub(crate) fn forget_receiver(&self, receiver: ReceiverId) {
        self.clients.lock().receivers.remove(&receiver);
    }

    /// Returns the name of a client, if it is still remembered.
    pub(crate) fn client_name(&self, client: ClientId) -> Option<Arc<str>> {
        match client {
            INSPECTOR => Some("inspector".into()),
            AUTOMATIC_CLOCK => Some("the automatic clock".into()),
            client => self.clients.lock().names.get(&client).cloned(),
        }
    }

    /// Returns the name of a receiver's client, else the number of its connection.
    pub(crate) fn receiver_name(&self, receiver: ReceiverId) -> String {
        let connection = ConnectionId::of(receiver).0;
        let client = self.clients.lock().receivers.get(&receiver).copied();
        let name = self.client_name(client.unwrap_or(ClientId(connection)));
        name.map_or_else(
            || format!("connection {connection}"),
            |name| name.to_string(),
        )
    }

    /// Returns the receivers of a store that have asked for messages or wait for a session, by name, each with its credit.
    pub(crate) fn receivers(&self, entity: &SharedEntity, kind: SubQueue) -> Vec<(String, u32)> {
        let asking: Vec<_> = self.read(entity, |entity| entity.receivers(kind).collect());
        let named = asking
            .into_iter()
            .map(|(id, credit)| (self.receiver_name(id), credit));
        named.collect()
    }
}

/// Returns the location in the tail of an error (semantics §20.2): `namespace:Queue:path`, `namespace:Topic:path` or
/// `namespace:Topic:path|subscription`, followed by the address of a dead-letter queue; only the namespace without an
/// entity.
pub(crate) fn system_tracker(
    namespace: Option<&Namespace>,
    place: Option<(&SharedEntity, SubQueue)>,
) -> String {
    let name = namespace.map_or("none", Namespace::name);
    let Some((entity, kind)) = place else {
        return name.to_owned();
    };
    let is_topic =
        |namespace: &Namespace| namespace.read(entity, |entity| entity.kind()) == EntityKind::Topic;
    let place = match entity.path.topic() {
        Some((topic, subscription)) => format!("Topic:{topic}|{subscription}"),
        None if namespace.is_some_and(is_topic) => format!("Topic:{}", entity.path),
        None => format!("Queue:{}", entity.path),
    };
    format!("{name}:{place}{}", kind.suffix())
}
