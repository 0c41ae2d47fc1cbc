//! What is seen of an event before it is carried out.

use std::sync::Arc;
use std::time::Duration;

use servicebus_amqp::{AttachRequest, Event, LinkId, Outcome, Settlement, Transfer};
use servicebus_broker::{DeliveryView, Entity, LockToken, Message, SessionName, SubQueue};
use servicebus_control_api::EntityState;

use super::later::{Seen, link_of};
use crate::auth::audience_path;
use crate::connection::links::{Link, Node, Requests};
use crate::connection::peer::ClientConnection;
use crate::faults::{MatchContext, MatchedFaults, Operation, Traits};
use crate::namespace::SharedEntity;
use crate::nodes::{Address, CoordinatorRequest, Destination, Request};

/// The message format of a batch (wire.md §3.3).
const BATCH: u32 = 0x8001_3700;

/// The locks that an event is about: where, by their tokens, and the session that it names.
type Locks = (
    Arc<SharedEntity>,
    SubQueue,
    Vec<LockToken>,
    Option<SessionName>,
);

impl ClientConnection {
    /// Counts an event, and returns what becomes of it and whom that concerns.
    pub(crate) fn is_hit(
        &mut self,
        event: &Event,
        now: Duration,
    ) -> (MatchedFaults, Vec<Arc<SharedEntity>>) {
        let Some(namespace) = self.client.namespace.clone() else {
            return (MatchedFaults::default(), Vec::new());
        };
        let mut request = None;
        if let Event::Attach { attach, .. } = event
            && !comes_before_tokens(attach)
        {
            self.end_wait_for_party(now);
        }
        let seen = if let Event::Transfer(transfer) = event {
            if let Some(Link::Requests(_)) = self.links.get(transfer.link) {
                request = self.request_in(&transfer.payload);
            }
            if let (Some(request), true) = (&request, self.is_cbs(transfer.link)) {
                self.note_party(request);
                self.end_wait_for_party(now);
            }
            self.see_transfer(transfer, request.as_ref())
        } else if let Event::Settle(settlement) = event {
            self.see_settlement(settlement)
        } else if let Event::Attach { attach, .. } = event {
            self.see_attach(attach)
        } else {
            None
        };
        let Some(mut seen) = seen else {
            return (MatchedFaults::default(), Vec::new());
        };
        seen.context.link = link_of(event);
        self.name_party(&mut seen.context);
        (namespace.sight(&seen.context), seen.entities)
    }

