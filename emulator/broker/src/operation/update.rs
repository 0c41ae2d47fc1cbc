//! The settings of an entity change while it is used.

use super::dead_letter::DeadLetterCause;
use super::send::effective_time_to_live;
use crate::entity::policy;
use crate::entity::role::Role;
use crate::store::entry::{Entry, State};
use crate::{
    Context, Entity, QueueDescription, SequenceNumber, SubQueue, SubscriptionDescription, Timestamp,
};

impl Entity {
    /// Goes on under another description. All locks are lost (decision D17), unless nothing but the status
    /// changes: then they run on (decision D27). A changed time to live holds at once for messages that brought
    /// none (decision D7).
    pub fn update(&mut self, cx: &mut Context<'_>, description: QueueDescription) {
        self.begin(cx);
        let before = std::mem::replace(&mut self.description, description);
        for kind in SubQueue::ALL {
            let policy = policy(&self.role, kind, &self.description, &self.settings);
            let store = self.store_mut(kind);
            store.policy = policy;
            for number in store.receivers.unreserve_all() {
                store.put_back(number);
            }
        }
        let only_status = QueueDescription {
            status: self.description.status,
            ..before.clone()
        };
        if self.description != only_status {
            self.end_locks(cx);
        }
        if before.default_message_time_to_live != self.description.default_message_time_to_live {
            self.reschedule_expiries();
        }
        for store in [&mut self.active, &mut self.dead_letters] {
            store.resume_forwards();
        }
        if self.description.max_delivery_count < before.max_delivery_count {
            self.bury_delivered_too_often(cx);
        }
        if let Some(history) = &mut self.history {
            let window = self.description.duplicate_detection_history_time_window;
            history.set_window(cx.now, window);
        }
        self.run_due(cx);
        self.reserve(cx);
    }

    /// The same of a subscription.
    pub fn update_subscription(
        &mut self,
        cx: &mut Context<'_>,
        description: &SubscriptionDescription,
    ) {
        if let Role::Subscription(own) = &mut self.role {
            own.dead_letters_filter_errors =
                description.dead_lettering_on_filter_evaluation_exceptions;
        }
        self.update(cx, description.queue_description());
    }

    /// Ends every lock, of messages and of sessions, as if its time had run out.
    pub fn lose_locks(&mut self, cx: &mut Context<'_>) {
        self.handle_timeout(cx);
        self.end_locks(cx);
        self.reserve(cx);
    }

    fn end_locks(&mut self, cx: &mut Context<'_>) {
        let cx = &mut cx.at(cx.now);
        self.session_locks_expired(cx);
        for kind in SubQueue::ALL {
            let locks: Vec<SequenceNumber> = self.store(kind).locks.numbers().collect();
            for number in locks {
                self.expire_lock(cx, kind, number);
            }
        }
    }

    /// Another delivery would be more than is allowed now (semantics §3.1).
    fn bury_delivered_too_often(&mut self, cx: &mut Context<'_>) {
        let limit = self.description.max_delivery_count;
        let entries = self.active.entries.iter();
        let is_past = |entry: &Entry| {
            let stays = matches!(entry.state, State::Ready | State::Deferred);
            stays && entry.delivery_count >= limit
        };
        let past: Vec<_> = entries
            .filter(|(_, entry)| is_past(entry))
            .map(|(number, _)| SequenceNumber(number))
            .collect();
        for number in past {
            let cause = DeadLetterCause::MaxDeliveryCount(limit);
            self.dead_letter_by_rule(cx, number, cause);
        }
    }

    /// Messages that brought no time to live live by the entity's.
    fn reschedule_expiries(&mut self) {
        let store = &self.active;
        let mut changed = Vec::new();
        for (number, entry) in store.entries.iter() {
            if entry.message.time_to_live().is_none() {
                let lifetime = effective_time_to_live(&store.policy, entry);
                let since = entry.activates_at().unwrap_or(entry.enqueued_at);
                let at = lifetime.map_or(Timestamp::NEVER, |lifetime| since + lifetime);
                changed.push((SequenceNumber(number), at));
            }
        }
        for (number, at) in changed {
            self.active.reschedule_expiry(number, at);
        }
    }
}
