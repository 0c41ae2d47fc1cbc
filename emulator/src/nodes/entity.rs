//! A link on a store: maps AMQP outcomes to the broker's, and the broker's errors to AMQP's.

use servicebus_amqp::Outcome as Wire;
use servicebus_broker::{
    CommitError, EntityPath, MessageError, Outcome, PropertyChanges, SendError, SettleError,
    TransactError,
};

use super::condition::{Condition, ServiceError};

/// Observed at the service (semantics §20.2).
const HEADERS_TOO_LARGE: &str = "The service was unable to process the request; please retry the operation. For \
     more information on exception types and proper exception handling, please refer to \
     http://go.microsoft.com/fwlink/?LinkId=761101";

/// Returns the settlement for a client's outcome (semantics §2.3, wire.md §4.4).
pub(crate) fn broker_outcome(outcome: &Wire) -> Result<Outcome, ServiceError> {
    match outcome {
        Wire::Accepted => Ok(Outcome::Complete),
        Wire::Released => Ok(Outcome::Release),
        Wire::Modified {
            undeliverable_here: true,
            annotations,
            ..
        } => {
            let changes = changes(annotations.as_deref())?;
            Ok(Outcome::Defer { changes })
        }
        // `delivery-failed` differs between SDKs and is ignored.
        Wire::Modified { annotations, .. } => {
            let changes = changes(annotations.as_deref())?;
            Ok(Outcome::Abandon { changes })
        }
        Wire::Rejected { error } => {
            let info = error.as_ref().and_then(|error| error.info.as_deref());
            let names = ["DeadLetterReason", "DeadLetterErrorDescription"];
            let (changes, texts) = match info {
                Some(map) => PropertyChanges::with_texts(map, names)
                    .map_err(|error| properties_refusal(&error))?,
                None => Default::default(),
            };
            // Go sends empty texts if it was given none (wire.md §4.4).
            let [reason, description] = texts.map(|text| text.filter(|text| !text.is_empty()));
            Ok(Outcome::DeadLetter {
                reason,
                description,
                changes,
            })
        }
    }
}

/// Returns the error for a message that cannot be parsed or exceeds the limits (semantics §1, §20).
pub(crate) fn message_refusal(error: &MessageError) -> ServiceError {
    let condition = match error {
        MessageError::Malformed(_) | MessageError::Section(_) => Condition::DecodeError,
        // Observed at the service (semantics §4).
        MessageError::ZeroTimeToLive => Condition::InternalError,
        MessageError::TooLarge(_) => Condition::MessageSizeExceeded,
        MessageError::HeadersTooLarge { .. } | MessageError::PropertyTooLarge { .. } => {
            return ServiceError::new(Condition::InternalError, HEADERS_TOO_LARGE);
        }
        MessageError::TooLong { .. }
        | MessageError::IllegalProperty { .. }
        | MessageError::PropertyName
        | MessageError::ScheduledTime
        | MessageError::PartitionKey(_) => Condition::ArgumentError,
    };
    ServiceError::new(condition, format!("The message was refused: {error}."))
}

/// Returns the error for a message that was not accepted (semantics §20).
pub(crate) fn send_refusal(error: &SendError, host: &str) -> ServiceError {
    match error {
        SendError::NotFound(path) => ServiceError::not_found(host, path.as_str()),
        SendError::Disabled(path) => ServiceError::disabled(host, path.as_str()),
        SendError::QuotaExceeded { .. } | SendError::NoRoom { .. } => {
            ServiceError::new(Condition::ResourceLimitExceeded, error.to_string())
        }
        SendError::Broken { .. } => ServiceError::new(Condition::InternalError, error.to_string()),
        SendError::NoSession | SendError::KeysDiffer { .. } | SendError::BatchKeysDiffer(..) => {
            ServiceError::new(Condition::NotAllowed, error.to_string())
        }
    }
}

/// Returns the error for a settlement that failed.
pub(crate) fn settle_refusal(error: &SettleError, host: &str, path: &EntityPath) -> ServiceError {
    match error {
        SettleError::LockLost => ServiceError::lock_lost(),
        SettleError::SessionLockLost => ServiceError::session_lock_lost(),
        SettleError::Disabled => ServiceError::disabled(host, path.as_str()),
        SettleError::AlreadyDeadLettered => ServiceError::new(
            Condition::NotAllowed,
            "A message of a dead-letter queue cannot be dead-lettered.",
        ),
        SettleError::Properties(error) => malformed_properties(error),
    }
}

/// Returns the error for work that was not enlisted in a transaction (semantics §20.2).
pub(crate) fn transact_refusal(
    error: &TransactError,
    host: &str,
    path: &EntityPath,
) -> ServiceError {
    let condition = match error {
        TransactError::Send(error) => return send_refusal(error, host),
        TransactError::Settle(error) => return settle_refusal(error, host, path),
        TransactError::TimedOut(_) => Condition::TransactionTimeout,
        TransactError::TooManyMessages { .. } => Condition::ResourceLimitExceeded,
        TransactError::SecondEntity { .. }
        | TransactError::SecondPartition { .. }
        | TransactError::Release => Condition::NotAllowed,
    };
    ServiceError::new(condition, error.to_string())
}

/// Returns the error for a transaction that was not committed. Clients of JMS get the condition of its cause: Qpid JMS takes
/// a commit that fails with it for rolled back, but one that fails with `amqp:transaction:rollback` for undecided.
pub(crate) fn commit_refusal(error: &CommitError, host: &str, is_jms: bool) -> ServiceError {
    let condition = match error {
        CommitError::TimedOut(_) => Condition::TransactionTimeout,
        CommitError::LockLost { .. } if is_jms => Condition::MessageLockLost,
        CommitError::Disabled { .. } if is_jms => Condition::EntityDisabled,
        CommitError::Send { error, .. } if is_jms => send_refusal(error, host).condition,
        CommitError::LockLost { .. } | CommitError::Disabled { .. } | CommitError::Send { .. } => {
            Condition::TransactionRollback
        }
    };
    ServiceError::new(condition, error.to_string())
}

fn changes(encoded: Option<&[u8]>) -> Result<PropertyChanges, ServiceError> {
    match encoded {
        Some(map) => PropertyChanges::from_map(map).map_err(|error| properties_refusal(&error)),
        None => Ok(PropertyChanges::new()),
    }
}

fn properties_refusal(error: &MessageError) -> ServiceError {
    if let MessageError::Malformed(error) = error {
        return malformed_properties(error);
    }
    let text = format!("The settlement was refused: {error}.");
    ServiceError::new(Condition::ArgumentError, text)
}

fn malformed_properties(error: &impl std::fmt::Display) -> ServiceError {
    let text = format!("The properties to modify cannot be decoded: {error}.");
    ServiceError::new(Condition::DecodeError, text)
}
