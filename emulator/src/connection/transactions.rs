//! The transactions of a connection, which coordinator links declare and discharge (semantics §12, wire.md §8).
//!
//! The whole connection has one registry, because the coordinator and the links that work in its transactions may be on
//! different AMQP sessions. Open transactions are rolled back when their coordinator or the connection ends.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use servicebus_amqp::{
    DeliveryNumber, DeliveryState, LinkId, LinkRole, Outcome, SessionId, Settlement, Transfer,
};
use servicebus_broker::{
    Entity, EntityId, LockToken, Outcome as Settled, PropertyChanges, SubQueue, Tier, Transaction,
    TransactionId,
};

use super::commit::confirmed;
use super::links::Link;
use super::peer::ClientConnection;
use super::transact::in_transaction;
use crate::namespace::SharedEntity;
use crate::nodes::{Condition, CoordinatorRequest, ServiceError, commit_refusal};

/// Maximum number of open transactions of a connection: more than any client has, and it limits their buffers.
const OPEN: usize = 1000;

/// The transactions of a connection, by their ids.
#[derive(Debug, Default)]
pub(crate) struct Transactions(BTreeMap<TransactionId, Open>);

/// A transaction that is not discharged.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) transaction: Transaction,
    /// The link on which it was declared.
    coordinator: LinkId,
    /// The AMQP session of that link.
    session: SessionId,
    /// The entities in which it has work.
    entities: BTreeMap<EntityId, Arc<SharedEntity>>,
    /// The entity of its first work, if that came on the session of its coordinator: the via entity of sends to others.
    via: Option<Arc<SharedEntity>>,
    /// Deliveries that the client settled, in order.
    deliveries: Vec<Delivery>,
    /// An error that the client only learns of at the commit.
    refusal: Option<ServiceError>,
}

/// A delivery that was settled in a transaction.
#[derive(Debug)]
enum Delivery {
    /// The client waits for it to be settled after the commit.
    Unsettled(LinkId, DeliveryNumber, Outcome),
    /// The client has forgotten it, and cannot settle it again after a rollback.
    Settled(Arc<SharedEntity>, SubQueue, LockToken),
}

impl Transactions {
    /// Returns the open transaction that a client names.
    pub(crate) fn find(&mut self, id: &[u8]) -> Result<&mut Open, ServiceError> {
        let id = TransactionId::from_bytes(id);
        let open = id.and_then(|id| self.0.get_mut(&id));
        open.ok_or_else(unknown)
    }

    /// Returns the bytes that their settlements occupy.
    pub(crate) fn held(&self) -> usize {
        // Every turn calls this.
        if self.0.is_empty() {
            return 0;
        }
        let all = self.0.values();
        all.map(|open| open.transaction.held() + open.deliveries.len() * size_of::<Delivery>())
            .sum()
    }

    fn take(&mut self, id: &[u8]) -> Result<Open, ServiceError> {
        let id = TransactionId::from_bytes(id);
        id.and_then(|id| self.0.remove(&id)).ok_or_else(unknown)
    }
}

impl Open {
    /// Records that there may be work for an entity, from a link of this AMQP session.
    pub(crate) fn join(&mut self, entity: &Arc<SharedEntity>, session: SessionId) {
        let mut participants = self.transaction.participants();
        if !participants.any(|(id, _)| id == entity.id) {
            return;
        }
        drop(participants);
        if self.entities.is_empty() && session == self.session {
            self.via = Some(Arc::clone(entity));
        }
        self.entities.insert(entity.id, Arc::clone(entity));
    }

    /// Records a settlement that must be answered at the commit.
    pub(crate) fn note(
        &mut self,
        entity: &Arc<SharedEntity>,
        kind: SubQueue,
        settlement: &Settlement,
    ) {
        self.deliveries.push(if settlement.settled {
            let token = LockToken::from_tag(settlement.tag);
            Delivery::Settled(Arc::clone(entity), kind, token)
        } else {
            let outcome = confirmed(settlement.outcome.clone());
            Delivery::Unsettled(settlement.link, settlement.delivery, outcome)
        });
    }

    /// Records an error whose client does not wait for the outcome.
    pub(crate) fn refuse(&mut self, refusal: &ServiceError) {
        self.refusal.get_or_insert_with(|| refusal.clone());
    }

    /// Returns whether a link of this AMQP session can send to any entity via another one.
    pub(crate) fn crosses(&self, session: SessionId) -> bool {
        let is_alone = self.entities.is_empty() || self.via.is_some();
        session == self.session && is_alone
    }

    /// Returns the entities in which it has work, in the order of their ids.
    pub(crate) fn entities(&self) -> impl Iterator<Item = &Arc<SharedEntity>> {
        self.entities.values()
    }

    /// Returns the via entity, once it is fixed.
    pub(crate) fn via(&self) -> Option<&Arc<SharedEntity>> {
        self.via.as_ref()
    }
}

