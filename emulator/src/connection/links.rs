//! The links of a connection by purpose.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use servicebus_amqp::{Event, LinkId, SessionId};
use servicebus_broker::{EntityPath, ReceiverId, SubQueue};

use super::browse::Browser;
use super::peer::ClientConnection;
use crate::namespace::{LinkScope, SharedEntity};
use crate::nodes::{Address, Destination, ServiceError, SessionRequest};
use crate::router::ConnectionId;

/// Links that are visited in about the time of one event.
const LOOKED_THROUGH: usize = 256;

/// The links of a connection by id, by the broker's ids of their receivers, and by what they wait for.
#[derive(Debug, Default)]
pub(crate) struct Links {
    by_id: BTreeMap<LinkId, Link>,
    receivers: BTreeMap<ReceiverId, LinkId>,
    receivers_made: u32,
    coordinators: BTreeMap<LinkId, SessionId>,
    /// Links that wait for a session, by the end of their wait.
    waiting: BTreeSet<(Duration, LinkId)>,
    /// Links that have lost their sessions, by when they are detached.
    lost: BTreeSet<(Duration, LinkId)>,
    /// Entities that live as long as a link.
    scopes: BTreeMap<LinkId, LinkScope>,
}

/// A link by its purpose.
#[derive(Debug)]
pub(crate) enum Link {
    /// The client sends messages to an entity.
    Sender(Sender),
    /// The client receives from a store.
    Receiver(Receiver),
    /// The client waits for a session; its attach is not answered yet.
    Waiting(Waiting),
    /// The client declares and discharges transactions.
    Coordinator(SessionId),
    /// The client browses messages.
    Browser(Browser),
    /// The client sends requests to a node.
    Requests(Requests),
    /// The client receives the replies of a node.
    Replies(Replies),
    /// The emulator has detached it; late settlements of the client, and its sends in transactions, are refused with this error.
    Detached(ServiceError),
}

/// A link on which the client sends messages.
#[derive(Debug, Clone)]
pub(crate) struct Sender {
    pub(crate) entity: Arc<SharedEntity>,
    /// The forwarding target, if any (send via, semantics §12).
    pub(crate) destination: Option<EntityPath>,
    pub(crate) session: SessionId,
    /// Transfers whose outcome is not in the socket yet.
    pub(crate) unsettled: u32,
    /// Those of them whose outcome was passed to the engine.
    pub(crate) answered: u32,
}

/// A link on which messages are delivered.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) name: Box<str>,
    pub(crate) entity: Arc<SharedEntity>,
    pub(crate) kind: SubQueue,
    pub(crate) receiver_id: ReceiverId,
    pub(crate) session: SessionId,
    /// Deliveries are settled: receive-and-delete.
    pub(crate) settled: bool,
    /// The client waits for the answer to its drain.
    pub(crate) drain: bool,
}

/// A link that has no session yet.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The receiver that it becomes.
    pub(crate) receiver: Receiver,
    pub(crate) request: SessionRequest,
    /// The end of its wait, in real time.
    pub(crate) until: Duration,
}

/// A node that answers requests.
#[derive(Debug, Clone)]
pub(crate) enum Node {
    /// `$cbs`.
    Cbs,
    /// `$management` of a store.
    Management(Arc<SharedEntity>, SubQueue),
}

/// A link on which the client sends requests.
#[derive(Debug, Clone)]
pub(crate) struct Requests {
    pub(crate) node: Node,
    pub(crate) session: SessionId,
    /// The link for the replies, which may be gone.
    pub(crate) pair: Option<LinkId>,
    /// The target to which messages scheduled over it are forwarded when they are due (spec/observed.md 61).
    pub(crate) destination: Option<EntityPath>,
}

/// A link on which replies are delivered.
#[derive(Debug)]
pub(crate) struct Replies {
    pub(crate) node: Node,
    pub(crate) session: SessionId,
    /// The link of the requests, which may be gone.
    pub(crate) pair: Option<LinkId>,
    pub(crate) name: String,
    pub(crate) target: Option<String>,
    /// Whether replies are settled, as the client asked (wire.md §2.3).
    pub(crate) settled: bool,
    /// Replies that wait for credit: Java grants one at a time.
    pub(crate) waiting: VecDeque<Vec<u8>>,
}

