//! Attaches receivers, grants credit, hands out reserved messages, and detaches. A message that is handed out is locked or
//! removed. Also hands out deferred messages by sequence number.

use std::collections::BTreeSet;

use thiserror::Error;

use super::peek::{STATE_DEFERRED, STATE_SCHEDULED};
use super::send::milliseconds;
use crate::context::Context;
use crate::entity::Entity;
use crate::event::EventKind;
use crate::filter::SqlFilter;
use crate::ids::{LockNonce, LockToken, Offset, ReceiverId, SequenceNumber, SessionName, SubQueue};
use crate::message::{BrokerProperties, Message};
use crate::policy::StorePolicy;
use crate::store::receivers::ReceiveMode;
use crate::store::{Entry, Lock, MessageStore};

/// Maximum number of bytes that the broker adds to a message when it hands it out.
const ADDED: usize = 512;

/// A message for a receiver.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The lock's token; in receive-and-delete a token that settles nothing, because every delivery needs a tag (wire.md
    /// §4.2).
    pub token: LockToken,
    /// The properties that the broker writes.
    pub broker_properties: BrokerProperties,
    /// The message itself.
    pub message: Message,
}

/// A message that is about to be delivered, or was.
#[derive(Debug, Clone, Copy)]
pub struct DeliveryView<'a> {
    /// Its sequence number.
    pub number: SequenceNumber,
    /// The number of the delivery, counted from 1.
    pub delivery: u32,
    /// The message itself.
    pub message: &'a Message,
}

impl Entity {
    /// Registers a receiver without credit.
    pub fn attach_receiver(&mut self, kind: SubQueue, id: ReceiverId, mode: ReceiveMode) {
        self.store_mut(kind).attach(id, mode, None);
    }

    /// Registers a receiver without credit that skips messages that its selector does not match. Not for entities with
    /// sessions.
    pub fn attach_selecting_receiver(
        &mut self,
        kind: SubQueue,
        id: ReceiverId,
        mode: ReceiveMode,
        selector: SqlFilter,
    ) {
        self.store_mut(kind).attach(id, mode, Some(selector));
    }

    /// Sets how many messages a receiver can take, including those that are reserved for it.
    pub fn set_credit(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        id: ReceiverId,
        credit: u32,
    ) {
        self.client_operation(cx, |entity, cx| {
            let store = entity.store_mut(kind);
            if let Some(sessions) = store.sessions_mut() {
                sessions.credit_changed(id);
                if !sessions.knows(id) {
                    // Its session is lost: no more messages come.
                    return;
                }
            }
            store.set_credit(id, credit);
            entity.run_due(cx);
        });
    }

    /// Returns how many messages are reserved for a receiver.
    pub fn reserved(&self, kind: SubQueue, id: ReceiverId) -> usize {
        self.store(kind).receivers().reserved_to(id)
    }

    /// Returns whether a receiver with a selector has not looked at every ready message yet: it is woken to continue.
    pub fn is_searching(&self, kind: SubQueue, id: ReceiverId) -> bool {
        self.store(kind).receivers().is_searching(id)
    }

    /// Returns whether a receiver can get nothing more for now: nothing is reserved for it, and it has looked at every ready
    /// message.
    pub fn is_drained(&self, kind: SubQueue, id: ReceiverId) -> bool {
        let receivers = self.store(kind).receivers();
        receivers.reserved_to(id) == 0 && !receivers.is_searching(id)
    }

    /// Removes a receiver. Its reserved messages are ready again as if they had not been reserved; its locks follow decision
    /// D2; its session is free at once.
    pub fn detach_receiver(&mut self, cx: &mut Context<'_>, kind: SubQueue, id: ReceiverId) {
        self.client_operation(cx, |entity, cx| {
            for offset in entity.store_mut(kind).detach(id).offsets() {
                entity.store(kind).record(cx, offset, EventKind::Released);
                entity.requeue_or_dead_letter(cx, kind, offset);
            }
            if kind == SubQueue::Active {
                entity.leave_session(cx, id);
            }
        });
    }

    /// Removes a receiver that is not a link, such as an HTTP request: its reserved messages are ready again, its locks stay
    /// until they are settled or end.
    pub fn detach_keeping_locks(&mut self, cx: &mut Context<'_>, kind: SubQueue, id: ReceiverId) {
        self.client_operation(cx, |entity, _| drop(entity.store_mut(kind).detach(id)));
    }

