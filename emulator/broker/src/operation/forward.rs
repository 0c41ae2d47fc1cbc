//! Messages go on to another entity (semantics §11, decisions D3, D22).
//!
//! A store that forwards says so ([`crate::Effect::Forward`]); whoever hears it calls [`forward`], which carries
//! batches from store to store with at most one entity in hand at a time, so that no order of locks matters. A
//! message is removed from its source only after its target has answered.

use thiserror::Error;

use super::dead_letter::DeadLetterCause;
use super::send::SendError;
use crate::store::entry::Entry;
use crate::{Context, EntityPath, FactKind, Mailbox, Message, SequenceNumber, StoreKind};

/// How often a message is forwarded at most (decision D3).
const MAX_HOPS: u8 = 4;
/// Messages carried at a time.
const BATCH: usize = 64;

/// How entities are reached: one at a time.
pub trait Entities {
    /// Does something to an entity; none when there is no such entity.
    fn with_entity<T>(
        &mut self,
        path: &EntityPath,
        work: impl FnOnce(&mut Mailbox, &mut Context<'_>) -> T,
    ) -> Option<T>;

    /// The next store that has something to forward, in the order in which they said so; and whether it may try
    /// what was refused before.
    fn next_source(&mut self) -> Option<(EntityPath, StoreKind, bool)>;
}

/// Why a message could not be forwarded (decision D3).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransferFailure {
    /// It was forwarded as often as is allowed.
    #[error(
        "The maximum number of allowed hops when forwarding between queues. Value is set to {MAX_HOPS}."
    )]
    Hops,
    /// The entity refused it as it would refuse a sender, or is not there.
    #[error("{0}")]
    Refused(#[from] SendError),
}

impl TransferFailure {
    /// `DeadLetterReason`.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Hops => "MaxTransferHopCountExceeded",
            Self::Refused(SendError::NotFound(_)) => "MessagingEntityNotFoundException",
            Self::Refused(SendError::Disabled(_)) => "MessagingEntityDisabledException",
            Self::Refused(SendError::QuotaExceeded { .. }) => "QuotaExceededException",
            Self::Refused(SendError::KeysDiffer { .. } | SendError::BatchKeysDiffer(..)) => {
                "InvalidOperationException"
            }
        }
    }

    /// Whether it may succeed another time, so that waiting makes sense.
    fn may_pass(&self) -> bool {
        match self {
            Self::Refused(
                SendError::NotFound(_) | SendError::Disabled(_) | SendError::QuotaExceeded { .. },
            ) => true,
            Self::Hops
            | Self::Refused(SendError::KeysDiffer { .. } | SendError::BatchKeysDiffer(..)) => false,
        }
    }
}

/// Messages that leave a store together.
#[derive(Debug)]
struct Batch {
    source: (EntityPath, StoreKind),
    target: EntityPath,
    messages: Vec<Transfer>,
}

/// One message on its way.
#[derive(Debug)]
struct Transfer {
    place: SequenceNumber,
    message: Message,
    enqueued_number: SequenceNumber,
    hops: u8,
}

/// Carries everything that waits to be forwarded, until nothing does. A message may pass several entities.
pub fn forward(entities: &mut impl Entities) {
    while let Some((path, kind, retries)) = entities.next_source() {
        if retries {
            entities.with_entity(&path, |mailbox, cx| mailbox.retry_forwards(cx, kind));
        }
        while let Some(Some(batch)) =
            entities.with_entity(&path, |mailbox, cx| mailbox.carry(cx, kind))
        {
            let Batch {
                source,
                target,
                messages,
            } = batch;
            let places: Vec<_> = messages.iter().map(|transfer| transfer.place).collect();
            let answers = entities
                .with_entity(&target, |mailbox, cx| {
                    mailbox.accept_transfers(cx, &source, messages)
                })
                .unwrap_or_else(|| {
                    let missing = TransferFailure::Refused(SendError::NotFound(target.clone()));
                    vec![Err(missing); places.len()]
                });
            entities.with_entity(&path, |mailbox, cx| {
                mailbox.carried(cx, kind, &target, places, answers);
            });
        }
    }
}

impl Mailbox {
    /// Puts back on its way what was refused, now that it may go on.
    pub fn retry_forwards(&mut self, cx: &mut Context<'_>, kind: StoreKind) {
        self.handle_timeout(cx);
        let store = self.store_mut(kind);
        for number in store.consumers.unassign_all() {
            store.put_back(number);
        }
        store.resume_forwards();
        self.assign(cx);
    }

    fn target(&self, kind: StoreKind) -> Option<&EntityPath> {
        match kind {
            StoreKind::Active => self.description.forward_to.as_ref(),
            StoreKind::DeadLetters => self.description.forward_dead_lettered_messages_to.as_ref(),
            StoreKind::TransferDeadLetters => None,
        }
    }

