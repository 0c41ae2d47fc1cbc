//! Describes an event for fault matching, before it is handled.

use std::sync::Arc;
use std::time::Duration;

use servicebus_amqp::{AttachRequest, Event, LinkId, Outcome, Settlement, Transfer};
use servicebus_broker::{
    DeliveryView, Entity, IdSource, LockToken, Message, MessageError, SequenceNumber, SessionName,
    SubQueue,
};
use servicebus_control_api::EntityState;

use super::delays::{ObservedOperation, link_of};
use crate::auth::audience_path;
use crate::connection::links::{Link, Node, Requests};
use crate::connection::peer::ClientConnection;
use crate::faults::{Affected, Lock, MatchContext, MatchedFaults, Operation, Traits};
use crate::namespace::SharedEntity;
use crate::nodes::{Address, CoordinatorRequest, Destination, Request};

/// The message format of a batch (wire.md §3.3).
const BATCH: u32 = 0x8001_3700;

/// The locks of an event: their store, their tokens, and the named session.
type Locks = (
    Arc<SharedEntity>,
    SubQueue,
    Vec<LockToken>,
    Option<SessionName>,
);

impl ClientConnection {
    /// Matches an event; returns the faults that apply and the affected entities.
    pub(crate) fn is_hit(&mut self, event: &Event, now: Duration) -> (MatchedFaults, Affected) {
        let Some(namespace) = self.client.namespace.clone() else {
            return (MatchedFaults::default(), Affected::default());
        };
        let mut request = None;
        if let Event::Attach { attach, .. } = event
            && !comes_before_tokens(attach)
        {
            self.end_wait_for_party(now);
        }
        let observed = if let Event::Transfer(transfer) = event {
            if let Some(Link::Requests(_)) = self.links.get(transfer.link) {
                request = self.request_in(&transfer.payload);
            }
            if let (Some(request), true) = (&request, self.is_cbs(transfer.link)) {
                self.record_party(request);
                self.end_wait_for_party(now);
            }
            self.observe_transfer(transfer, request.as_ref())
        } else if let Event::Settle(settlement) = event {
            self.observe_settlement(settlement)
        } else if let Event::Attach { attach, .. } = event {
            self.observe_attach(attach)
        } else {
            None
        };
        let Some(mut observed) = observed else {
            return (MatchedFaults::default(), Affected::default());
        };
        if namespace.faults.needs_messages() {
            observed.context.messages = self.messages_of(event, request.as_ref());
        }
        observed.context.link = link_of(event);
        self.add_party(&mut observed.context);
        let matched = namespace.match_faults(&observed.context);
        let ObservedOperation { context, affected } = observed;
        if matched == MatchedFaults::default() {
            return (matched, affected);
        }
        if let Event::Transfer(transfer) = event
            && let Some(Link::Sender(_)) = self.links.get(transfer.link)
        {
            let message_id = sent_id(transfer);
            return (
                matched,
                Affected {
                    message_id,
                    ..affected
                },
            );
        }
        let messages = match context.messages.is_empty() {
            true => self.messages_of(event, request.as_ref()),
            false => context.messages,
        };
        let number = match messages.as_slice() {
            [message] => message.sequence_number.map(i64::cast_unsigned),
            _ => None,
        };
        let number = number.map(SequenceNumber);
        (matched, Affected { number, ..affected })
    }

