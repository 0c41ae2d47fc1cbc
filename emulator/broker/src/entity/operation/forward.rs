//! Forwards messages to another entity (semantics §11, decisions D3, D22).
//!
//! A store with messages to forward emits [`crate::Effect::Forward`]; the executor of effects calls [`crate::forward`],
//! which moves batches from store to store and locks at most one entity at a time, so that the order of locks does not
//! matter. The source removes a message only after the target has answered.

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

/// Maximum number of messages in a batch.
const BATCH: usize = 64;
/// Maximum number of copies from one batch of a topic, unless the batch has only one message.
const COPIES: usize = 2048;
/// How long dead letters wait before they are forwarded again after the target refused the first of them: half a minute of
/// the namespace's clock, by our choice (decision D22).
pub const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// Messages that leave a store together.
#[derive(Debug)]
pub(crate) struct Batch {
    /// The id of the source: another entity may have its path by the time the target has answered.
    pub(crate) entity: EntityId,
    pub(crate) target: Target,
    /// Maximum number of messages that are handed over, including those without hops left.
    pub(crate) cost: usize,
    pub(crate) messages: Vec<Transfer>,
}

/// The target of forwarded messages.
#[derive(Debug, Clone)]
pub(crate) enum Target {
    /// Another entity.
    Entity(EntityPath),
    /// The subscriptions of a topic whose rules match.
    Subscriptions(Arc<RuleSet>),
}

/// One forwarded message.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) offset: Offset,
    /// Its sequence number at the source.
    pub(crate) number: SequenceNumber,
    pub(crate) message: Message,
    pub(crate) enqueued_number: SequenceNumber,
    pub(crate) enqueued_at: Timestamp,
    pub(crate) hops: u8,
    /// The time to live of the source topic, in milliseconds: a copy lives no longer.
    pub(crate) ceiling: Option<NonZeroU64>,
}

impl Entity {
    /// Forwards refused messages again.
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

    /// Begins to transfer the next batch; returns `None` if nothing waits. Messages without hops left fail here.
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
        // A hop counts neither at a topic, since its subscriptions forward (decision D3), nor for a send via another entity.
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

    /// Accepts messages from another entity in order, with a result for each. Stops after the first dead letter that must
    /// wait, because later ones must not overtake it (decision D22).
    pub(crate) fn accept_transfers(
        &mut self,
        cx: &mut Context<'_>,
        source: SubQueue,
        messages: Vec<Transfer>,
    ) -> Vec<Result<(), TransferFailure>> {
        self.client_operation(cx, |entity, cx| {
            let mut answers = Vec::with_capacity(messages.len());
            for transfer in messages {
                let answer = entity.accept_transfer(&mut cx.at(cx.now), transfer);
                let answer = answer.map_err(TransferFailure::from);
                let waits = source == SubQueue::DeadLetter
                    && answer.as_ref().is_err_and(TransferFailure::is_transient);
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
        self.check_arrival(cx, &transfer.message)?;
        // A rule's action may have changed the session id alone, which matters where there are partitions.
        let key = match self.description.enable_partitioning {
            true => self.partition_key(&transfer.message)?,
            false => None,
        };
        let now = cx.now;
        // A rule's action may have set it; here it takes effect (semantics §13.2).
        let activates_at = transfer.message.scheduled_at().filter(|&at| at > now);
        if self.is_duplicate(cx, &transfer.message, activates_at.unwrap_or(now)) {
            return Ok(());
        }
        let session = self.active.session_of(&transfer.message);
        let cause = self.cause_of_arrival(session, transfer.message.exceeds_header_limit());
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

    /// Checks whether a message may come from another entity.
    fn check_arrival(&self, cx: &Context<'_>, message: &Message) -> Result<(), SendError> {
        match self.check_sent(cx, std::slice::from_ref(message)) {
            Err(SendError::Disabled(_))
                if self.settings.forward_to_disabled == ForwardToDisabled::Deliver =>
            {
                self.check_size(message.size())
            }
            checked => checked,
        }
    }

    /// Returns why a forwarded message is dead-lettered on arrival.
    pub(crate) fn cause_of_arrival(
        &self,
        session: Option<Slot>,
        exceeds_header_limit: bool,
    ) -> Option<DeadLetterCause> {
        let lacks_session = self.active.policy().has_sessions() && session.is_none();
        let no_session = lacks_session.then_some(DeadLetterCause::NoSession);
        no_session.or_else(|| exceeds_header_limit.then_some(DeadLetterCause::HeaderSize))
    }

    /// Completes a transfer by its results. Messages without a result stay, as do those that a former target refused.
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
                    // Removed meanwhile, or aborted with the one before it.
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

    /// Dead-letters a message that cannot be forwarded; a dead letter stays one, and waits if a later attempt may succeed
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
            (_, failure) if failure.is_transient() => {
                let retry_at = cx.now + RETRY_INTERVAL;
                self.store_mut(kind).pause_forwards(retry_at);
            }
            _ => self.store_mut(kind).keep(offset),
        }
    }
}
