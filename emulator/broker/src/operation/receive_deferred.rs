//! Somebody asks for deferred messages by their numbers.

use thiserror::Error;

use super::receive::{Delivery, ReceiveMode, received};
use crate::ids::LockNonce;
use crate::message::Stamp;
use crate::store::entry::{Lock, State};
use crate::{
    ConsumerId, Context, FactKind, LockToken, Mailbox, MessageStore, SequenceNumber, StoreKind,
};

/// `x-opt-message-state` of a message that was deferred (semantics §7).
pub(crate) const STATE_DEFERRED: i32 = 1;

/// Why deferred messages were not handed out; none of them was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum ReceiveDeferredError {
    /// One of them is unknown, not deferred, locked, or past its time (semantics §20.2).
    #[error(
        "Failed to lock one or more specified messages. Either the message is already locked or does not exist."
    )]
    NotFound,
}

impl Mailbox {
    /// Hands out deferred messages, all or none, in the order asked for. `id` is who holds the locks. What has
    /// expired is not there any more, and leaves now that somebody has asked for it (decision D9).
    pub fn receive_deferred(
        &mut self,
        cx: &mut Context<'_>,
        kind: StoreKind,
        numbers: &[SequenceNumber],
        mode: ReceiveMode,
        id: ConsumerId,
    ) -> Result<Vec<Delivery>, ReceiveDeferredError> {
        self.begin(cx);
        for number in numbers.iter().map(|number| number.place()) {
            let entry = self.store(kind).entries.get(number.0);
            if entry.is_some_and(|e| e.state == State::Deferred && e.is_expired(cx.now)) {
                self.expire(cx, number);
            }
        }
        self.assign(cx);
        let store = self.store_mut(kind);
        if !store.are_deferred(numbers) {
            return Err(ReceiveDeferredError::NotFound);
        }
        let each = numbers.iter().filter_map(|number| {
            let nonce = LockNonce::generate(cx.ids);
            store.take_deferred(cx, number.place(), nonce, mode, id)
        });
        let deliveries = each.collect();
        self.assign(cx);
        Ok(deliveries)
    }
}

impl MessageStore {
    /// Whether each number is that of a message at rest among the deferred, and none is named twice.
    fn are_deferred(&self, numbers: &[SequenceNumber]) -> bool {
        let distinct: std::collections::BTreeSet<_> = numbers.iter().collect();
        let mut all = numbers.iter();
        distinct.len() == numbers.len()
            && all.all(|&number| {
                let entry = self.entries.get(number.place().0);
                entry.is_some_and(|entry| {
                    entry.state == State::Deferred && entry.number(number.place()) == number
                })
            })
    }

    fn take_deferred(
        &mut self,
        cx: &mut Context<'_>,
        number: SequenceNumber,
        nonce: LockNonce,
        mode: ReceiveMode,
        consumer: ConsumerId,
    ) -> Option<Delivery> {
        let token = LockToken::new(nonce, number);
        if mode == ReceiveMode::ReceiveAndDelete {
            let entry = self.remove(number)?;
            self.note(cx, number, FactKind::ReceivedAndDeleted);
            let stamp = Stamp {
                state: Some(STATE_DEFERRED),
                ..received(&self.policy, &entry, number)
            };
            let message = entry.message;
            return Some(Delivery {
                token,
                stamp,
                message,
            });
        }
        let until = cx.now + self.policy.lock_duration;
        let entry = self.entries.get(number.0)?;
        let delivery = Delivery {
            token,
            stamp: Stamp {
                lock: Some((token.uuid(), until)),
                state: Some(STATE_DEFERRED),
                ..received(&self.policy, entry, number)
            },
            message: entry.message.clone(),
        };
        self.lock(
            number,
            Lock {
                nonce,
                until,
                consumer,
                deferred: true,
            },
        );
        let kind = FactKind::Delivered {
            delivery: delivery.stamp.delivery_count + 1,
            locked_until: until,
        };
        self.note(cx, number, kind);
        Some(delivery)
    }
}
