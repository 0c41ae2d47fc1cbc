//! Reads the result of a settlement from the emulator's record.
//!
//! The client library does not return the emulator's answer to a settlement. If there is no record, or it no longer includes
//! the delivery, the settlement counts as done.

use std::time::Duration;

use servicebus_assertions::{Event, EventKind, is_at};
use servicebus_control_api::{AppliedEffect, Effect, ErrorText, Operation};

use super::SubQueueClient;
use crate::{
    amqp::{CONTAINER, RESPONSE_TIMEOUT},
    background::Stopwatch,
    error::amqp::{AmqpError, Condition, MESSAGE_LOCK_LOST},
};

/// The interval between two polls of the record.
const PAUSE: Duration = Duration::from_millis(2);

impl SubQueueClient {
    /// Waits until the emulator has applied or refused the test's settlement of a message.
    pub(super) async fn await_settlement(&self, sequence_number: i64) -> Result<(), AmqpError> {
        let started = Stopwatch::start();
        loop {
            // Only this message's events, because the whole record grows with every message.
            let Ok(events) = self.events_of(sequence_number).await else {
                return Ok(());
            };
            match outcome(&events, self.path()) {
                Some(outcome) => return outcome,
                None if started.elapsed() < RESPONSE_TIMEOUT => tokio::time::sleep(PAUSE).await,
                None => {
                    let within = RESPONSE_TIMEOUT;
                    return Err(AmqpError::TimedOut { within });
                }
            }
        }
    }
}

/// Returns the result of the test's last settlement from the events of a message, newest first; `None` while it is pending.
fn outcome(events: &[Event], path: &str) -> Option<Result<(), AmqpError>> {
    let refused = |condition: &str, event: &Event| {
        Some(Err(AmqpError::Refused(Condition {
            condition: condition.to_owned(),
            description: event.detail.clone().unwrap_or_default(),
        })))
    };
    let mine = events.iter().rev().filter(|event| {
        let is_own = event.client.as_deref() == Some(CONTAINER);
        (is_own || event.kind == EventKind::LockExpired) && is_at(event, path)
    });
    for event in mine {
        match (&event.kind, &event.reason) {
            (EventKind::Delivered | EventKind::LockRenewed, _) => return None,
            (EventKind::LockExpired, _) => return refused(MESSAGE_LOCK_LOST, event),
            (EventKind::Refused, Some(condition)) => return refused(condition, event),
            (EventKind::Fault, _) => {
                if let Some(outcome) = event
                    .fault
                    .as_ref()
                    .and_then(|it| outcome_of_fault(event, it))
                {
                    return Some(outcome);
                }
            }
            _ => break,
        }
    }
    Some(Ok(()))
}

/// Returns how a fault ended a settlement: it answered, or the settlement did not arrive. `None` if the settlement was or
/// will be applied.
fn outcome_of_fault(event: &Event, fault: &AppliedEffect) -> Option<Result<(), AmqpError>> {
    if fault.effect == Effect::DeliverTwice {
        return Some(Ok(()));
    }
    let settles = [
        Operation::Settle,
        Operation::Complete,
        Operation::Abandon,
        Operation::DeadLetter,
        Operation::Defer,
    ];
    if !settles.contains(&fault.operation) || !fault.effect.prevents() {
        return None;
    }
    let detail = event.detail.clone().unwrap_or_default();
    let error = match &fault.effect {
        Effect::Delay(_) | Effect::Postpone => return None,
        Effect::Reject(ErrorText { condition, .. })
        | Effect::Answer {
            error: ErrorText { condition, .. },
            ..
        }
        | Effect::Detach {
            error: ErrorText { condition, .. },
            ..
        }
        | Effect::Close {
            error: ErrorText { condition, .. },
            ..
        } => AmqpError::Refused(Condition {
            description: detail.replacen(&format!(" with {condition}"), "", 1),
            condition: condition.clone(),
        }),
        _ => AmqpError::Ended(detail),
    };
    Some(Err(error))
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use servicebus_control_api::When;

    use super::*;

    fn event(kind: EventKind) -> Event {
        let mut event = Event::new(SystemTime::UNIX_EPOCH, 0.0, kind);
        event.entity = Some("orders".to_owned());
        event.client = Some(CONTAINER.to_owned());
        event
    }

    fn fault(operation: Operation, effect: Effect, detail: &str) -> Event {
        let mut event = event(EventKind::Fault);
        event.fault = Some(AppliedEffect { operation, effect });
        event.detail = Some(detail.to_owned());
        event
    }

    fn after_delivery(then: impl IntoIterator<Item = Event>) -> Option<Result<(), String>> {
        let events: Vec<_> = [event(EventKind::Delivered)]
            .into_iter()
            .chain(then)
            .collect();
        let outcome = outcome(&events, "orders")?;
        Some(outcome.map_err(|error| error.to_string()))
    }

    #[test]
    fn a_fault_on_a_settlement_is_its_outcome() {
        let (when, error) = (When::Before, || ErrorText::new("amqp:internal-error"));
        for (effect, detail, expected) in [
            (
                Effect::Reject(error()),
                "the completion was rejected with amqp:internal-error",
                "amqp:internal-error: the completion was rejected",
            ),
            (
                Effect::Detach {
                    when,
                    error: error(),
                },
                "the link was detached with amqp:internal-error before the completion",
                "amqp:internal-error: the link was detached before the completion",
            ),
            (
                Effect::Drop { when },
                "the connection was dropped before the completion",
                "the connection was dropped before the completion",
            ),
        ] {
            let event = fault(Operation::Complete, effect, detail);
            assert_eq!(after_delivery([event]), Some(Err(expected.to_owned())));
        }
        let twice = fault(Operation::Deliver, Effect::DeliverTwice, "");
        assert_eq!(after_delivery([twice]), Some(Ok(())));
    }

    #[test]
    fn other_faults_are_not_its_outcome() {
        let late = Effect::Drop { when: When::After };
        for (operation, effect) in [
            (Operation::Complete, Effect::Postpone),
            (Operation::Complete, late),
            (Operation::Complete, Effect::LoseReply),
            (Operation::RenewLock, Effect::Drop { when: When::Before }),
        ] {
            let fault = fault(operation, effect, "");
            assert_eq!(after_delivery([fault.clone()]), None, "{fault:?}");
            let done = [event(EventKind::Completed), fault];
            assert_eq!(after_delivery(done), Some(Ok(())));
        }
    }
}
