//! Publishes a topic's messages to its subscriptions.
//!
//! Publishing is forwarding with several targets: the topic's store transfers one batch at a time, so that every
//! subscription sees the topic's order. Filters are evaluated while no entity is locked, and each subscription gets its
//! copies under its own lock. A copy shares the message (architecture §2.3).

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::dead_letter::DeadLetterCause;
use super::forward::Transfer;
use crate::context::Context;
use crate::entity::Entity;
use crate::event::EventKind;
use crate::filter::{Properties, Rule, RuleError, System};
use crate::ids::{EntityPath, IdSource, Offset, SequenceNumber};
use crate::message::Message;
use crate::rules::RuleSet;
use crate::store::Entry;
use crate::time::Timestamp;

#[derive(Debug)]
pub(crate) struct MessageCopy {
    /// The message, with the changes of the rule's action.
    pub(crate) message: Message,
    /// The message before a rule's action changed it, which determines the session here (semantics §13.2); `None` if no
    /// action changed it.
    pub(crate) sent: Option<Message>,
    /// Its sequence number at the topic.
    pub(crate) enqueued_number: SequenceNumber,
    /// Its partition at the topic, and in the subscription (decision D18).
    pub(crate) partition: u8,
    pub(crate) hops: u8,
    /// The time to live of the topic in milliseconds.
    pub(crate) ceiling: Option<NonZeroU64>,
    pub(crate) rule: Arc<str>,
    /// The error that dead-letters it on arrival.
    pub(crate) failure: Option<Box<RuleError>>,
}

/// Returns the copies of a message for each subscription: one if a rule without action matches, and one for each matching
/// rule with an action.
pub(crate) fn copies_of(
    rules: &RuleSet,
    transfer: &Transfer,
    ahead: i64,
    ids: &mut dyn IdSource,
) -> Vec<(EntityPath, MessageCopy)> {
    let message = &transfer.message;
    let in_client_time = (ahead != 0).then(|| {
        let mut message = message.clone();
        message.shift_to_namespace_time(-ahead);
        message
    });
    let seen = in_client_time.as_ref().unwrap_or(message);
    let system = system(transfer, ahead);
    // An accepted message decodes. If it did not, it would still go to the subscriptions that want every message.
    let properties = seen.filter_view(&system);
    let properties = properties.unwrap_or_else(|_| Properties::of_broker(&system));
    let (matched, mut failed) = rules.matching(&properties, ids);
    // Even if several filters fail, a subscription gets one dead letter of a message, with the first error.
    failed.dedup_by_key(|(subscription, ..)| *subscription);
    let mut copies = Vec::new();
    for (subscription, rule, error) in failed {
        let copy = copy(transfer, message.clone(), &rule.name, Some(error));
        copies.push((subscription.clone(), copy));
    }
    for (subscription, rules) in matched {
        let plain = rules.iter().find(|rule| rule.action.is_none());
        let plain = plain.map(|rule| copy(transfer, message.clone(), &rule.name, None));
        copies.extend(plain.map(|copy| (subscription.clone(), copy)));
        for rule in &rules {
            let edited = edited(rule, seen, &properties, ids);
            if let Some((mut message, failure)) = edited {
                message.shift_to_namespace_time(ahead);
                // Also if only the edited annotations were shifted: stored bytes must be those of the sent message.
                message.share_payload(&transfer.message);
                let copy = MessageCopy {
                    sent: Some(transfer.message.clone()),
                    ..copy(transfer, message, &rule.name, failure)
                };
                copies.push((subscription.clone(), copy));
            }
        }
    }
    copies
}

/// Returns the copy for a rule with an action; unchanged if the action fails.
fn edited(
    rule: &Rule,
    message: &Message,
    properties: &Properties<'_>,
    ids: &mut dyn IdSource,
) -> Option<(Message, Option<Box<RuleError>>)> {
    let mut message = message.clone();
    match rule.edits(properties, ids)? {
        Ok(edits) => {
            let failure = message.apply(&edits, ids).err();
            let failure = failure.map(|error| rule.cannot_be_applied(error));
            Some((message, failure))
        }
        Err(error) => Some((message, Some(error))),
    }
}

fn copy(
    transfer: &Transfer,
    message: Message,
    rule: &str,
    failure: Option<Box<RuleError>>,
) -> MessageCopy {
    MessageCopy {
        message,
        sent: None,
        enqueued_number: transfer.enqueued_number,
        partition: transfer.number.partition(),
        hops: transfer.hops,
        ceiling: transfer.ceiling,
        rule: rule.into(),
        failure,
    }
}

/// Returns the system properties that filters see of a message at its topic, in the time of its clients, which the
/// namespace's is `ahead` of.
fn system(transfer: &Transfer, ahead: i64) -> System<'_> {
    let message = &transfer.message;
    let enqueued_at = Timestamp::from_millis(transfer.enqueued_at.as_millis() - ahead);
    let own = message.time_to_live().into_iter();
    let time_to_live = own.chain(transfer.ceiling.map(NonZeroU64::get)).min();
    let time_to_live = time_to_live.map(Duration::from_millis);
    System {
        sequence_number: Some(transfer.number),
        enqueued_sequence_number: Some(transfer.enqueued_number),
        enqueued_at: Some(enqueued_at),
        expires_at: time_to_live.map(|time_to_live| enqueued_at + time_to_live),
        size: message.size(),
        time_to_live,
        force_persistence: message.is_durable(),
        dead_letter_source: message.dead_letter_source(),
        ..System::default()
    }
}

impl Entity {
    /// Accepts the topic's copies for this subscription. This does not count as a use of the subscription (semantics §5).
    pub(crate) fn accept_copies(&mut self, cx: &mut Context<'_>, copies: Vec<MessageCopy>) {
        if self.check_not_broken().is_err() {
            return;
        }
        self.follow_up(cx, |entity, cx| {
            for copy in copies {
                entity.accept_copy(cx, copy);
            }
        });
    }

    fn accept_copy(&mut self, cx: &mut Context<'_>, copy: MessageCopy) {
        if copy.failure.is_some()
            && !self
                .description
                .dead_lettering_on_filter_evaluation_exceptions
        {
            // Without the setting, the subscription does not get a message whose filter fails (semantics §13.1).
            return;
        }
        let session = self
            .active
            .session_of(copy.sent.as_ref().unwrap_or(&copy.message));
        let cause = self.cause_of_arrival(session, copy.message.exceeds_header_limit());
        let offset = self.active.next_offset();
        let rule = cx.events.text(&copy.rule);
        let number = offset.in_partition(copy.partition);
        let matched = EventKind::Matched { rule };
        self.active.record_as(cx, number, matched);
        let entry = Entry::new(copy.message, cx.now, copy.enqueued_number)
            .in_partition(copy.partition)
            .forwarded(copy.hops, copy.ceiling);
        self.enqueue(cx, entry, session);
        let failure = copy.failure.map(DeadLetterCause::Filter);
        if let Some(cause) = failure.or(cause) {
            self.dead_letter_by_rule(cx, offset, cause);
        }
    }

    /// Removes published messages from the topic, including those that no subscription wanted (semantics §13.1).
    pub(crate) fn published(&mut self, cx: &mut Context<'_>, offsets: Vec<Offset>) {
        self.follow_up(cx, |entity, cx| {
            let store = &mut entity.active;
            for offset in offsets {
                if store.forwards().is_in_transfer(offset) {
                    store.record(cx, offset, EventKind::Published);
                    store.remove(offset);
                }
            }
        });
    }
}