impl Link {
    /// Returns whether it transports requests to `$cbs`, or their replies.
    pub(crate) fn is_cbs(&self) -> bool {
        let (Self::Requests(Requests { node, .. }) | Self::Replies(Replies { node, .. })) = self
        else {
            return false;
        };
        matches!(node, Node::Cbs)
    }

    /// Returns the other link of its pair, if it transports requests or replies.
    fn pair(&mut self) -> Option<&mut Option<LinkId>> {
        let (Self::Requests(Requests { pair, .. }) | Self::Replies(Replies { pair, .. })) = self
        else {
            return None;
        };
        Some(pair)
    }

    /// Returns whether two links can be a pair: one for the requests of a session to a node, one for the replies.
    fn pairs_with(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Requests(requests), Self::Replies(replies))
            | (Self::Replies(replies), Self::Requests(requests)) => {
                requests.session == replies.session && requests.node.is(&replies.node)
            }
            _ => false,
        }
    }
}

impl Links {
    pub(crate) fn get(&self, id: LinkId) -> Option<&Link> {
        self.by_id.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: LinkId) -> Option<&mut Link> {
        self.by_id.get_mut(&id)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (LinkId, &Link)> {
        self.by_id.iter().map(|(&id, link)| (id, link))
    }

    /// Returns the links in the order in which they were attached.
    pub(crate) fn values(&self) -> impl Iterator<Item = &Link> {
        self.by_id.values()
    }

    pub(crate) fn ids(&self) -> Vec<LinkId> {
        self.by_id.keys().copied().collect()
    }

    /// Returns the cost of visiting all links, in events.
    pub(crate) fn cost(&self) -> usize {
        self.by_id.len() / LOOKED_THROUGH
    }

    /// Returns whether an AMQP session has a coordinator.
    pub(crate) fn have_coordinator(&self, session: SessionId) -> bool {
        self.coordinators.values().any(|own| *own == session)
    }

    pub(crate) fn of_receiver(&self, receiver_id: ReceiverId) -> Option<LinkId> {
        self.receivers.get(&receiver_id).copied()
    }

    pub(crate) fn next_receiver_id(&mut self, connection: ConnectionId) -> ReceiverId {
        self.receivers_made += 1;
        connection.receiver_id(self.receivers_made)
    }

    /// Adds a link, or changes its purpose.
    pub(crate) fn insert(&mut self, id: LinkId, mut link: Link) {
        self.make_pair(id, &mut link);
        match &link {
            Link::Receiver(receiver) => {
                self.receivers.insert(receiver.receiver_id, id);
            }
            Link::Waiting(waiting) => {
                self.receivers.insert(waiting.receiver.receiver_id, id);
                self.waiting.insert((waiting.until, id));
            }
            Link::Coordinator(session) => {
                self.coordinators.insert(id, *session);
            }
            Link::Sender(_)
            | Link::Browser(_)
            | Link::Requests(_)
            | Link::Replies(_)
            | Link::Detached(_) => {}
        }
        self.by_id.insert(id, link);
    }

    /// Pairs a link to or from a node with the oldest of its session that has no pair: the links of a pair have no more in
    /// common than their place among those of their session.
    fn make_pair(&mut self, id: LinkId, link: &mut Link) {
        if link.pair().is_none() {
            return;
        }
        let is_free = |pair: Option<LinkId>| {
            let other = pair.and_then(|pair| self.by_id.get(&pair));
            !matches!(other, Some(Link::Requests(_) | Link::Replies(_)))
        };
        let mut all = self.by_id.iter();
        let found = all.find_map(|(&other, candidate)| {
            let (Link::Requests(Requests { pair, .. }) | Link::Replies(Replies { pair, .. })) =
                candidate
            else {
                return None;
            };
            (link.pairs_with(candidate) && is_free(*pair)).then_some(other)
        });
        let Some(other) = found else {
            return;
        };
        let pair = [(Some(link), other), (self.by_id.get_mut(&other), id)];
        for (link, other) in pair {
            if let Some(pair) = link.and_then(Link::pair) {
                *pair = Some(other);
            }
        }
    }

    pub(crate) fn remove(&mut self, id: LinkId) -> Option<Link> {
        let removed = self.by_id.remove(&id)?;
        match &removed {
            Link::Receiver(receiver) => {
                self.receivers.remove(&receiver.receiver_id);
            }
            Link::Waiting(waiting) => {
                self.receivers.remove(&waiting.receiver.receiver_id);
                self.waiting.remove(&(waiting.until, id));
            }
            Link::Coordinator(_) => {
                self.coordinators.remove(&id);
            }
            Link::Sender(_)
            | Link::Browser(_)
            | Link::Requests(_)
            | Link::Replies(_)
            | Link::Detached(_) => {}
        }
        Some(removed)
    }

    /// Makes an entity live as long as a link, which is attached next.
    pub(crate) fn keep(&mut self, id: LinkId, scope: LinkScope) {
        self.scopes.insert(id, scope);
    }

    pub(crate) fn scope(&self, id: LinkId) -> Option<&LinkScope> {
        self.scopes.get(&id)
    }

    /// Takes the scope of a link that is gone.
    pub(crate) fn take_scope(&mut self, id: LinkId) -> Option<LinkScope> {
        self.scopes.remove(&id)
    }

    /// Records that a link has lost its session, and is detached at `until`.
    pub(crate) fn lose_session(&mut self, id: LinkId, until: Duration) {
        self.lost.insert((until, id));
    }

    /// Returns the next link whose wait for a session has timed out, each once.
    pub(crate) fn next_timed_out(&mut self, now: Duration) -> Option<LinkId> {
        pop_due(&mut self.waiting, now)
    }

    /// Returns the next link whose lost session is due for the detach, each once.
    pub(crate) fn next_lost(&mut self, now: Duration) -> Option<LinkId> {
        pop_due(&mut self.lost, now)
    }

    /// Returns when the next of these is due.
    pub(crate) fn due(&self) -> Option<Duration> {
        let firsts = [self.waiting.first(), self.lost.first()];
        let dues = firsts.into_iter().flatten().map(|&(until, _)| until);
        dues.min()
    }
}

impl Node {
    /// Returns whether an address is the node's own. That of `$cbs` does not matter: it has one link for replies.
    pub(crate) fn is_at(&self, address: &str) -> bool {
        let Self::Management(entity, kind) = self else {
            return true;
        };
        let address = Address::parse(address);
        let path = EntityPath::of_address(&address.entity);
        address.destination == Destination::Management(*kind) && path.as_ref() == Some(&entity.path)
    }