impl ClientConnection {
    /// Handles a message to the coordinator.
    pub(crate) fn on_demand(&mut self, session: SessionId, transfer: &Transfer, now: Duration) {
        let demand = CoordinatorRequest::parse(&transfer.payload);
        let operation = match &demand {
            Ok(CoordinatorRequest::Declare) => "declare",
            Ok(CoordinatorRequest::Discharge { .. }) => "discharge",
            Err(_) => "transaction",
        };
        let answer = match demand {
            Ok(CoordinatorRequest::Declare) => self.declare(transfer.link, session),
            Ok(CoordinatorRequest::Discharge { transaction, fail }) => self
                .discharge(&transaction, fail)
                .map(|()| Outcome::Accepted.into()),
            Err(refusal) => Err(refusal),
        };
        match answer {
            Ok(_) if transfer.settled => {}
            Ok(state) => self.answer(now, transfer.link, transfer.delivery, state),
            Err(refusal) => {
                self.client.attempt.operation = Cow::Borrowed(operation);
                let error = self.client.refuse(&refusal, None);
                if !transfer.settled {
                    self.answer(now, transfer.link, transfer.delivery, Outcome::from(error));
                }
            }
        }
    }

    fn declare(
        &mut self,
        coordinator: LinkId,
        session: SessionId,
    ) -> Result<DeliveryState, ServiceError> {
        if let Some(namespace) = &self.client.namespace
            && namespace.config.settings.tier == Tier::Basic
        {
            let text = format!(
                "Transaction is unsupported because the namespace {} is of 'Basic' tier.",
                namespace.name()
            );
            return Err(ServiceError::new(Condition::NotAllowed, text));
        }
        self.drop_outdated_work();
        if self.transactions.0.len() >= OPEN {
            self.forget_outdated();
        }
        if self.transactions.0.len() >= OPEN {
            let text = format!("A connection can have {OPEN} transactions open at a time.");
            return Err(ServiceError::new(Condition::ResourceLimitExceeded, text));
        }
        let transaction = Transaction::declare(self.client.caller.ids());
        let id = transaction.id();
        let open = Open {
            transaction,
            coordinator,
            session,
            entities: BTreeMap::new(),
            via: None,
            deliveries: Vec::new(),
            refusal: None,
        };
        self.transactions.0.insert(id, open);
        Ok(DeliveryState::Declared(Bytes::copy_from_slice(
            &id.to_bytes(),
        )))
    }

    fn discharge(&mut self, id: &[u8], fail: bool) -> Result<(), ServiceError> {
        let open = self.transactions.take(id)?;
        let Some(namespace) = &self.client.namespace else {
            return Ok(());
        };
        if fail || open.refusal.is_some() {
            self.roll_back(&open);
            let why = open.refusal.filter(|_| !fail);
            return why.map_or(Ok(()), |why| Err(not_whole(&why)));
        }
        let entities: Vec<Arc<SharedEntity>> = open.entities.into_values().collect();
        let committed = namespace.commit(&entities, &mut self.client.caller, open.transaction);
        match committed {
            Ok(()) => self.settle_all(id, open.deliveries),
            Err(_) => self.release_settled(&open.deliveries),
        }
        let client = &self.client;
        committed.map_err(|error| commit_refusal(&error, &client.host, client.is_jms))
    }

    /// Settles the deliveries of a committed transaction.
    fn settle_all(&mut self, transaction: &[u8], deliveries: Vec<Delivery>) {
        for delivery in deliveries {
            if let Delivery::Unsettled(link, delivery, outcome) = delivery {
                let state = in_transaction(transaction.into(), outcome);
                self.settle_delivery(link, delivery, state);
            }
        }
    }

    /// Refuses a settlement. A delivery that an open transaction will settle stays unsettled until the discharge.
    pub(crate) fn refuse_settlement(
        &mut self,
        (entity, kind): (&SharedEntity, SubQueue),
        token: LockToken,
        (link, delivery): (LinkId, DeliveryNumber),
        refusal: Outcome,
    ) {
        let open = self.transactions.0.values();
        let is_owed = open
            .flat_map(|open| &open.deliveries)
            .any(|owed| match owed {
                Delivery::Unsettled(on, own, _) => (*on, *own) == (link, delivery),
                Delivery::Settled(..) => false,
            });
        let is_locked = |entity: &Entity| entity.locked_message(kind, token).is_some();
        let namespace = self.client.namespace.as_ref();
        match is_owed && namespace.is_some_and(|namespace| namespace.read(entity, is_locked)) {
            true => self.confirm_unsettled(link, delivery, refusal.into()),
            false => self.settle_delivery(link, delivery, refusal),
        }
    }

    /// Abandons deliveries of a transaction that was rolled back, if their client has forgotten them (spec/observed.md 41).
    /// This counts as a delivery, so that JMS clients see the message as redelivered (JMS 2.0, 3.4.7), and poison messages
    /// are dead-lettered.
    fn release_settled(&mut self, deliveries: &[Delivery]) {
        let Some(namespace) = &self.client.namespace else {
            return;
        };
        for delivery in deliveries {
            if let Delivery::Settled(entity, kind, token) = delivery {
                namespace.operate(entity, &mut self.client.caller, |entity, cx| {
                    let changes = PropertyChanges::default();
                    // A lock that has ended meanwhile needs no release.
                    let _ = entity.settle(cx, *kind, *token, Settled::Abandon { changes });
                });
            }
        }
    }

