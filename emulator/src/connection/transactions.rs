//! The transactions of a connection: declared and discharged on coordinator links (semantics §12, wire.md §8).
//!
//! There is one registry for the whole connection, because the coordinator and the links that work in its transactions
//! may be on different AMQP sessions. What is open when its coordinator goes, or the connection, is rolled back.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use servicebus_amqp::{DeliveryState, LinkId, Outcome, SessionId, Transfer};
use servicebus_broker::{Deviation, EntityId, Mailbox, Tier, Transaction, TransactionId};

use super::links::Link;
use super::peer::Peer;
use crate::namespace::Entity;
use crate::nodes::{Condition, Demand, Refusal, commit_refusal};

/// Transactions that a connection may have open. More than any client has, and what is buffered for them has a bound.
const OPEN: usize = 1000;

/// The transactions of a connection, by their ids.
#[derive(Debug, Default)]
pub(super) struct Transactions(BTreeMap<TransactionId, Open>);

/// A transaction that is not discharged.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) transaction: Transaction,
    /// The link on which it was declared.
    coordinator: LinkId,
    /// The AMQP session of that link.
    session: SessionId,
    /// Where it has work.
    entities: BTreeMap<EntityId, Arc<Entity>>,
    /// The entity of its first work, if that came on the session of its coordinator: others are sent to by way of it.
    via: Option<Arc<Entity>>,
}

impl Transactions {
    /// The open transaction that a client names.
    pub(super) fn find(&mut self, id: &[u8]) -> Result<&mut Open, Refusal> {
        let id = TransactionId::from_bytes(id);
        let open = id.and_then(|id| self.0.get_mut(&id));
        open.ok_or_else(unknown)
    }

    fn take(&mut self, id: &[u8]) -> Result<Open, Refusal> {
        let id = TransactionId::from_bytes(id);
        id.and_then(|id| self.0.remove(&id)).ok_or_else(unknown)
    }
}

impl Open {
    /// Notes that there may be work for an entity, which came on a link of this AMQP session.
    pub(super) fn join(&mut self, entity: &Arc<Entity>, session: SessionId) {
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

    /// Whether a link of this AMQP session can send to any entity, by way of another one.
    pub(super) fn crosses(&self, session: SessionId) -> bool {
        let is_alone = self.entities.is_empty() || self.via.is_some();
        session == self.session && is_alone
    }

    /// Where it has work, in the order of their ids.
    pub(super) fn entities(&self) -> impl Iterator<Item = &Arc<Entity>> {
        self.entities.values()
    }

    /// The entity by way of which others are sent to, if that is fixed.
    pub(super) fn via(&self) -> Option<&Arc<Entity>> {
        self.via.as_ref()
    }
}

impl Peer {
    /// A message to the coordinator.
    pub(super) fn on_demand(&mut self, session: SessionId, transfer: &Transfer, now: Duration) {
        let demand = Demand::parse(&transfer.payload);
        let answer = match demand {
            Ok(Demand::Declare) => self.declare(transfer.link, session),
            Ok(Demand::Discharge { transaction, fail }) => self
                .discharge(&transaction, fail)
                .map(|()| Outcome::Accepted.into()),
            Err(refusal) => Err(refusal),
        };
        match answer {
            Ok(_) if transfer.settled => {}
            Ok(state) => self.answer(now, transfer.link, transfer.delivery, state),
            Err(refusal) => {
                let (link, delivery) = (transfer.link, transfer.delivery);
                self.refuse_transfer(link, delivery, transfer.settled, now, &refusal);
            }
        }
    }

    fn declare(
        &mut self,
        coordinator: LinkId,
        session: SessionId,
    ) -> Result<DeliveryState, Refusal> {
        if let Some(namespace) = &self.namespace
            && namespace.config.settings.tier == Tier::Basic
        {
            let text = format!(
                "Transaction is unsupported because the namespace {} is of 'Basic' tier.",
                namespace.name()
            );
            return Err(Refusal::new(Condition::NotAllowed, text));
        }
        if self.transactions.0.len() >= OPEN {
            self.forget_outdated();
        }
        if self.transactions.0.len() >= OPEN {
            let text = format!("A connection can have {OPEN} transactions open at a time.");
            return Err(Refusal::new(Condition::ResourceLimitExceeded, text));
        }
        let transaction = Transaction::declare(self.caller.ids());
        let id = transaction.id();
        let open = Open {
            transaction,
            coordinator,
            session,
            entities: BTreeMap::new(),
            via: None,
        };
        self.transactions.0.insert(id, open);
        Ok(DeliveryState::Declared(Bytes::copy_from_slice(
            &id.to_bytes(),
        )))
    }

    fn discharge(&mut self, id: &[u8], fail: bool) -> Result<(), Refusal> {
        let open = self.transactions.take(id)?;
        let Some(namespace) = &self.namespace else {
            return Ok(());
        };
        let deviations = namespace.config.settings.deviations;
        if fail && !deviations.has(Deviation::RollbackCommits) {
            self.roll_back(&open);
            return Ok(());
        }
        let entities: Vec<Arc<Entity>> = open.entities.into_values().collect();
        let committed = namespace.commit(&entities, &mut self.caller, open.transaction);
        committed.map_err(|error| commit_refusal(&error))
    }

    fn roll_back(&mut self, open: &Open) {
        let Some(namespace) = &self.namespace else {
            return;
        };
        let transaction = &open.transaction;
        for entity in open.entities.values() {
            namespace.operate(entity, &mut self.caller, |mailbox: &mut Mailbox, cx| {
                mailbox.roll_back(cx, transaction);
            });
        }
    }

    /// The coordinator link is gone.
    pub(super) fn forget_coordinator(&mut self, link: LinkId) {
        self.roll_back_where(|open| open.coordinator == link);
    }

    /// Makes room by way of transactions that can no longer be committed.
    fn forget_outdated(&mut self) {
        let Some(now) = self
            .namespace
            .as_ref()
            .map(|namespace| namespace.clock.now())
        else {
            return;
        };
        self.roll_back_where(|open| open.transaction.deadline().is_some_and(|end| end <= now));
    }

    fn roll_back_where(&mut self, is_over: impl Fn(&Open) -> bool) {
        let all = std::mem::take(&mut self.transactions.0);
        for (id, open) in all {
            if is_over(&open) {
                self.roll_back(&open);
            } else {
                self.transactions.0.insert(id, open);
            }
        }
    }

    /// The entity of the first link on an AMQP session that sends or receives.
    pub(super) fn first_entity_on(&self, session: SessionId) -> Option<Arc<Entity>> {
        // In the order in which they were attached.
        self.links.values().find_map(|link| match link {
            Link::Sender(sender) if sender.session == session => Some(Arc::clone(&sender.entity)),
            Link::Receiver(receiver) if receiver.session == session => {
                Some(Arc::clone(&receiver.entity))
            }
            Link::Sender(_)
            | Link::Receiver(_)
            | Link::Waiting(_)
            | Link::Coordinator(_)
            | Link::Requests(..)
            | Link::Replies(_)
            | Link::Detached(_) => None,
        })
    }
}

/// In the words of the service (semantics §20.2).
fn unknown() -> Refusal {
    let text = "Transaction hasn't been declared yet, or has already been discharged.";
    Refusal::new(Condition::TransactionUnknown, text)
}