    /// Returns the message that a receiver would take next, and its receive mode.
    pub fn next_reserved(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        id: ReceiverId,
    ) -> Option<(ReceiveMode, DeliveryView<'_>)> {
        self.client_operation(cx, |entity, _| {
            let store = entity.store_mut(kind);
            if store.receivers().reserved_to(id) == 0 {
                // It selects, and was told to look at more: it has come.
                store.listen(id);
            }
        });
        let store = self.store(kind);
        let (offset, mode) = store.receivers().first_reserved(id)?;
        Some((mode, store.view(offset)?))
    }

    /// Returns whether the messages reserved for this receiver could go to another one: it waits with credit, and no session
    /// determines the receiver.
    pub fn has_other_receiver(&self, kind: SubQueue, id: ReceiverId) -> bool {
        let store = self.store(kind);
        store.sessions().is_none() && store.receivers().next_except(id).is_some()
    }

    /// Moves the first message reserved for a receiver to the next other receiver with credit; returns whether there is one.
    /// The receiver keeps its credit.
    pub fn move_to_other_receiver(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        id: ReceiverId,
    ) -> bool {
        self.client_operation(cx, |entity, cx| {
            // It was woken for what it does not take now.
            entity.store_mut(kind).listen(id);
            let is_possible = entity.has_other_receiver(kind, id);
            is_possible && entity.store_mut(kind).reassign(cx, id)
        })
    }

    /// Takes up to `max` reserved messages in order and appends them to `taken`. Stops after the first that brings the total
    /// above `bytes` bytes, headers and annotations included.
    pub fn acquire(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        id: ReceiverId,
        max: usize,
        bytes: usize,
        taken: &mut Vec<Delivery>,
    ) {
        self.client_operation(cx, |entity, cx| {
            let store = entity.store_mut(kind);
            let mut size = 0;
            for _ in 0..max {
                if size > bytes {
                    break;
                }
                let Some((offset, mode)) = store.acquire(id) else {
                    break;
                };
                let delivery = store.deliver(cx, offset, mode, id);
                size += delivery
                    .as_ref()
                    .map_or(0, |delivery| ADDED + delivery.message.size() as usize);
                taken.extend(delivery);
            }
        });
    }
}

impl MessageStore {
    pub(crate) fn view(&self, offset: Offset) -> Option<DeliveryView<'_>> {
        let entry = self.get(offset)?;
        Some(DeliveryView {
            number: entry.number(offset),
            delivery: entry.delivery_count() + 1,
            message: entry.message(),
        })
    }

    /// Hands an entry to a receiver for which it is reserved, or which asked for its sequence number.
    pub(crate) fn deliver(
        &mut self,
        cx: &mut Context<'_>,
        offset: Offset,
        mode: ReceiveMode,
        receiver: ReceiverId,
    ) -> Option<Delivery> {
        let nonce = LockNonce::generate(cx.ids);
        match mode {
            ReceiveMode::PeekLock => self.take_locked(cx, offset, nonce, receiver),
            ReceiveMode::ReceiveAndDelete => self.receive_and_delete(cx, offset, nonce),
        }
    }

    fn take_locked(
        &mut self,
        cx: &mut Context<'_>,
        offset: Offset,
        nonce: LockNonce,
        receiver: ReceiverId,
    ) -> Option<Delivery> {
        let governing = self.session_lock_of(offset);
        let until = governing.map_or_else(|| self.policy().lock_until(cx.now), |lock| lock.until);
        let token = LockToken::new(nonce, offset);
        let entry = self.get(offset)?;
        let deferred = entry.is_deferred();
        let delivery = Delivery {
            token,
            broker_properties: BrokerProperties {
                lock: Some((token.uuid(), until)),
                ..received(self.policy(), entry, offset)
            },
            message: entry.message().clone(),
        };
        self.lock(
            offset,
            Lock {
                nonce,
                // The lock of a message in a session ends with that of the session.
                until: governing.is_none().then_some(until).into(),
                receiver: governing.map_or(receiver, |lock| lock.receiver),
                deferred,
            },
        );
        let kind = EventKind::Delivered {
            delivery: delivery.broker_properties.delivery_count + 1,
            locked_until: until,
        };
        self.record_as(cx, delivery.broker_properties.sequence_number, kind);
        Some(delivery)
    }

    fn receive_and_delete(
        &mut self,
        cx: &mut Context<'_>,
        offset: Offset,
        nonce: LockNonce,
    ) -> Option<Delivery> {
        // The entry is no longer among the reserved ones, so its credit does not come back.
        let entry = self.remove(offset)?;
        self.record_as(cx, entry.number(offset), EventKind::ReceivedAndDeleted);
        Some(Delivery {
            token: LockToken::new(nonce, offset),
            broker_properties: BrokerProperties {
                is_removed: true,
                ..received(self.policy(), &entry, offset)
            },
            message: entry.into_message(),
        })
    }
}

