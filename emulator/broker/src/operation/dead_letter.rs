//! A message moves from the active store to the dead-letter store of its mailbox.

use servicebus_codec::DecodeError;

use crate::store::entry::{Entry, State};
use crate::{Context, FactKind, Mailbox, PropertyChanges, SequenceNumber, Text, Timestamp};

const REASON: &str = "DeadLetterReason";
const DESCRIPTION: &str = "DeadLetterErrorDescription";

/// Why a message is dead-lettered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DeadLetterCause {
    /// As many deliveries failed as are allowed.
    MaxDeliveryCount(u32),
    /// Its time to live has passed.
    Expired,
    /// A client said so, with a reason and a description of its own.
    Client(Option<String>, Option<String>),
}

impl DeadLetterCause {
    /// Reason and description as the service writes them (decisions D4, D5).
    fn texts(self) -> (Option<String>, Option<String>) {
        match self {
            Self::MaxDeliveryCount(limit) => (
                Some("MaxDeliveryCountExceeded".into()),
                Some(format!(
                    "Message could not be consumed after {limit} delivery attempts."
                )),
            ),
            Self::Expired => (
                Some("TTLExpiredException".into()),
                Some("The message expired and was dead lettered.".into()),
            ),
            Self::Client(reason, description) => (reason, description),
        }
    }
}

impl Mailbox {
    /// Moves a message of the active store. It keeps its delivery count, its enqueue time and the number
    /// where it first entered; it gets a new number, and no longer expires (decision D8, semantics §3.3).
    pub(crate) fn dead_letter(
        &mut self,
        cx: &mut Context<'_>,
        number: SequenceNumber,
        cause: DeadLetterCause,
        changes: &PropertyChanges,
    ) -> Result<(), DecodeError> {
        let (reason, description) = cause.texts();
        let mut changes = changes.clone();
        for (name, text) in [(REASON, &reason), (DESCRIPTION, &description)] {
            if let Some(text) = text {
                changes.set_text(name, text);
            }
        }
        self.active.change(number, &changes, |_| ())?;
        let Some(entry) = self.active.remove(number) else {
            return Ok(());
        };
        let moved_to = self.dead_letters.append(Entry {
            expires_at: Timestamp::NEVER,
            state: State::Ready,
            ..entry
        });
        let mut text =
            |text: Option<String>| text.map_or_else(Text::default, |t| cx.facts.text(&t));
        let kind = FactKind::DeadLettered {
            moved_to,
            reason: text(reason),
            description: text(description),
        };
        self.active.note(cx, number, kind);
        Ok(())
    }
}