    fn roll_back(&mut self, open: &Open) {
        let Some(namespace) = &self.client.namespace else {
            return;
        };
        let transaction = &open.transaction;
        for entity in open.entities.values() {
            namespace.operate(
                entity,
                &mut self.client.caller,
                |entity: &mut Entity, cx| {
                    entity.roll_back(cx, transaction);
                },
            );
        }
        self.release_settled(&open.deliveries);
    }

    /// Rolls back the transactions of a coordinator link that is gone.
    pub(crate) fn forget_coordinator(&mut self, link: LinkId) {
        self.roll_back_where(|open| open.coordinator == link);
    }

    /// Rolls back transactions whose time is over, so that their messages no longer count towards the size of entities. Their
    /// ids stay known: a late discharge learns that it was too late.
    fn drop_outdated_work(&mut self) {
        let is_outdated = self.is_outdated();
        let all = self.transactions.0.iter();
        let over = all.filter(|(_, open)| is_outdated(open) && !open.entities.is_empty());
        for id in Vec::from_iter(over.map(|(&id, _)| id)) {
            if let Some(mut open) = self.transactions.0.remove(&id) {
                self.roll_back(&open);
                open.transaction.drop_work();
                open.entities.clear();
                open.deliveries.clear();
                self.transactions.0.insert(id, open);
            }
        }
    }

    /// Makes room by removing transactions that can no longer be committed.
    fn forget_outdated(&mut self) {
        self.roll_back_where(self.is_outdated());
    }

    fn is_outdated(&self) -> impl Fn(&Open) -> bool + use<> {
        let namespace = self.client.namespace.as_ref();
        let now = namespace.map(|namespace| namespace.clock.now());
        move |open| {
            let deadline = open.transaction.deadline();
            deadline.is_some_and(|end| now.is_some_and(|now| end <= now))
        }
    }

    fn roll_back_where(&mut self, is_over: impl Fn(&Open) -> bool) {
        let all = self.transactions.0.iter();
        let over = all.filter_map(|(&id, open)| is_over(open).then_some(id));
        for id in Vec::from_iter(over) {
            if let Some(open) = self.transactions.0.remove(&id) {
                self.roll_back(&open);
            }
        }
    }

    /// Returns the entity of the first link on an AMQP session that sends or receives.
    pub(crate) fn first_entity_on(&self, session: SessionId) -> Option<Arc<SharedEntity>> {
        let first = self.data_links(session).next();
        first.map(|(_, entity)| Arc::clone(entity))
    }

    /// Checks the rule for transactions across entities: on the AMQP session of a coordinator whose first link sends,
    /// messages to other entities go via its entity, and those entities cannot be received from (spec/observed.md 43).
    pub(crate) fn check_crossing(
        &self,
        session: SessionId,
        entity: &SharedEntity,
    ) -> Result<(), ServiceError> {
        if !self.links.have_coordinator(session) {
            return Ok(());
        }
        let mut links = self.data_links(session);
        let Some((LinkRole::Sender, first)) = links.next() else {
            return Ok(());
        };
        let own = entity.path.top_level();
        let is_own = |(role, entity): (LinkRole, &Arc<SharedEntity>)| {
            role == LinkRole::Sender && entity.path.top_level() == own
        };
        match first.path.top_level() != own && links.any(is_own) {
            true => Err(ServiceError::is_sent_to_by_way_of(
                &entity.path,
                &first.path,
            )),
            false => Ok(()),
        }
    }

    /// Returns the links of an AMQP session that send or receive, in the order in which they were attached.
    fn data_links(
        &self,
        session: SessionId,
    ) -> impl Iterator<Item = (LinkRole, &Arc<SharedEntity>)> {
        self.links.values().filter_map(move |link| {
            let (own, role, entity) = if let Link::Sender(sender) = link {
                (sender.session, LinkRole::Sender, &sender.entity)
            } else if let Link::Receiver(receiver) = link {
                (receiver.session, LinkRole::Receiver, &receiver.entity)
            } else {
                return None;
            };
            (own == session).then_some((role, entity))
        })
    }
}

/// Returns the error of a commit, with the condition of the refused work.
fn not_whole(why: &ServiceError) -> ServiceError {
    let text = format!(
        "The transaction cannot be committed, because a message that was sent or settled in it was refused: {}",
        why.text
    );
    ServiceError::new(why.condition, text)
}

/// Returns the error for an unknown transaction, in the words of the service (semantics §20.2).
fn unknown() -> ServiceError {
    let text = "Transaction hasn't been declared yet, or has already been discharged.";
    ServiceError::new(Condition::TransactionUnknown, text)
}
