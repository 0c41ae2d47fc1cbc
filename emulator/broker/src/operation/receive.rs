//! A receiver takes what is reserved to it: here the lock begins, or the message goes.

use super::peek::STATE_SCHEDULED;
use super::send::{effective_time_to_live, milliseconds};
use crate::ids::LockNonce;
use crate::message::BrokerProperties;
use crate::store::entry::{Entry, Lock};
use crate::{
    Context, Entity, EventKind, LockToken, Message, MessageStore, ReceiverId, SequenceNumber,
    StorePolicy, SubQueue, Timestamp,
};

/// `x-opt-message-state` of a message that was deferred.
pub(crate) const STATE_DEFERRED: i32 = 1;

/// Most bytes that the broker adds to a message when it hands it out.
const ADDED: usize = 512;

/// How a receiver receives (semantics §2.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveMode {
    /// Under a lock, until it is settled.
    PeekLock,
    /// Removed when handed over.
    ReceiveAndDelete,
}

/// A message on its way to a receiver.
#[derive(Debug, Clone)]
pub struct Delivery {
    /// The lock under which it goes; in receive-and-delete a token that settles nothing, because
    /// every delivery needs a tag (wire.md §4.2).
    pub token: LockToken,
    /// What the broker writes on it.
    pub broker_properties: BrokerProperties,
    /// The message itself.
    pub message: Message,
}

impl Entity {
    /// The message that a receiver would take next, and how it would.
    pub fn next_assigned(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        id: ReceiverId,
    ) -> Option<(ReceiveMode, &Message)> {
        self.begin(cx);
        let store = self.store(kind);
        let (number, mode) = store.receivers.first_reserved(id)?;
        let entry = store.entries.get(number.0)?;
        Some((mode, &entry.message))
    }

    /// Takes up to `max` reserved messages in order and appends them to `taken`. Stops behind the first with
    /// which they need more than `bytes` bytes, headers and annotations included.
    pub fn acquire(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        id: ReceiverId,
        max: usize,
        bytes: usize,
        taken: &mut Vec<Delivery>,
    ) {
        self.begin(cx);
        let store = self.store_mut(kind);
        let mut size = 0;
        for _ in 0..max {
            if size > bytes {
                break;
            }
            let Some((number, mode)) = store.receivers.acquire(id) else {
                break;
            };
            let delivery = store.hand_out(cx, number, mode, id);
            size += delivery
                .as_ref()
                .map_or(0, |delivery| ADDED + delivery.message.size() as usize);
            taken.extend(delivery);
        }
        self.reserve(cx);
    }
}

impl MessageStore {
    /// Gives an entry to a receiver, which it is reserved to, or which asked for it by its number.
    pub(crate) fn hand_out(
        &mut self,
        cx: &mut Context<'_>,
        number: SequenceNumber,
        mode: ReceiveMode,
        receiver: ReceiverId,
    ) -> Option<Delivery> {
        let nonce = LockNonce::generate(cx.ids);
        match mode {
            ReceiveMode::PeekLock => self.take_locked(cx, number, nonce, receiver),
            ReceiveMode::ReceiveAndDelete => self.take_away(cx, number, nonce),
        }
    }

    fn take_locked(
        &mut self,
        cx: &mut Context<'_>,
        number: SequenceNumber,
        nonce: LockNonce,
        receiver: ReceiverId,
    ) -> Option<Delivery> {
        let governing = self.session_lock_over(number);
        let until = governing.map_or(cx.now + self.policy.lock_duration, |lock| lock.until);
        let token = LockToken::new(nonce, number);
        let entry = self.entries.get(number.0)?;
        let deferred = entry.is_deferred();
        let delivery = Delivery {
            token,
            broker_properties: BrokerProperties {
                lock: Some((token.uuid(), until)),
                ..received(&self.policy, entry, number)
            },
            message: entry.message.clone(),
        };
        self.lock(
            number,
            Lock {
                nonce,
                // Under a session the lock ends with that of the session.
                until: governing.map_or(until, |_| Timestamp::NEVER),
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

    fn take_away(
        &mut self,
        cx: &mut Context<'_>,
        number: SequenceNumber,
        nonce: LockNonce,
    ) -> Option<Delivery> {
        // It is no longer among what is reserved, so its credit is used up and does not come back.
        let entry = self.remove(number)?;
        self.record_as(cx, entry.number(number), EventKind::ReceivedAndDeleted);
        Some(Delivery {
            token: LockToken::new(nonce, number),
            broker_properties: BrokerProperties {
                is_removed: true,
                ..received(&self.policy, &entry, number)
            },
            message: entry.message,
        })
    }
}

/// What a received message shows: a time to live whenever one applies (decision D7), and its state only if it was deferred
/// or scheduled (semantics §7, observed 6).
fn received(policy: &StorePolicy, entry: &Entry, number: SequenceNumber) -> BrokerProperties {
    let lifetime = effective_time_to_live(policy, entry);
    BrokerProperties {
        delivery_count: entry.delivery_count,
        time_to_live: match policy.expires {
            true => lifetime.map(milliseconds),
            false => entry.message.time_to_live(),
        },
        sequence_number: entry.number(number),
        enqueued_sequence_number: entry.number_of_origin(),
        enqueued_at: entry.enqueued_at,
        lock: None,
        is_removed: false,
        state: match entry.is_deferred() {
            true => Some(STATE_DEFERRED),
            false => entry.message.was_scheduled().then_some(STATE_SCHEDULED),
        },
    }
}