    /// The next messages to carry; none when there are none. What has no hop left fails here.
    fn carry(&mut self, cx: &mut Context<'_>, kind: StoreKind) -> Option<Batch> {
        self.handle_timeout(cx);
        let target = self.target(kind)?.clone();
        let mut messages = Vec::new();
        loop {
            let places = self.store_mut(kind).carry(BATCH);
            if places.is_empty() {
                break;
            }
            for place in places {
                match self.transfer(kind, place) {
                    Some(transfer) => messages.push(transfer),
                    None => self.forward_failed(cx, kind, place, TransferFailure::Hops),
                }
            }
            if !messages.is_empty() {
                break;
            }
        }
        self.assign(cx);
        let source = (self.path.clone(), kind);
        (!messages.is_empty()).then_some(Batch {
            source,
            target,
            messages,
        })
    }

    fn transfer(&self, kind: StoreKind, place: SequenceNumber) -> Option<Transfer> {
        let entry = self.store(kind).entries.get(place.0)?;
        let mut message = entry.message.clone();
        if kind == StoreKind::DeadLetters {
            message.set_dead_letter_source(self.path.as_str());
        }
        (entry.hops < MAX_HOPS).then(|| Transfer {
            place,
            message,
            enqueued_number: entry.enqueued_number,
            hops: entry.hops + 1,
        })
    }

    /// Takes messages in from another entity, in order. Answers for each; the first dead letter that has to wait
    /// is the last answer, because what comes behind may not overtake (decision D22).
    fn accept_transfers(
        &mut self,
        cx: &mut Context<'_>,
        source: &(EntityPath, StoreKind),
        messages: Vec<Transfer>,
    ) -> Vec<Result<(), TransferFailure>> {
        self.begin(cx);
        let mut answers = Vec::with_capacity(messages.len());
        let mut refused = None;
        for transfer in messages {
            let bytes = transfer.message.size();
            let answer = self.accept_transfer(&mut cx.at(cx.now), transfer);
            let answer = answer.map_err(TransferFailure::from);
            let waits = source.1 == StoreKind::DeadLetters
                && answer.as_ref().is_err_and(TransferFailure::may_pass);
            answers.push(answer);
            if waits {
                refused = Some(bytes);
                break;
            }
        }
        self.assign(cx);
        if let Some(bytes) = refused {
            self.refused.insert(source.clone(), bytes);
        }
        answers
    }

    fn accept_transfer(
        &mut self,
        cx: &mut Context<'_>,
        transfer: Transfer,
    ) -> Result<(), SendError> {
        self.check_room(transfer.message.size())?;
        let key = self.partition_key(&transfer.message)?;
        let now = cx.now;
        if self.is_duplicate(cx, &transfer.message, now) {
            return Ok(());
        }
        let outgrown = transfer.message.outgrown();
        let number = self.active.next_number();
        let entry = Entry {
            enqueued_number: transfer.enqueued_number,
            hops: transfer.hops,
            partition: self.partition(key.as_deref()),
            ..Entry::new(transfer.message, cx.now, number)
        };
        self.enqueue(cx, entry);
        if outgrown {
            self.dead_letter_by_rule(cx, number, DeadLetterCause::HeaderSize);
        }
        Ok(())
    }

    /// What became of messages that were carried. Those without an answer stay, and so do those that were refused by
    /// what is not the target any more.
    fn carried(
        &mut self,
        cx: &mut Context<'_>,
        kind: StoreKind,
        target: &EntityPath,
        places: Vec<SequenceNumber>,
        answers: Vec<Result<(), TransferFailure>>,
    ) {
        self.handle_timeout(cx);
        let cx = &mut cx.at(cx.now);
        let mut answers = answers.into_iter();
        for place in places {
            let answer = answers.next();
            if !self.store(kind).forwards.carries(place) {
                // Removed meanwhile, stalled with the one before it, or never of this entity: whoever was deleted
                // and made anew does not carry what its name did.
                continue;
            }
            match answer {
                Some(Ok(())) => {
                    self.store_mut(kind).remove(place);
                    let to = cx.facts.text(target.as_str());
                    self.store(kind).note(cx, place, FactKind::Forwarded { to });
                }
                Some(Err(failure)) if self.target(kind) == Some(target) => {
                    self.forward_failed(cx, kind, place, failure);
                }
                Some(Err(_)) | None => self.store_mut(kind).bring_back(place),
            }
        }
        self.assign(cx);
    }

    /// A message that cannot go on is dead-lettered; a dead letter stays what it is, and waits if that helps
    /// (decision D22).
    fn forward_failed(
        &mut self,
        cx: &mut Context<'_>,
        kind: StoreKind,
        place: SequenceNumber,
        failure: TransferFailure,
    ) {
        match (kind, failure) {
            (StoreKind::Active, failure) => {
                self.dead_letter_by_rule(cx, place, DeadLetterCause::Transfer(failure));
            }
            (_, failure) if failure.may_pass() => self.store_mut(kind).stall(),
            _ => self.store_mut(kind).keep(place),
        }
    }
}