/// Returns the broker properties of a received message: a time to live whenever one applies (decision D7), and its state
/// only if it was deferred or scheduled (semantics §7, observed 6).
fn received(policy: &StorePolicy, entry: &Entry, offset: Offset) -> BrokerProperties {
    BrokerProperties {
        delivery_count: entry.delivery_count(),
        time_to_live: match policy.is_active() {
            true => entry.lifetime().map(milliseconds),
            false => entry.message().time_to_live(),
        },
        sequence_number: entry.number(offset),
        enqueued_sequence_number: entry.number_of_origin(),
        enqueued_at: entry.enqueued_at(),
        lock: None,
        is_removed: false,
        state: match entry.is_deferred() {
            true => Some(STATE_DEFERRED),
            false => entry.message().was_scheduled().then_some(STATE_SCHEDULED),
        },
    }
}

/// Why deferred messages were not handed out; none of them was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReceiveDeferredError {
    /// One of them is unknown, not deferred, locked or expired (semantics §20.2).
    #[error(
        "Failed to lock one or more specified messages. Either the message is already locked or does not exist."
    )]
    NotFound,
    /// They are in several partitions (azure-service-bus 287).
    #[error(
        "ReceiveBatch of sequence numbers from different partitions is not supported for an entity with \
         partitioning enabled."
    )]
    DifferentPartitions,
    /// No receiver holds the session, or the client names none (semantics §7).
    #[error("the lock of the session is not held")]
    SessionLockLost,
    /// Nothing can be received from the entity now (semantics §14).
    #[error("the entity is disabled")]
    Disabled,
}

impl Entity {
    /// Hands out deferred messages, all or none, in the requested order; only those of `session` if it is given. `id` is the
    /// receiver that gets the locks; at an entity with sessions they go to the one that holds the session, which may be that
    /// of another client: the retired SDK for Go requests them on a connection of its own. Expired messages count as missing, and are removed now that a client has asked for them (decision D9).
    pub fn receive_deferred(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        numbers: &[SequenceNumber],
        mode: ReceiveMode,
        id: ReceiverId,
        session: Option<&SessionName>,
    ) -> Result<Vec<Delivery>, ReceiveDeferredError> {
        self.client_operation(cx, |entity, cx| {
            if !entity.description.status.can_receive() {
                return Err(ReceiveDeferredError::Disabled);
            }
            if let Some(sessions) = entity.store(kind).sessions() {
                let found = session.and_then(|name| sessions.find(name));
                let held = found.and_then(|(_, session)| session.lock());
                let held = held.filter(|lock| cx.now < lock.until);
                held.ok_or(ReceiveDeferredError::SessionLockLost)?;
            }
            for &number in numbers {
                let entry = entity.store(kind).deferred_entry(number, session);
                if entry.is_some_and(|entry| entry.is_expired(cx.now)) {
                    entity.expire(cx, number.offset());
                }
            }
            entity.reserve(cx);
            let store = entity.store_mut(kind);
            if !store.are_deferred(numbers, session) {
                return Err(ReceiveDeferredError::NotFound);
            }
            let mut partitions = numbers.iter().map(|number| number.partition());
            let first = partitions.next();
            if partitions.any(|other| Some(other) != first) {
                return Err(ReceiveDeferredError::DifferentPartitions);
            }
            let each = numbers
                .iter()
                .filter_map(|number| store.deliver(cx, number.offset(), mode, id));
            Ok(each.collect())
        })
    }
}

impl MessageStore {
    /// Returns a deferred message that is not locked.
    fn deferred_entry(
        &self,
        number: SequenceNumber,
        session: Option<&SessionName>,
    ) -> Option<&Entry> {
        let offset = number.offset();
        let entry = self.get(offset)?;
        let found = entry.is_deferred_unlocked()
            && entry.number(offset) == number
            && session.is_none_or(|name| self.belongs(offset, entry, name));
        found.then_some(entry)
    }

    /// Returns whether each number is that of a deferred message that is not locked, and none occurs twice.
    fn are_deferred(&self, numbers: &[SequenceNumber], session: Option<&SessionName>) -> bool {
        let distinct: BTreeSet<_> = numbers.iter().collect();
        let mut all = numbers.iter();
        distinct.len() == numbers.len()
            && all.all(|&number| self.deferred_entry(number, session).is_some())
    }
}