    pub(crate) fn connection_seen(&self) -> MatchContext<'static> {
        let mut context = MatchContext {
            operations: vec![Operation::Connect],
            ..MatchContext::default()
        };
        self.name_party(&mut context);
        context
    }

    /// Says whose an operation is.
    pub(crate) fn name_party(&self, context: &mut MatchContext<'_>) {
        let namespace = self.client.namespace.as_ref();
        context.client = namespace.and_then(|ns| ns.client_name(self.client.caller.client));
        context.party.clone_from(&self.client.party);
        context.connection = Some(self.client.id);
    }

    /// How an entity is before an operation, where that is recorded.
    fn state_of(&self, entity: &SharedEntity, kind: SubQueue) -> Option<EntityState> {
        let namespace = self.client.namespace.as_ref();
        let namespace = namespace.filter(|namespace| namespace.faults.records())?;
        Some(namespace.read(entity, |entity| entity_state(entity, kind)))
    }

    fn see_transfer<'a>(
        &mut self,
        transfer: &Transfer,
        request: Option<&'a Request>,
    ) -> Option<Seen<'a>> {
        match self.links.get(transfer.link)? {
            Link::Sender(sender) => {
                let entity = Arc::clone(&sender.entity);
                let seen = MatchContext {
                    operations: vec![Operation::Send],
                    entities: vec![entity.path.to_string()],
                    before: self.state_of(&entity, SubQueue::Active),
                    messages: self.look_inside(transfer),
                    ..MatchContext::default()
                };
                Some(Seen::at(entity, seen))
            }
            Link::Coordinator(_) => self.see_demand(transfer),
            Link::Requests(Requests {
                node: Node::Cbs, ..
            }) => {
                let audience = request.and_then(|request| request.property("name"));
                let context = MatchContext {
                    operations: vec![Operation::Token],
                    entities: audience.map(audience_path).into_iter().collect(),
                    ..MatchContext::default()
                };
                Some(Seen {
                    context,
                    entities: Vec::new(),
                })
            }
            Link::Requests(Requests {
                node: Node::Management(entity, kind),
                ..
            }) => {
                let (entity, kind) = (Arc::clone(entity), *kind);
                Some(self.see_request(&entity, kind, request?))
            }
            Link::Receiver(_)
            | Link::Waiting(_)
            | Link::Browser(_)
            | Link::Replies(_)
            | Link::Detached(_) => None,
        }
    }

    pub(crate) fn is_cbs(&self, link: LinkId) -> bool {
        self.links.get(link).is_some_and(Link::is_cbs)
    }

    /// What a transfer brings, as far as a fault asks for that.
    fn look_inside(&mut self, transfer: &Transfer) -> Vec<Traits> {
        let namespace = self.client.namespace.as_ref();
        if !namespace.is_some_and(|namespace| namespace.faults.look_inside()) {
            return Vec::new();
        }
        let ids = self.client.caller.ids();
        let messages = match transfer.message_format {
            BATCH => Message::parse_batch(&transfer.payload, ids),
            _ => Message::parse(transfer.payload.clone(), ids).map(|message| vec![message]),
        };
        // What cannot be read is refused when it is carried out.
        messages
            .unwrap_or_default()
            .iter()
            .map(Traits::of)
            .collect()
    }

    fn see_demand<'a>(&mut self, transfer: &Transfer) -> Option<Seen<'a>> {
        let Ok(CoordinatorRequest::Discharge { transaction, .. }) =
            CoordinatorRequest::parse(&transfer.payload)
        else {
            return None;
        };
        let open = self.transactions.find(&transaction).ok();
        let entities = open.into_iter().flat_map(|open| open.entities());
        let entities: Vec<_> = entities.map(Arc::clone).collect();
        let context = MatchContext {
            operations: vec![Operation::Discharge],
            entities: entities
                .iter()
                .map(|entity| entity.path.to_string())
                .collect(),
            ..MatchContext::default()
        };
        Some(Seen { context, entities })
    }

    fn see_request<'a>(
        &self,
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        request: &'a Request,
    ) -> Seen<'a> {
        let name = request.property("operation");
        let mut operations = match name {
            Some("com.microsoft:renew-lock" | "com.microsoft:renew-session-lock") => {
                vec![Operation::RenewLock]
            }
            Some("com.microsoft:update-disposition") => {
                let particular = match request.text("disposition-status") {
                    Some("completed") => Some(Operation::Complete),
                    Some("abandoned") => Some(Operation::Abandon),
                    Some("suspended") => Some(Operation::DeadLetter),
                    Some("defered") => Some(Operation::Defer),
                    _ => None,
                };
                let settle = Some(Operation::Settle);
                particular.into_iter().chain(settle).collect()
            }
            _ => Vec::new(),
        };
        let is_locked = !operations.is_empty();
        operations.push(Operation::Management);
        let (tokens, session) = locks_in(request);
        let mut messages = self.locked_traits(entity, kind, &tokens);
        let session = session.as_ref().map(SessionName::as_str);
        messages.extend(session.map(Traits::of_session));
        messages.extend(numbers_in(request).map(Traits::of_number));
        let context = MatchContext {
            operations,
            name,
            entities: vec![entity.store_path(kind)],
            messages,
            before: self.state_of(entity, kind),
            is_locked,
            ..MatchContext::default()
        };
        Seen::at(Arc::clone(entity), context)
    }

    fn see_settlement<'a>(&self, settlement: &Settlement) -> Option<Seen<'a>> {
        let Some(Link::Receiver(receiver)) = self.links.get(settlement.link) else {
            return None;
        };
        let particular = match &settlement.outcome {
            Outcome::Accepted => Some(Operation::Complete),
            Outcome::Rejected { .. } => Some(Operation::DeadLetter),
            Outcome::Modified {
                undeliverable_here: true,
                ..
            } => Some(Operation::Defer),
            Outcome::Modified { .. } => Some(Operation::Abandon),
            Outcome::Released => None,
        };
        let (entity, kind) = (&receiver.entity, receiver.kind);
        let token = LockToken::from_tag(settlement.tag);
        let context = MatchContext {
            operations: particular.into_iter().chain([Operation::Settle]).collect(),
            entities: vec![entity.store_path(kind)],
            messages: self.locked_traits(entity, kind, &[token]),
            before: self.state_of(entity, kind),
            is_locked: true,
            can_come_twice: settlement.outcome == Outcome::Accepted,
            ..MatchContext::default()
        };
        Some(Seen::at(Arc::clone(entity), context))
    }

    /// What is known of the messages under these locks, as far as a fault asks for that.
    fn locked_traits(
        &self,
        entity: &SharedEntity,
        kind: SubQueue,
        tokens: &[LockToken],
    ) -> Vec<Traits> {
        let namespace = self.client.namespace.as_ref();
        let Some(namespace) = namespace.filter(|namespace| namespace.faults.look_inside()) else {
            return Vec::new();
        };
        let (mut locked, missing) = namespace.read_messages(
            entity,
            |entity| {
                let locked = tokens.iter();
                let locked = locked.filter_map(|&token| entity.locked_delivery(kind, token));
                locked
                    .map(|view| (view.number, view.delivery, view.message.clone()))
                    .collect()
            },
            |(.., message)| message,
        );
        missing.fill(locked.iter_mut().map(|(.., message)| message));
        let views = locked
            .iter()
            .map(|&(number, delivery, ref message)| DeliveryView {
                number,
                delivery,
                message,
            });
        views.map(Traits::of_delivery).collect()
    }

    /// Links to `$cbs` and the coordinator are not counted: who writes a test does not think of them.
    fn see_attach<'a>(&self, attach: &AttachRequest) -> Option<Seen<'a>> {
        let address = Address::parse(attach.address()?);
        if attach.is_coordinator() || address.destination == Destination::Cbs {
            return None;
        }
        let path = servicebus_broker::EntityPath::of_address(&address.entity);
        let namespace = self.client.namespace.as_ref()?;
        let entity = path.and_then(|path| namespace.entity(&path));
        let written = match (&entity, address.destination) {
            (Some(entity), Destination::Store(kind)) => entity.store_path(kind),
            (Some(entity), Destination::Management(kind)) => entity.management_path(kind),
            (None, _) | (_, Destination::Cbs) => address.path(),
        };
        let context = MatchContext {
            operations: vec![Operation::Attach],
            entities: vec![written],
            ..MatchContext::default()
        };
        Some(Seen {
            context,
            entities: entity.into_iter().collect(),
        })
    }

    /// The locks that an event is about.
    pub(crate) fn locks_of(&self, event: &Event) -> Option<Locks> {
        if let Event::Settle(settlement) = event {
            let Link::Receiver(receiver) = self.links.get(settlement.link)? else {
                return None;
            };
            let token = LockToken::from_tag(settlement.tag);
            let entity = Arc::clone(&receiver.entity);
            return Some((entity, receiver.kind, vec![token], None));
        }
        let Event::Transfer(transfer) = event else {
            return None;
        };
        let Link::Requests(Requests {
            node: Node::Management(entity, kind),
            ..
        }) = self.links.get(transfer.link)?
        else {
            return None;
        };
        let request = self.request_in(&transfer.payload)?;
        let (tokens, session) = locks_in(&request);
        Some((Arc::clone(entity), *kind, tokens, session))
    }
}

