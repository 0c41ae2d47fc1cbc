//! Messages go on to another entity (semantics §11, decisions D3, D22).
//!
//! A store that forwards says so ([`crate::Effect::Forward`]); who carries out effects calls [`crate::forward`], which carries
//! batches from store to store with at most one entity in hand at a time, so that no order of locks matters. A
//! message is removed from its source only after its target has answered.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Duration;

use super::dead_letter::{DeadLetterCause, MAX_HOPS, TransferFailure};
use super::send::{SendError, milliseconds};
use crate::context::Context;
use crate::entity::Entity;
use crate::event::EventKind;
use crate::ids::{EntityId, EntityPath, Offset, SequenceNumber, SubQueue};
use crate::message::Message;
use crate::rules::RuleSet;
use crate::settings::ForwardToDisabled;
use crate::store::Entry;
use crate::store::sessions::Slot;
use crate::time::Timestamp;

/// Messages carried at a time.
const BATCH: usize = 64;
/// Copies that one batch of a topic becomes at most, where it has more than one message.
const COPIES: usize = 2048;
/// How long dead letters wait whose target entity refused the first of them, before they are tried again: half a minute of
/// the namespace's clock, by our choice (decision D22).
pub const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Messages that leave a store together.
#[derive(Debug)]
pub(crate) struct Batch {
    /// Which entity has this path: another one may have it by the time the target has answered.
    pub(crate) entity: EntityId,
    pub(crate) target: Target,
    /// How many messages are handed over at most, with those that have no hop left.
    pub(crate) cost: usize,
    pub(crate) messages: Vec<Transfer>,
}

/// Where messages of a store go.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// To another entity.
    Entity(EntityPath),
    /// From a topic to those of its subscriptions that want them.
    Subscriptions(Arc<RuleSet>),
}

/// One message on its way.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) offset: Offset,
    /// Its number where it leaves.
    pub(crate) number: SequenceNumber,
    pub(crate) message: Message,
    pub(crate) enqueued_number: SequenceNumber,
    pub(crate) enqueued_at: Timestamp,
    pub(crate) hops: u8,
    /// The time to live of the topic that it comes from, in milliseconds: a copy lives no longer.
    pub(crate) ceiling: Option<NonZeroU64>,
}

impl Entity {
    /// Puts back on its way what was refused.
    pub(crate) fn retry_forwards(&mut self, kind: SubQueue) {
        let store = self.store_mut(kind);
        store.unreserve_all();
        store.resume_forwards();
    }

    fn target(&self, kind: SubQueue) -> Option<&EntityPath> {
        match kind {
            SubQueue::Active => self.description.forward_to.as_ref(),
            SubQueue::DeadLetter => self.description.forward_dead_lettered_messages_to.as_ref(),
            SubQueue::TransferDeadLetter => None,
        }
    }

    /// The next messages to carry; none when there are none. What has no hop left fails here.
    pub(crate) fn begin_transfers(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
    ) -> Option<Batch> {
        self.follow_up(cx, |entity, cx| {
            let subscriptions = entity.rules();
            let copies = subscriptions.map_or(1, |rules| rules.subscriptions().count());
            let copies = copies.max(1);
            let most = (COPIES / copies).clamp(1, BATCH);
            let offsets = entity.store_mut(kind).begin_transfers(most);
            let target = offsets.first().and_then(|&n| entity.target_of(kind, n))?;
            let mut messages = Vec::with_capacity(offsets.len());
            let mut cost = 0;
            for offset in offsets {
                let transfer = entity.transfer(kind, offset);
                let own = transfer.as_ref().map(|own| own.message.evaluation_cost());
                cost += own.unwrap_or(1) * copies;
                match transfer {
                    Some(transfer) => messages.push(transfer),
                    None => entity.forward_failed(cx, kind, offset, TransferFailure::Hops),
                }
            }
            Some(Batch {
                entity: entity.id(),
                target,
                cost,
                messages,
            })
        })
    }

    /// Where a message that is carried goes.
    fn target_of(&self, kind: SubQueue, offset: Offset) -> Option<Target> {
        if let Some(destination) = self.store(kind).forwards().destination(offset) {
            return Some(Target::Entity(destination.clone()));
        }
        match self.rules() {
            Some(rules) if kind == SubQueue::Active => {
                Some(Target::Subscriptions(Arc::clone(rules)))
            }
            _ => self.target(kind).cloned().map(Target::Entity),
        }
    }

    fn transfer(&self, kind: SubQueue, offset: Offset) -> Option<Transfer> {
        let store = self.store(kind);
        let entry = store.get(offset)?;
        let mut message = entry.message().clone();
        let mut ceiling = None;
        if kind == SubQueue::DeadLetter {
            message.set_dead_letter_source(self.path.as_str());
        }
        let is_addressed = store.forwards().destination(offset).is_some();
        // A topic is no forwarder, its subscriptions are (decision D3); nor is who sends by way of another entity.
        let counts = !self.role.is_topic() && !is_addressed;
        if self.role.is_topic() && !is_addressed {
            let default = self.active.policy().default_time_to_live();
            ceiling = default.map(milliseconds).and_then(NonZeroU64::new);
        }
        (!counts || entry.hops() < MAX_HOPS).then(|| Transfer {
            offset,
            number: entry.number(offset),
            message,
            enqueued_number: entry.enqueued_number(),
            enqueued_at: entry.enqueued_at(),
            hops: entry.hops() + u8::from(counts),
            ceiling,
        })
    }

