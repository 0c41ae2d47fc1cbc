//! Sends and settlements in a transaction (wire.md §8).
//!
//! A success is answered in transactional state, because Java compares the kinds of states. An error is answered as without
//! a transaction, because Java takes any transactional state for success; the transaction is unchanged and can be committed,
//! except where the client does not wait for outcomes.
//!
//! A settlement is answered unsettled, and settled after the commit: until then the client may settle the delivery again
//! (spec/observed.md 41).

use std::sync::Arc;
use std::time::Duration;

use servicebus_amqp::{DeliveryState, LinkId, Outcome as Wire, SessionId, Settlement, Transfer};
use servicebus_broker::{EntityPath, LockToken, SubQueue};

use super::commit::{attempted, confirmed};
use super::links::{Link, Sender};
use super::peer::ClientConnection;
use super::transactions::Open;
use crate::namespace::SharedEntity;
use crate::nodes::{Condition, ServiceError, broker_outcome, no_namespace, transact_refusal};

impl ClientConnection {
    /// Enlists a transfer, which is accepted at the commit.
    pub(crate) fn send_in(
        &mut self,
        transaction: Box<[u8]>,
        sender: &Sender,
        transfer: Transfer,
        now: Duration,
    ) {
        let (link, delivery, settled) = (transfer.link, transfer.delivery, transfer.settled);
        match self.enlist_send(&transaction, sender, transfer) {
            Ok(()) if settled => {}
            Ok(()) => {
                let state = in_transaction(transaction, Wire::Accepted);
                self.answer(now, link, delivery, state);
            }
            Err(refusal) => {
                self.refuse_at_commit(Some(&transaction), settled, &refusal);
                self.refuse_transfer(link, delivery, settled, now, &refusal);
            }
        }
    }

    /// Handles a message that came on a link which the emulator had detached, perhaps in a transaction.
    pub(crate) fn on_dropped(
        &mut self,
        link: LinkId,
        settled: bool,
        transaction: Option<Box<[u8]>>,
    ) {
        let refusal = match self.links.get(link) {
            Some(Link::Detached(refusal)) => refusal.clone(),
            _ => ServiceError::new(Condition::LinkDetachForced, "The link was detached."),
        };
        self.refuse_at_commit(transaction.as_deref(), settled, &refusal);
    }

    /// Refuses the commit of a transaction if the sender of a refused message does not wait for its outcome, as JMS clients
    /// do not.
    pub(crate) fn refuse_at_commit(
        &mut self,
        transaction: Option<&[u8]>,
        settled: bool,
        refusal: &ServiceError,
    ) {
        if (settled || self.client.is_jms)
            && let Some(transaction) = transaction
            && let Ok(open) = self.transactions.find(transaction)
        {
            open.refuse(refusal);
        }
    }

    fn enlist_send(
        &mut self,
        transaction: &[u8],
        sender: &Sender,
        transfer: Transfer,
    ) -> Result<(), ServiceError> {
        let open = self.transactions.find(transaction)?;
        let first = match open.via() {
            Some(via) => Some(Arc::clone(via)),
            None if open.crosses(sender.session) => self.first_entity_on(sender.session),
            None => None,
        };
        let messages = self.read(transfer)?.into_vec();
        let open = self.transactions.find(transaction)?;
        let (entity, destination) = way(open, sender, first);
        let namespace = self.client.namespace.as_ref().ok_or_else(no_namespace)?;
        if sender.entity.is_deleted() {
            return Err(ServiceError::not_found(
                &self.client.host,
                sender.entity.path.as_str(),
            ));
        }
        let enlisted = namespace.operate(&entity, &mut self.client.caller, |entity, cx| {
            let transaction = &mut open.transaction;
            match &destination {
                Some(path) => entity.enlist_transfer(cx, transaction, path, messages),
                None => entity.enlist_send(cx, transaction, messages),
            }
        });
        enlisted.map_err(|error| transact_refusal(&error, &self.client.host, &entity.path))?;
        open.join(&entity, sender.session);
        Ok(())
    }

    /// Enlists a settlement, which takes effect at the commit.
    pub(crate) fn settle_in(
        &mut self,
        transaction: Box<[u8]>,
        (entity, kind): (Arc<SharedEntity>, SubQueue),
        session: SessionId,
        settlement: Settlement,
    ) {
        let (link, delivery, settled) = (settlement.link, settlement.delivery, settlement.settled);
        let place = (&entity, kind);
        match self.enlist_settlement(&transaction, place, session, &settlement) {
            Ok(()) if settled => {}
            Ok(()) => {
                let state = in_transaction(transaction, confirmed(settlement.outcome));
                self.confirm_unsettled(link, delivery, state);
            }
            Err(refusal) => {
                // A client that has forgotten the delivery learns of the error at the commit, and gets the message again
                // like all others.
                if settled && let Ok(open) = self.transactions.find(&transaction) {
                    open.note(&entity, kind, &settlement);
                    open.refuse(&refusal);
                }
                let token = LockToken::from_tag(settlement.tag);
                self.client.attempt = attempted(&settlement.outcome, token);
                let error = self.client.refuse(&refusal, Some((&entity, kind)));
                if !settled {
                    let delivery = (link, delivery);
                    self.refuse_settlement((&entity, kind), token, delivery, error.into());
                }
            }
        }
    }

    fn enlist_settlement(
        &mut self,
        transaction: &[u8],
        (entity, kind): (&Arc<SharedEntity>, SubQueue),
        session: SessionId,
        settlement: &Settlement,
    ) -> Result<(), ServiceError> {
        let outcome = broker_outcome(&settlement.outcome)?;
        let open = self.transactions.find(transaction)?;
        let namespace = self.client.namespace.as_ref().ok_or_else(no_namespace)?;
        let tokens = [LockToken::from_tag(settlement.tag)];
        let enlisted = namespace.operate(entity, &mut self.client.caller, |entity, cx| {
            entity.enlist_settlement(cx, &mut open.transaction, kind, &tokens, &outcome)
        });
        if enlisted.is_ok() {
            open.join(entity, session);
            open.note(entity, kind, settlement);
        }
        enlisted.map_err(|error| match entity.is_deleted() {
            true => self.client.lock_gone(entity, kind),
            false => transact_refusal(&error, &self.client.host, &entity.path),
        })
    }
}

/// Returns the entity that accepts the sends of a link, and their destination. `first` is the via entity of the session.
fn way(
    open: &Open,
    sender: &Sender,
    first: Option<Arc<SharedEntity>>,
) -> (Arc<SharedEntity>, Option<EntityPath>) {
    let own = &sender.entity;
    if sender.destination.is_some() {
        return (Arc::clone(own), sender.destination.clone());
    }
    let is_elsewhere = |via: &Arc<SharedEntity>| via.path.top_level() != own.path.top_level();
    let crosses = open.crosses(sender.session);
    match first.filter(|via| crosses && is_elsewhere(via)) {
        Some(via) => (via, Some(own.path.clone())),
        None => (Arc::clone(own), None),
    }
}

pub(crate) fn in_transaction(transaction: Box<[u8]>, outcome: Wire) -> DeliveryState {
    DeliveryState::Transactional {
        transaction: transaction.into(),
        outcome,
    }
}
