//! A link on a store: what AMQP outcomes mean to the broker, and what its refusals mean to AMQP.

use servicebus_amqp::Outcome as Wire;
use servicebus_broker::{Outcome, PropertyChanges, SettleError};

use super::{Condition, Refusal};

/// The settlement that a client means by an outcome (semantics §2.3, wire.md §4.4).
pub(crate) fn broker_outcome(outcome: &Wire) -> Result<Outcome, Refusal> {
    match outcome {
        Wire::Accepted => Ok(Outcome::Complete),
        Wire::Released => Ok(Outcome::Release),
        Wire::Modified {
            undeliverable_here: true,
            ..
        } => Err(Refusal::new(
            Condition::NotImplemented,
            "Deferral is not supported by this version of the emulator.",
        )),
        // `delivery-failed` differs from SDK to SDK and does not count.
        Wire::Modified { annotations, .. } => {
            let changes = changes(annotations.as_deref())?;
            Ok(Outcome::Abandon { changes })
        }
        Wire::Rejected { error } => {
            let info = error.as_ref().and_then(|error| error.info.as_deref());
            let mut changes = changes(info)?;
            let reason = changes.take_text("DeadLetterReason");
            let description = changes.take_text("DeadLetterErrorDescription");
            Ok(Outcome::DeadLetter {
                reason,
                description,
                changes,
            })
        }
    }
}

/// What a client is told when its settlement did not happen.
pub(crate) fn settle_refusal(error: &SettleError) -> Refusal {
    match error {
        SettleError::LockLost => Refusal::lock_lost(),
        SettleError::AlreadyDeadLettered => Refusal::new(
            Condition::NotAllowed,
            "A message of a dead-letter queue cannot be dead-lettered.",
        ),
        SettleError::Properties(error) => malformed_properties(error),
    }
}

fn changes(encoded: Option<&[u8]>) -> Result<PropertyChanges, Refusal> {
    match encoded {
        Some(map) => PropertyChanges::from_map(map).map_err(|error| malformed_properties(&error)),
        None => Ok(PropertyChanges::new()),
    }
}

fn malformed_properties(error: &impl std::fmt::Display) -> Refusal {
    let text = format!("The properties to modify cannot be decoded: {error}.");
    Refusal::new(Condition::DecodeError, text)
}
