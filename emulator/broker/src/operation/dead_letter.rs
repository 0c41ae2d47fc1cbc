//! A message moves from the active store to a dead-letter store of its entity.

use servicebus_codec::DecodeError;

use crate::filter::RuleError;
use crate::store::entry::{Entry, State};
use crate::{
    Context, Entity, EventKind, FailedForwards, PropertyChanges, SequenceNumber, SubQueue, Text,
    Timestamp, TransferFailure,
};

const REASON: &str = "DeadLetterReason";
const DESCRIPTION: &str = "DeadLetterErrorDescription";

/// Why a message is dead-lettered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeadLetterCause {
    /// As many deliveries failed as are allowed.
    MaxDeliveryCount(u32),
    /// Its time to live has passed.
    Expired,
    /// Its headers have become too large.
    HeaderSize,
    /// It belongs to no session, and came to where there are sessions.
    NoSession,
    /// It could not be forwarded.
    Transfer(TransferFailure),
    /// A filter or action of its subscription failed.
    Filter(Box<RuleError>),
    /// A client said so, with a reason and a description of its own.
    Client(Option<String>, Option<String>),
}

impl DeadLetterCause {
    /// Reason and description as the service writes them (decisions D3, D4, D5).
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

    /// Which store the message goes to, and whether it stays there although the store forwards: what ran out of
    /// hops gets no more (decision D3).
    fn place(&self, failed_forwards: FailedForwards) -> (SubQueue, bool) {
        match (self, failed_forwards) {
            (Self::Transfer(_), FailedForwards::TransferDeadLetter) => {
                (SubQueue::TransferDeadLetter, false)
            }
            (Self::Transfer(failure), FailedForwards::DeadLetter) => {
                (SubQueue::DeadLetter, *failure == TransferFailure::Hops)
            }
            _ => (SubQueue::DeadLetter, false),
        }
    }
}

/// What becomes of a dead letter.
struct Burial {
    place: SubQueue,
    /// It is not forwarded from there.
    stays: bool,
    reason: Option<String>,
    description: Option<String>,
}

impl Entity {
    /// Moves a message of the active store. It keeps its delivery count, its enqueue time and the number
    /// where it first entered; it gets a new number, and no longer expires (decision D8, semantics §3.3).
    pub(crate) fn dead_letter(
        &mut self,
        cx: &mut Context<'_>,
        number: SequenceNumber,
        cause: DeadLetterCause,
        changes: &PropertyChanges,
    ) -> Result<(), DecodeError> {
        let burial = self.burial(cause);
        self.active
            .change(number, &burial.changes(changes), |_| ())?;
        self.bury(cx, number, burial);
        Ok(())
    }

    /// The same when nobody asked for it.
    pub(crate) fn dead_letter_by_rule(
        &mut self,
        cx: &mut Context<'_>,
        number: SequenceNumber,
        cause: DeadLetterCause,
    ) {
        let burial = self.burial(cause);
        let changes = burial.changes(&PropertyChanges::new());
        // The properties of an accepted message decode. Were it not so, it would go without its reason.
        let _ = self.active.change(number, &changes, |_| ());
        self.bury(&mut cx.at(cx.now), number, burial);
    }

    fn burial(&self, cause: DeadLetterCause) -> Burial {
        let (place, stays) = cause.place(self.settings.failed_forwards);
        let (reason, description) = cause.texts();
        Burial {
            place,
            stays,
            reason,
            description,
        }
    }

    fn bury(&mut self, cx: &mut Context<'_>, number: SequenceNumber, burial: Burial) {
        let Burial {
            place,
            stays,
            reason,
            description,
        } = burial;
        let Some(entry) = self.active.remove(number) else {
            return;
        };
        let (shown, partition) = (entry.number(number), entry.partition);
        let moved_to = self.store_mut(place).append(
            Entry {
                expires_at: Timestamp::NEVER,
                state: State::Ready,
                is_moved: true,
                stays,
                ..entry
            },
            None,
        );
        let moved_to = moved_to.in_partition(partition);
        let mut text =
            |text: Option<String>| text.map_or_else(Text::default, |t| cx.events.text(&t));
        let (reason, description) = (text(reason), text(description));
        let kind = match place {
            SubQueue::TransferDeadLetter => EventKind::TransferFailed {
                moved_to,
                reason,
                description,
            },
            SubQueue::Active | SubQueue::DeadLetter => EventKind::DeadLettered {
                moved_to,
                reason,
                description,
            },
        };
        self.active.record_as(cx, shown, kind);
    }
}

impl Burial {
    /// What the dead letter says of it, beside what a client sets.
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