    pub(crate) fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Cbs, Self::Cbs) => true,
            (Self::Management(a, kind), Self::Management(b, other)) => {
                // Compared by name: one half may have been attached before the entity was deleted and created again.
                a.path == b.path && kind == other
            }
            (Self::Cbs | Self::Management(..), _) => false,
        }
    }
}

fn pop_due(links: &mut BTreeSet<(Duration, LinkId)>, now: Duration) -> Option<LinkId> {
    let &(until, _) = links.first()?;
    match until <= now {
        true => links.pop_first().map(|(_, id)| id),
        false => None,
    }
}

impl ClientConnection {
    /// Counts a transfer that waits for its outcome, before it is handled.
    pub(crate) fn count_arrival(&mut self, event: &Event) {
        let (link, delivery, settled) = if let Event::Transfer(transfer) = event {
            (transfer.link, transfer.delivery, transfer.settled)
        } else if let &Event::TransferTooLarge {
            link,
            delivery,
            settled,
            ..
        } = event
        {
            (link, delivery, settled)
        } else {
            return;
        };
        self.record_delivery(link, delivery);
        if let Some(Link::Sender(sender)) = self.links.get_mut(link)
            && !settled
        {
            sender.unsettled += 1;
            sender.entity.sends.begin();
        }
    }

    /// Counts an outcome that was passed to the engine, which writes it at the end of the turn.
    pub(crate) fn count_answer(&mut self, link: LinkId) {
        if let Some(Link::Sender(sender)) = self.links.get_mut(link) {
            if sender.answered == 0 {
                self.outbound.answered.push(link);
            }
            sender.answered += 1;
        }
    }

    /// Records that all outcomes passed to the engine are in the socket.
    pub(crate) fn outcomes_written(&mut self) {
        for link in self.outbound.answered.drain(..) {
            if let Some(Link::Sender(sender)) = self.links.get_mut(link) {
                let answered = std::mem::take(&mut sender.answered);
                sender.unsettled -= answered;
                sender.entity.sends.end(answered);
            }
        }
    }
}

impl Sender {
    /// Ends the count of unsettled sends on a link that is gone.
    pub(crate) fn give_up(&self) {
        self.entity.sends.end(self.unsettled);
    }
}