    pub(crate) fn connection_context(&self) -> MatchContext<'static> {
        let mut context = MatchContext {
            operations: vec![Operation::Connect],
            ..MatchContext::default()
        };
        self.add_party(&mut context);
        context
    }

    /// Adds the party to an operation's context.
    pub(crate) fn add_party(&self, context: &mut MatchContext<'_>) {
        let namespace = self.client.namespace.as_ref();
        context.client = namespace.and_then(|ns| ns.client_name(self.client.caller.client));
        context.party.clone_from(&self.client.party);
        context.connection = Some(self.client.id);
    }

    /// Returns the state of an entity before an operation, if it is recorded.
    fn state_of(&self, entity: &SharedEntity, kind: SubQueue) -> Option<EntityState> {
        let namespace = self.client.namespace.as_ref();
        let namespace = namespace.filter(|namespace| namespace.faults.records())?;
        Some(namespace.read(entity, |entity| entity_state(entity, kind)))
    }

    fn lock_in(&self, entity: &SharedEntity, kind: SubQueue) -> Option<Lock> {
        let namespace = self.client.namespace.as_ref()?;
        Some(namespace.read(entity, |entity| Lock::of(entity, kind)))
    }

    fn observe_transfer<'a>(
        &mut self,
        transfer: &Transfer,
        request: Option<&'a Request>,
    ) -> Option<ObservedOperation<'a>> {
        match self.links.get(transfer.link)? {
            Link::Sender(sender) => {
                let entity = Arc::clone(&sender.entity);
                let context = MatchContext {
                    operations: vec![Operation::Send],
                    entities: vec![entity.path.to_string()],
                    before: self.state_of(&entity, SubQueue::Active),
                    ..MatchContext::default()
                };
                Some(ObservedOperation {
                    context,
                    affected: Affected::at(entity, SubQueue::Active),
                })
            }
            Link::Coordinator(_) => self.observe_discharge(transfer),
            Link::Requests(Requests {
                node: Node::Cbs, ..
            }) => {
                let audience = request.and_then(|request| request.property("name"));
                let context = MatchContext {
                    operations: vec![Operation::Token],
                    entities: audience.map(audience_path).into_iter().collect(),
                    ..MatchContext::default()
                };
                Some(ObservedOperation {
                    context,
                    affected: Affected::default(),
                })
            }
            Link::Requests(Requests {
                node: Node::Management(entity, kind),
                ..
            }) => {
                let (entity, kind) = (Arc::clone(entity), *kind);
                Some(self.observe_request(&entity, kind, request?))
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

    fn messages_of(&mut self, event: &Event, request: Option<&Request>) -> Vec<Traits> {
        if let Event::Transfer(transfer) = event
            && let Some(Link::Sender(_)) = self.links.get(transfer.link)
        {
            // A message that cannot be parsed is refused when the event is handled.
            let sent = parsed(transfer, self.client.caller.ids()).unwrap_or_default();
            return sent.iter().map(Traits::of).collect();
        }
        let Some((entity, kind, tokens, session)) = self.locks_of(event) else {
            return Vec::new();
        };
        let mut messages = self.locked_traits(&entity, kind, &tokens);
        let session = session.as_ref().map(SessionName::as_str);
        messages.extend(session.map(Traits::of_session));
        let numbers = request.into_iter().flat_map(numbers_in);
        messages.extend(numbers.map(Traits::of_number));
        messages
    }

    fn observe_discharge<'a>(&mut self, transfer: &Transfer) -> Option<ObservedOperation<'a>> {
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
        let affected = Affected {
            entities,
            ..Affected::default()
        };
        Some(ObservedOperation { context, affected })
    }

    fn observe_request<'a>(
        &self,
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        request: &'a Request,
    ) -> ObservedOperation<'a> {
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
        let context = MatchContext {
            operations,
            name,
            entities: vec![entity.store_path(kind)],
            before: self.state_of(entity, kind),
            lock: self.lock_in(entity, kind).filter(|_| is_locked),
            ..MatchContext::default()
        };
        ObservedOperation {
            context,
            affected: Affected::at(Arc::clone(entity), kind),
        }
    }

    fn observe_settlement<'a>(&self, settlement: &Settlement) -> Option<ObservedOperation<'a>> {
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
        let context = MatchContext {
            operations: particular.into_iter().chain([Operation::Settle]).collect(),
            entities: vec![entity.store_path(kind)],
            before: self.state_of(entity, kind),
            lock: self.lock_in(entity, kind),
            can_come_twice: settlement.outcome == Outcome::Accepted,
            ..MatchContext::default()
        };
        Some(ObservedOperation {
            context,
            affected: Affected::at(Arc::clone(entity), kind),
        })
    }

    /// Returns the known traits of the messages under these locks.
    fn locked_traits(
        &self,
        entity: &SharedEntity,
        kind: SubQueue,
        tokens: &[LockToken],
    ) -> Vec<Traits> {
        let Some(namespace) = &self.client.namespace else {
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

    /// Links to `$cbs` and the coordinator do not count: authors of tests do not think of them.
    fn observe_attach<'a>(&self, attach: &AttachRequest) -> Option<ObservedOperation<'a>> {
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
        let affected = Affected {
            entities: entity.into_iter().collect(),
            ..Affected::default()
        };
        Some(ObservedOperation { context, affected })
    }

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

/// Parses the messages of a transfer; those without an id get one.
fn parsed(transfer: &Transfer, ids: &mut dyn IdSource) -> Result<Vec<Message>, MessageError> {
    match transfer.message_format {
        BATCH => Message::parse_batch(&transfer.payload, ids),
        _ => Message::parse(transfer.payload.clone(), ids).map(|message| vec![message]),
    }
}

/// Returns the id of the only message of a transfer, if the sender set it.
fn sent_id(transfer: &Transfer) -> Option<String> {
    let mut given = GivenIds(0);
    let sent = parsed(transfer, &mut given).ok()?;
    match (sent.as_slice(), given) {
        ([message], GivenIds(0)) => Some(message.id().into_owned()),
        _ => None,
    }
}

/// Counts generated ids.
struct GivenIds(u64);

impl IdSource for GivenIds {
    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// Returns the state of an entity, as far as explorations distinguish operations by it.
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

fn numbers_in(request: &Request) -> impl Iterator<Item = i64> {
    let numbers = request.elements("sequence-numbers").unwrap_or_default();
    numbers.iter().filter_map(|number| {
        let serde_amqp::Value::Long(number) = number else {
            return None;
        };
        Some(*number)
    })
}

/// Links to `$cbs` transport tokens; azservicebus attaches to the coordinator before it has shown one.
fn comes_before_tokens(attach: &AttachRequest) -> bool {
    let address = attach.address().map(Address::parse);
    attach.is_coordinator()
        || address.is_some_and(|address| address.destination == Destination::Cbs)
}

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
