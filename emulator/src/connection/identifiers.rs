//! Identifiers of links, which applications can set in an SDK.
//!
//! The first identifier is the name of the whole connection and its requests. A link with another one is a client of its own
//! in the record, for faults and as the holder of locks.

use std::collections::BTreeMap;

use serde_amqp::Value;
use servicebus_amqp::{AttachRequest, Event, LinkId, LinkRole};
use servicebus_broker::{ClientId, ReceiverId};

use super::commit::Work;
use super::peer::ClientConnection;
use crate::nodes::{Address, Destination};

/// Link property: the identifier of a receiver.
const RECEIVER_NAME: &str = "com.microsoft:receiver-name";
/// Names that Python generates where other SDKs send the identifier; its container id is the identifier (spec/wire.md §3.1).
const MADE_UP: [&str; 2] = ["sender-link-", "receiver-link-"];

/// The identifiers of a connection.
#[derive(Debug, Default)]
pub(crate) struct Identifiers {
    first: Option<String>,
    /// Links with other identifiers, and their client ids.
    links: BTreeMap<LinkId, ClientId>,
}

impl ClientConnection {
    /// Switches to the client of a new event's link, as [`Self::act_again_for`] does.
    pub(crate) fn act_for(&mut self, event: &Event, work: &mut Work) {
        if let Event::Attach { link, attach } = event {
            self.identify(*link, attach);
        }
        self.act_again_for(event, work);
    }

    /// Switches to the client of an event's link. Commits the collected work of other clients first.
    pub(crate) fn act_again_for(&mut self, event: &Event, work: &mut Work) {
        let link = match event {
            Event::Transfer(transfer) => transfer.link,
            Event::Settle(settlement) => settlement.link,
            Event::Attach { link, .. }
            | Event::TransferTooLarge { link, .. }
            | Event::TransferDropped { link, .. }
            | Event::Credit { link, .. }
            | Event::Detached { link, .. } => *link,
            Event::Sasl { .. } | Event::Opened(_) | Event::Refused(_) | Event::Closed { .. } => {
                return;
            }
        };
        if self.client_of(link) != self.client.caller.client {
            self.commit(work);
            self.act_as(link);
        }
    }

    /// Switches to the client of a link.
    pub(crate) fn act_as(&mut self, link: LinkId) {
        self.client.caller.client = self.client_of(link);
    }

    /// Records the client of a receiver, if it differs from the connection's.
    pub(crate) fn name_receiver(&self, link: LinkId, receiver: ReceiverId) {
        if let (Some(namespace), Some(&client)) = (
            &self.client.namespace,
            self.client.identifiers.links.get(&link),
        ) {
            namespace.name_receiver(receiver, client);
        }
    }

    /// Switches to the client of a link that is gone, and forgets its identifier.
    pub(crate) fn leave_identifier(&mut self, link: LinkId) {
        self.act_as(link);
        self.client.identifiers.links.remove(&link);
    }

    fn client_of(&self, link: LinkId) -> ClientId {
        let own = ClientId(self.client.id.0);
        self.client
            .identifiers
            .links
            .get(&link)
            .copied()
            .unwrap_or(own)
    }

    fn identify(&mut self, link: LinkId, attach: &AttachRequest) {
        let (Some(namespace), Some(identifier)) = (&self.client.namespace, identifier(attach))
        else {
            return;
        };
        // JMS names a connection by its container id, and numbers its links.
        if self.client.is_jms || self.client.identifiers.first.as_deref() == Some(identifier) {
            return;
        }
        if self.client.identifiers.first.is_none() {
            namespace.name_client(ClientId(self.client.id.0), identifier);
            self.client.identifiers.first = Some(identifier.to_owned());
            return;
        }
        let client = ClientId(self.client.shared.next_connection().0);
        namespace.name_client(client, identifier);
        self.client.identifiers.links.insert(link, client);
    }
}

/// Returns the identifier in an attach to an entity: the source address of a sender, the receiver's name or the target
/// address of a receiver.
fn identifier(attach: &AttachRequest) -> Option<&str> {
    let address = attach.address()?;
    let destination = Address::parse(address).destination;
    if attach.is_coordinator() || !matches!(destination, Destination::Store(_)) {
        return None;
    }
    let named = match attach.role() {
        LinkRole::Sender => attach.source_address(),
        LinkRole::Receiver => match attach.property(RECEIVER_NAME) {
            Some(Value::String(name)) => Some(name.as_str()),
            _ => attach.target_address(),
        },
    };
    let is_made_up = |name: &str| MADE_UP.iter().any(|prefix| name.starts_with(prefix));
    named.filter(|name| !name.is_empty() && *name != address && !is_made_up(name))
}
