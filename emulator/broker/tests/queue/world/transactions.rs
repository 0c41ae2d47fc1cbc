//! Transactions in such a world.

use servicebus_broker::{
    ClientId, CommitError, Context, Delivery, Entities, Entity, EntityPath, LockToken, Outcome,
    PropertyChanges, ReceiveMode, SendError, SequenceNumber, SubQueue, TransactError, Transaction,
    commit, follow_up,
};

use super::{World, path};
use crate::bus::{MessageBuilder, message};

impl World {
    pub(crate) fn transaction(&mut self) -> Transaction {
        Transaction::declare(&mut self.ids)
    }

    /// Sends a message with this id in a transaction.
    pub(crate) fn send_in(&mut self, transaction: &mut Transaction, name: &str, id: &str) {
        self.post_in(transaction, name, &[message(id)]).unwrap();
    }

    pub(crate) fn post_in(
        &mut self,
        transaction: &mut Transaction,
        name: &str,
        messages: &[MessageBuilder],
    ) -> Result<(), TransactError> {
        let messages = self.built(messages);
        self.operate(name, |entity, cx| {
            entity.enlist_send(cx, transaction, messages)
        })
    }

    /// Sends a message with this id to `destination` by way of `via`.
    pub(crate) fn transfer_in(
        &mut self,
        transaction: &mut Transaction,
        via: &str,
        destination: &str,
        messages: &[MessageBuilder],
    ) -> Result<(), TransactError> {
        let messages = self.built(messages);
        let destination = path(destination);
        self.operate(via, |entity, cx| {
            entity.enlist_transfer(cx, transaction, &destination, messages)
        })
    }

    /// Sends messages to `destination` by way of `via` without a transaction.
    pub(crate) fn send_via(
        &mut self,
        via: &str,
        destination: &EntityPath,
        messages: &[MessageBuilder],
    ) -> Result<(), SendError> {
        let messages = self.built(messages);
        self.operate(via, |entity, cx| entity.send_via(cx, destination, messages))
    }

    /// Schedules messages at `via` that go on to `destination`.
    pub(crate) fn schedule_via(
        &mut self,
        via: &str,
        destination: &EntityPath,
        messages: &[MessageBuilder],
    ) -> Result<Vec<SequenceNumber>, SendError> {
        let messages = self.built(messages);
        self.operate(via, |entity, cx| {
            entity.schedule_via(cx, destination, messages)
        })
    }

    pub(crate) fn schedule_in(
        &mut self,
        transaction: &mut Transaction,
        name: &str,
        messages: &[MessageBuilder],
    ) -> Result<Vec<SequenceNumber>, TransactError> {
        let messages = self.built(messages);
        self.operate(name, |entity, cx| {
            entity.enlist_schedule(cx, transaction, messages, None)
        })
    }

    /// The next message of an entity, locked by a receiver that has gone.
    pub(crate) fn lock(&mut self, name: &str) -> Delivery {
        let locked = self.take(name, SubQueue::Active, ReceiveMode::PeekLock);
        locked.expect("a message is ready")
    }

    pub(crate) fn complete_in(
        &mut self,
        transaction: &mut Transaction,
        name: &str,
        locked: &Delivery,
    ) -> Result<(), TransactError> {
        self.settle_in(transaction, name, locked, Outcome::Complete)
    }

    pub(crate) fn settle_in(
        &mut self,
        transaction: &mut Transaction,
        name: &str,
        locked: &Delivery,
        outcome: Outcome,
    ) -> Result<(), TransactError> {
        let place = (name, SubQueue::Active);
        self.settle_all_in(transaction, place, &[locked.token], &outcome)
    }

    pub(crate) fn settle_all_in(
        &mut self,
        transaction: &mut Transaction,
        (name, store): (&str, SubQueue),
        tokens: &[LockToken],
        outcome: &Outcome,
    ) -> Result<(), TransactError> {
        self.operate(name, |entity, cx| {
            entity.enlist_settlement(cx, transaction, store, tokens, outcome)
        })
    }

    /// Commits a transaction with the participants that still exist, and then carries out the consequences.
    pub(crate) fn commit(&mut self, transaction: Transaction) -> Result<(), CommitError> {
        let ids: Vec<_> = transaction.participants().map(|(id, _)| id).collect();
        let involved = self.namespace.all().map(|entity| entity.borrow_mut());
        let involved = involved.filter(|entity| ids.contains(&entity.id()));
        let mut involved: Vec<_> = involved.collect();
        let mut entities: Vec<&mut Entity> = involved.iter_mut().map(|e| &mut **e).collect();
        let mut cx = Context {
            now: self.now,
            has_room: true,
            client: ClientId(7),
            ids: &mut self.ids,
            effects: &mut self.effects,
            events: &mut self.events,
        };
        let result = commit(transaction, &mut entities, &mut cx);
        drop(involved);
        let entities: Vec<_> = self.namespace.all().cloned().collect();
        for entity in entities {
            let entity = &mut *entity.borrow_mut();
            entity.check_invariants();
            self.namespace.index(entity);
        }
        self.follow_ups.take(&mut self.effects, |_| ());
        follow_up(self, usize::MAX);
        result
    }

    pub(crate) fn roll_back(&mut self, transaction: Transaction) {
        let participants = transaction.participants();
        let paths: Vec<_> = participants.map(|(id, path)| (id, path.clone())).collect();
        for (id, path) in paths {
            if self.exists(path.as_str()) && self.entity(path.as_str()).id() == id {
                self.with_entity(&path, |entity, cx| entity.roll_back(cx, &transaction));
            }
        }
    }
}

pub(crate) fn abandon() -> Outcome {
    let changes = PropertyChanges::new();
    Outcome::Abandon { changes }
}

pub(crate) fn defer() -> Outcome {
    let changes = PropertyChanges::new();
    Outcome::Defer { changes }
}

pub(crate) fn dead_lettered(reason: &str) -> Outcome {
    Outcome::DeadLetter {
        reason: Some(reason.to_owned()),
        description: None,
        changes: PropertyChanges::new(),
    }
}
