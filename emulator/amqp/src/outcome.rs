//! What became of a delivery, as either side says it.

use bytes::Bytes;

use crate::error::Error;

/// What we say of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryState {
    /// What became of it.
    Outcome(Outcome),
    /// What becomes of it when a transaction is committed (AMQP 1.0 §4.5.8).
    Transactional {
        /// The transaction's id.
        transaction: Bytes,
        /// What becomes of the delivery.
        outcome: Outcome,
    },
    /// It asked for a transaction, and this is its id (AMQP 1.0 §4.5.5).
    Declared(Bytes),
}

impl From<Outcome> for DeliveryState {
    fn from(outcome: Outcome) -> Self {
        Self::Outcome(outcome)
    }
}

/// A terminal delivery state (AMQP 1.0 §3.4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// Taken: complete, for a Service Bus receiver.
    Accepted,
    /// Given back as if never delivered.
    Released,
    /// Given back with changes: abandon, or defer when `undeliverable_here` (spec/wire.md §4.4).
    Modified {
        /// Whether the attempt counts as failed.
        delivery_failed: bool,
        /// Whether this link should not get it again.
        undeliverable_here: bool,
        /// An encoded map of annotations to change.
        annotations: Option<Box<[u8]>>,
    },
    /// Refused: dead-letter, for a Service Bus receiver.
    Rejected {
        /// Why, if said; apart, because few are rejected and all are moved.
        error: Option<Box<Error>>,
    },
}

impl From<Error> for Outcome {
    /// A rejection for this reason.
    fn from(error: Error) -> Self {
        Self::Rejected {
            error: Some(Box::new(error)),
        }
    }
}