/// How an entity is, as far as an exploration tells operations apart by that.
pub(crate) fn entity_state(entity: &Entity, kind: SubQueue) -> EntityState {
    let counts = entity.counts(kind);
    let not_ready = counts.locked + counts.deferred;
    EntityState {
        ready: counts.active.saturating_sub(not_ready) as u64,
        locked: counts.locked as u64,
        receivers: entity
            .receivers(kind)
            .filter(|(_, credit)| *credit > 0)
            .count(),
    }
}

/// The sequence numbers that a request names.
fn numbers_in(request: &Request) -> impl Iterator<Item = i64> {
    let numbers = request.elements("sequence-numbers").unwrap_or_default();
    numbers.iter().filter_map(|number| {
        let serde_amqp::Value::Long(number) = number else {
            return None;
        };
        Some(*number)
    })
}

/// Links to `$cbs` bring tokens; azservicebus attaches to the coordinator before it has shown one.
fn comes_before_tokens(attach: &AttachRequest) -> bool {
    let address = attach.address().map(Address::parse);
    attach.is_coordinator()
        || address.is_some_and(|address| address.destination == Destination::Cbs)
}

/// The locks and the session that a request names.
fn locks_in(request: &Request) -> (Vec<LockToken>, Option<SessionName>) {
    let tokens = request.elements("lock-tokens").unwrap_or_default();
    let tokens = tokens.iter().filter_map(|token| {
        let serde_amqp::Value::Uuid(uuid) = token else {
            return None;
        };
        Some(uuid::Uuid::from_bytes(uuid.clone().into_inner()).into())
    });
    let session = request.text("session-id").and_then(SessionName::new);
    (tokens.collect(), session)
}
