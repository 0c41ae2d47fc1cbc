//! A message arrives.

use std::time::Duration;

use crate::store::entry::{Entry, State};
use crate::{Context, FactKind, Mailbox, Message, SequenceNumber, StorePolicy, Timestamp};

impl Mailbox {
    /// Accepts messages in this order, all of them, and returns the number of the first.
    ///
    /// What can be wrong with a message is found when it is parsed; a parsed message is accepted.
    pub fn send(
        &mut self,
        cx: &mut Context<'_>,
        messages: impl IntoIterator<Item = Message>,
    ) -> SequenceNumber {
        self.handle_timeout(cx);
        let first = self.active.next_number();
        for message in messages {
            self.enqueue(cx, message);
        }
        self.assign(cx);
        first
    }

    fn enqueue(&mut self, cx: &mut Context<'_>, message: Message) {
        let number = self.active.next_number();
        let lifetime = effective_time_to_live(&self.active.policy, &message);
        let expires_at = lifetime.map_or(Timestamp::NEVER, |lifetime| cx.now + lifetime);
        let kind = FactKind::Enqueued {
            message_id: cx.facts.text(&message.id()),
            bytes: u32::try_from(message.size()).unwrap_or(u32::MAX),
            expires_at,
        };
        self.active.note(cx, number, kind);
        self.active.append(Entry {
            message,
            enqueued_at: cx.now,
            enqueued_number: number,
            expires_at,
            delivery_count: 0,
            state: State::Ready,
        });
    }
}

/// The message's own time to live under the entity's ceiling, or the entity's default (semantics §4).
pub(crate) fn effective_time_to_live(policy: &StorePolicy, message: &Message) -> Option<Duration> {
    if !policy.expires {
        return None;
    }
    let own = message.time_to_live().map(Duration::from_millis);
    match (own, policy.default_time_to_live) {
        (Some(own), Some(ceiling)) => Some(own.min(ceiling)),
        (own, default) => own.or(default),
    }
}

/// As headers show it.
pub(crate) fn milliseconds(lifetime: Duration) -> u64 {
    u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX)
}
