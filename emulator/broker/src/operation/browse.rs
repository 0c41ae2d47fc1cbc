//! Somebody looks without taking.

use super::receive::STATE_DEFERRED;
use super::send::{effective_time_to_live, milliseconds};
use crate::message::Stamp;
use crate::store::entry::Entry;
use crate::{Context, Mailbox, Message, SequenceNumber, StoreKind};

/// `x-opt-message-state` of a message that is neither deferred nor scheduled (semantics §10).
const STATE_ACTIVE: i32 = 0;
/// Of one that is not active yet.
const STATE_SCHEDULED: i32 = 2;

/// A message as it is seen by peeking.
#[derive(Debug, Clone)]
pub struct Browsed {
    /// What the broker writes on it.
    pub stamp: Stamp,
    /// The message itself.
    pub message: Message,
}

impl Mailbox {
    /// Up to `max` messages from the first whose number is at least `from`, in order, whoever has them.
    /// Under [`crate::Expiry::OnReceive`] expired ones that have not left are among them.
    pub fn browse(
        &mut self,
        cx: &mut Context<'_>,
        kind: StoreKind,
        from: SequenceNumber,
        max: usize,
    ) -> Vec<Browsed> {
        self.begin(cx);
        let seen = self.look(kind, from).take(max);
        seen.map(|(stamp, message)| Browsed {
            stamp,
            message: message.clone(),
        })
        .collect()
    }

    /// Every message from `from` on as browsing shows it. Nobody notices: time does not pass, and the mailbox is
    /// not used by it.
    pub fn look(
        &self,
        kind: StoreKind,
        from: SequenceNumber,
    ) -> impl Iterator<Item = (Stamp, &Message)> {
        let store = self.store(kind);
        let entries = store.entries.range_from(from.place().0);
        entries.map(|(number, entry)| {
            let message = &entry.message;
            // A peeked message shows a time to live only if it brought one (decision D7).
            let own = message.time_to_live();
            let lifetime = own.and_then(|_| effective_time_to_live(&store.policy, message));
            let stamp = Stamp {
                delivery_count: entry.delivery_count,
                time_to_live: lifetime.map_or(own, |lifetime| Some(milliseconds(lifetime))),
                expires_at: lifetime.map(|_| entry.expires_at),
                sequence_number: entry.number(SequenceNumber(number)),
                enqueued_sequence_number: entry.enqueued_number,
                enqueued_at: entry.enqueued_at,
                lock: None,
                state: Some(state(entry)),
            };
            (stamp, message)
        })
    }
}

fn state(entry: &Entry) -> i32 {
    match entry.activates_at() {
        Some(_) => STATE_SCHEDULED,
        None if entry.is_deferred() => STATE_DEFERRED,
        None => STATE_ACTIVE,
    }
}
