//! A topic's messages go to its subscriptions.
//!
//! Publishing is forwarding with several targets: the topic's store carries a batch at a time, so that every
//! subscription sees the topic's order; filters are evaluated while no entity is in hand, and each subscription gets
//! its copies under its own lock. A copy shares the message (architecture §2.3).

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use super::dead_letter::DeadLetterCause;
use super::forward::Transfer;
use crate::filter::RuleError;
use crate::ids::Offset;
use crate::store::entry::Entry;
use crate::{
    Context, Entities, Entity, EntityId, EntityPath, EventKind, IdSource, Message, RuleSet,
    SequenceNumber,
};

/// What a subscription gets of a message.
#[derive(Debug)]
pub(crate) struct MessageCopy {
    /// The message, with the changes of the rule's action.
    pub(crate) message: Message,
    /// The message as it was before a rule's action changed it, which decides about the session here (semantics
    /// §13.2); none when none did.
    pub(crate) sent: Option<Message>,
    /// Its number at the topic.
    pub(crate) enqueued_number: SequenceNumber,
    pub(crate) hops: u8,
    /// The time to live of the topic in milliseconds.
    pub(crate) ceiling: Option<NonZeroU64>,
    /// The rule that matched.
    pub(crate) rule: Arc<str>,
    /// Why it is a dead letter from the beginning.
    pub(crate) failure: Option<Box<RuleError>>,
}

/// Hands a batch of a topic to the subscriptions whose rules match.
pub(crate) fn publish(
    entities: &mut impl Entities,
    (topic, id): (&EntityPath, EntityId),
    rules: &RuleSet,
    batch: Vec<Transfer>,
) {
    let offsets: Vec<_> = batch.iter().map(|transfer| transfer.offset).collect();
    // Filters ask for ids while no entity, and so no source of ids, is in hand.
    let seed = entities.with_entity(topic, |_, cx| cx.ids.next());
    let mut ids = Drawn(seed.unwrap_or_default());
    let mut copies = BTreeMap::<EntityPath, Vec<MessageCopy>>::new();
    for transfer in batch {
        for (subscription, copy) in rules.copies(&transfer, &mut ids) {
            copies.entry(subscription).or_default().push(copy);
        }
    }
    for (subscription, copies) in copies {
        entities.with_entity(&subscription, |entity, cx| entity.accept_copies(cx, copies));
    }
    entities.with_entity(topic, |entity, cx| {
        // Another topic may have its path by now, whose messages have the same offsets.
        if entity.id() == id {
            entity.published(cx, offsets);
        }
    });
}

/// SplitMix64 from a number of the true source: `newid()` needs many, and each only once.
struct Drawn(u64);

impl IdSource for Drawn {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }
}

impl Entity {
    /// Takes in what the topic has for this subscription. That is no use of the subscription (semantics §5).
    fn accept_copies(&mut self, cx: &mut Context<'_>, copies: Vec<MessageCopy>) {
        if self.check_whole().is_err() {
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
            // Without the setting, a message whose filter fails is not this subscription's (semantics §13.1).
            return;
        }
        let session = self
            .active
            .session_of(copy.sent.as_ref().unwrap_or(&copy.message));
        let cause = self.cause_of_arrival(session, copy.message.outgrown());
        let offset = self.active.next_offset();
        let rule = cx.events.text(&copy.rule);
        let number = offset.in_partition(0);
        let matched = EventKind::Matched { rule };
        self.active.record_as(cx, number, matched);
        let entry = Entry {
            is_moved: true,
            hops: copy.hops,
            ceiling: copy.ceiling,
            ..Entry::new(copy.message, cx.now, copy.enqueued_number)
        };
        self.enqueue(cx, entry, session);
        let failure = copy.failure.map(DeadLetterCause::Filter);
        if let Some(cause) = failure.or(cause) {
            self.dead_letter_by_rule(cx, offset, cause);
        }
    }

    /// The subscriptions have what they wanted; what none wanted is gone (semantics §13.1).
    fn published(&mut self, cx: &mut Context<'_>, offsets: Vec<Offset>) {
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