    /// Takes messages in from another entity, in order. Answers for each; the first dead letter that has to wait
    /// is the last answer, because what comes behind may not overtake (decision D22).
    pub(crate) fn accept_transfers(
        &mut self,
        cx: &mut Context<'_>,
        source: SubQueue,
        messages: Vec<Transfer>,
    ) -> Vec<Result<(), TransferFailure>> {
        self.verb(cx, |entity, cx| {
            let mut answers = Vec::with_capacity(messages.len());
            for transfer in messages {
                let answer = entity.accept_transfer(&mut cx.at(cx.now), transfer);
                let answer = answer.map_err(TransferFailure::from);
                let waits = source == SubQueue::DeadLetter
                    && answer.as_ref().is_err_and(TransferFailure::may_pass);
                answers.push(answer);
                if waits {
                    break;
                }
            }
            answers
        })
    }

    fn accept_transfer(
        &mut self,
        cx: &mut Context<'_>,
        transfer: Transfer,
    ) -> Result<(), SendError> {
        self.check_arrival(transfer.message.size())?;
        let key = self.partition_key(&transfer.message)?;
        let now = cx.now;
        // A rule's action may have set it; here it counts (semantics §13.2).
        let activates_at = transfer.message.scheduled_at().filter(|&at| at > now);
        if self.is_duplicate(cx, &transfer.message, activates_at.unwrap_or(now)) {
            return Ok(());
        }
        let session = self.active.session_of(&transfer.message);
        let cause = self.cause_of_arrival(session, transfer.message.outgrown());
        let offset = self.active.next_offset();
        let entry = Entry::new(transfer.message, cx.now, transfer.enqueued_number)
            .in_partition(self.partition(key.as_deref()))
            .forwarded(transfer.hops, None);
        match activates_at {
            Some(at) => self.schedule(cx, entry, at, session),
            None => self.enqueue(cx, entry, session),
        }
        if let Some(cause) = cause {
            self.dead_letter_by_rule(cx, offset, cause);
        }
        Ok(())
    }

    /// Whether so many bytes may come from another entity.
    fn check_arrival(&self, bytes: u64) -> Result<(), SendError> {
        match self.check_quota(bytes) {
            Err(SendError::Disabled(_))
                if self.settings.forward_to_disabled == ForwardToDisabled::Deliver =>
            {
                self.check_size(bytes)
            }
            checked => checked,
        }
    }

    /// Why a message that was not sent here, but comes from another entity, is a dead letter from the beginning.
    pub(crate) fn cause_of_arrival(
        &self,
        session: Option<Slot>,
        outgrown: bool,
    ) -> Option<DeadLetterCause> {
        let lacks_session = self.active.policy().has_sessions() && session.is_none();
        let no_session = lacks_session.then_some(DeadLetterCause::NoSession);
        no_session.or_else(|| outgrown.then_some(DeadLetterCause::HeaderSize))
    }

    /// What became of messages that were carried. Those without an answer stay, and so do those that were refused by
    /// what is not the target any more.
    pub(crate) fn complete_transfers(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        target: &EntityPath,
        offsets: Vec<Offset>,
        answers: Vec<Result<(), TransferFailure>>,
    ) {
        self.follow_up(cx, |entity, cx| {
            let mut answers = answers.into_iter();
            for offset in offsets {
                let answer = answers.next();
                if !entity.store(kind).forwards().is_in_transfer(offset) {
                    // Removed meanwhile, or brought back with the one before it.
                    continue;
                }
                match answer {
                    Some(Ok(())) => {
                        let to = cx.events.text(target.as_str());
                        let store = entity.store_mut(kind);
                        store.record(cx, offset, EventKind::Forwarded { to });
                        store.remove(offset);
                    }
                    Some(Err(failure)) if entity.forwards_to(kind, offset, target) => {
                        entity.forward_failed(cx, kind, offset, failure);
                    }
                    Some(Err(_)) | None => entity.store_mut(kind).abort_transfer(offset),
                }
            }
        });
    }

    fn forwards_to(&self, kind: SubQueue, offset: Offset, target: &EntityPath) -> bool {
        let destination = self.store(kind).forwards().destination(offset);
        destination.or_else(|| self.target(kind)) == Some(target)
    }

    /// A message that cannot be forwarded is dead-lettered; a dead letter stays what it is, and waits if that helps
    /// (decision D22).
    fn forward_failed(
        &mut self,
        cx: &mut Context<'_>,
        kind: SubQueue,
        offset: Offset,
        failure: TransferFailure,
    ) {
        match (kind, failure) {
            (SubQueue::Active, failure) => {
                self.dead_letter_by_rule(cx, offset, DeadLetterCause::Transfer(failure));
            }
            (_, failure) if failure.may_pass() => {
                let retry_at = cx.now + RETRY_INTERVAL;
                self.store_mut(kind).pause_forwards(retry_at);
            }
            _ => self.store_mut(kind).keep(offset),
        }
    }
}
