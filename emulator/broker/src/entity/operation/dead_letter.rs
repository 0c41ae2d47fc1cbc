//! Moves a message from the active store to a dead-letter store of its entity.

use servicebus_codec::DecodeError;
use thiserror::Error;

use crate::context::Context;
use crate::entity::Entity;
use crate::entity::operation::send::SendError;
use crate::event::{EventKind, Text};
use crate::filter::RuleError;
use crate::ids::{Offset, SubQueue};
use crate::message::PropertyChanges;
use crate::settings::FailedForwards;

/// How often a message may be forwarded (decision D3).
pub(crate) const MAX_HOPS: u8 = 4;

const REASON: &str = "DeadLetterReason";
const DESCRIPTION: &str = "DeadLetterErrorDescription";

/// Why a message is dead-lettered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeadLetterCause {
    /// The number of failed deliveries reached the limit.
    MaxDeliveryCount(u32),
    /// Its time to live has passed.
    Expired,
    /// Its headers exceed the limit.
    HeaderSize,
    /// It has no session, but arrived at an entity that requires sessions.
    NoSession,
    /// It could not be forwarded.
    Transfer(TransferFailure),
    /// A filter or action of its subscription failed.
    Filter(Box<RuleError>),
    /// A client dead-lettered it with its own reason and description.
    Client(Option<String>, Option<String>),
}

impl DeadLetterCause {
    /// Returns reason and description in the service's words (decisions D3, D4, D5).
    fn texts(self) -> (Option<String>, Option<String>) {
        let (reason, description) = match self {
            Self::MaxDeliveryCount(limit) => (
                "MaxDeliveryCountExceeded",
                format!("Message could not be consumed after {limit} delivery attempts."),
            ),
            Self::Expired => (
                "TTLExpiredException",
                "The message expired and was dead lettered.".into(),
            ),
            Self::HeaderSize => (
                "HeaderSizeExceeded",
                "The size quota for this stream has been exceeded.".into(),
            ),
            Self::NoSession => (
                "Session ID is null.",
                "Session enabled entity doesn't allow a message whose session identifier is null."
                    .into(),
            ),
            Self::Transfer(failure) => (failure.reason(), failure.to_string()),
            Self::Filter(failure) => (failure.reason(), failure.to_string()),
            Self::Client(reason, description) => return (reason, description),
        };
        (Some(reason.to_owned()), Some(description))
    }

    /// Returns the store that gets the message (decision D3).
    fn place(&self, failed_forwards: FailedForwards) -> SubQueue {
        match (self, failed_forwards) {
            (Self::Transfer(_), FailedForwards::TransferDeadLetter) => SubQueue::TransferDeadLetter,
            _ => SubQueue::DeadLetter,
        }
    }
}

/// Why a message could not be forwarded (decision D3).
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TransferFailure {
    /// It was forwarded as often as allowed.
    #[error(
        "The maximum number of allowed hops when forwarding between queues. Value is set to {MAX_HOPS}."
    )]
    Hops,
    /// The target refused it as it would refuse a sender, or does not exist.
    #[error("{0}")]
    Refused(#[from] SendError),
}

impl TransferFailure {
    /// Returns the `DeadLetterReason`.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Hops => "MaxTransferHopCountExceeded",
            Self::Refused(SendError::NotFound(_)) => "MessagingEntityNotFoundException",
            Self::Refused(SendError::Disabled(_)) => "MessagingEntityDisabledException",
            Self::Refused(SendError::QuotaExceeded { .. } | SendError::NoRoom { .. }) => {
                "QuotaExceededException"
            }
            Self::Refused(SendError::Broken { .. }) => "InternalServerErrorException",
            Self::Refused(
                SendError::NoSession
                | SendError::KeysDiffer { .. }
                | SendError::BatchKeysDiffer(..),
            ) => "InvalidOperationException",
        }
    }

    /// Returns whether a later attempt may succeed.
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Refused(
                SendError::NotFound(_)
                | SendError::Disabled(_)
                | SendError::QuotaExceeded { .. }
                | SendError::NoRoom { .. }
                | SendError::Broken { .. },
            ) => true,
            Self::Hops
            | Self::Refused(
                SendError::NoSession
                | SendError::KeysDiffer { .. }
                | SendError::BatchKeysDiffer(..),
            ) => false,
        }
    }
}

/// A message that is about to be dead-lettered.
struct DeadLetter {
    kind: SubQueue,
    reason: Option<String>,
    description: Option<String>,
}

impl Entity {
    /// Dead-letters a message of the active store. It keeps its delivery count, its enqueue time and the sequence number
    /// where it first entered; it gets a new sequence number, and no longer expires (decision D8, semantics §3.3).
    pub(crate) fn dead_letter(
        &mut self,
        cx: &mut Context<'_>,
        offset: Offset,
        cause: DeadLetterCause,
        changes: &PropertyChanges,
    ) -> Result<(), DecodeError> {
        let dead = DeadLetter::new(cause, self.settings.failed_forwards);
        self.active
            .change_properties(offset, &dead.changes(changes))?;
        self.move_dead_letter(cx, offset, dead);
        Ok(())
    }

    /// Dead-letters a message without a request of a client.
    pub(crate) fn dead_letter_by_rule(
        &mut self,
        cx: &mut Context<'_>,
        offset: Offset,
        cause: DeadLetterCause,
    ) {
        let dead = DeadLetter::new(cause, self.settings.failed_forwards);
        let changes = dead.changes(&PropertyChanges::new());
        // The properties of an accepted message decode. If they did not, it would go without its reason.
        let _ = self.active.change_properties(offset, &changes);
        self.move_dead_letter(&mut cx.at(cx.now), offset, dead);
    }

    fn move_dead_letter(&mut self, cx: &mut Context<'_>, offset: Offset, dead: DeadLetter) {
        let Some(entry) = self.active.remove(offset) else {
            return;
        };
        let (number, partition) = (entry.number(offset), entry.partition());
        let entry = entry.into_dead_letter();
        let store = self.store_mut(dead.kind);
        let moved_to = store.append(cx.now, entry, None).in_partition(partition);
        let is_transfer = store.policy().kind() == SubQueue::TransferDeadLetter;
        let mut text =
            |text: Option<String>| text.map_or_else(Text::default, |t| cx.events.text(&t));
        let (reason, description) = (text(dead.reason), text(dead.description));
        let kind = match is_transfer {
            true => EventKind::TransferFailed {
                moved_to,
                reason,
                description,
            },
            false => EventKind::DeadLettered {
                moved_to,
                reason,
                description,
            },
        };
        self.active.record_as(cx, number, kind);
    }
}

impl DeadLetter {
    fn new(cause: DeadLetterCause, failed_forwards: FailedForwards) -> Self {
        let kind = cause.place(failed_forwards);
        let (reason, description) = cause.texts();
        Self {
            kind,
            reason,
            description,
        }
    }

    /// Returns the property changes of the dead letter, beside those of a client.
    fn changes(&self, changes: &PropertyChanges) -> PropertyChanges {
        let mut changes = changes.clone();
        for (name, text) in [(REASON, &self.reason), (DESCRIPTION, &self.description)] {
            if let Some(text) = text {
                changes.set_text(name, text);
            }
        }
        changes
    }
}
