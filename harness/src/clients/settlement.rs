//! What became of a settlement, as the record of the emulator tells.
//!
//! The client library does not hand the emulator's answer to a settlement on. Where the record is missing or no longer reaches
//! back to the delivery, the settlement is taken as done.

use std::time::Duration;

use servicebus_assertions::{Event, EventKind, is_at};

use super::SubQueueClient;
use crate::{
    amqp::{ANSWER_WITHIN, CONTAINER},
    background::Stopwatch,
    error::amqp::{AmqpError, Condition, MESSAGE_LOCK_LOST},
};

/// Between two looks at the record.
const PAUSE: Duration = Duration::from_millis(2);

/// What the record tells.
#[derive(Debug)]
enum Settlement {
    Done,
    Open,
    Refused(AmqpError),
}

/// A settlement that is about to be sent.
#[derive(Debug)]
pub(super) struct Settling {
    sequence_number: i64,
    /// How many faults there were before, where there may be more.
    faults: Option<usize>,
}

impl Settling {
    pub(super) async fn new(client: &SubQueueClient, sequence_number: i64) -> Self {
        let faults = match client.connections.script.may_fire() {
            true => Some(client.faults_here().await.len()),
            false => None,
        };
        Self {
            sequence_number,
            faults,
        }
    }

    /// Whether a fault may delay it, so that its link must stay open until it is done.
    pub(super) fn may_be_delayed(&self) -> bool {
        self.faults.is_some()
    }

    /// Waits until the emulator has dealt with it.
    pub(super) async fn done(&self, client: &SubQueueClient) -> Result<(), AmqpError> {
        let within = match self.faults {
            Some(_) => ANSWER_WITHIN,
            None => Duration::ZERO,
        };
        let started = Stopwatch::start();
        loop {
            match self.look(client).await {
                Settlement::Done => return Ok(()),
                Settlement::Refused(error) => return Err(error),
                Settlement::Open if started.elapsed() < within => tokio::time::sleep(PAUSE).await,
                Settlement::Open => return Err(AmqpError::TimedOut { within }),
            }
        }
    }

    async fn look(&self, client: &SubQueueClient) -> Settlement {
        // Of this message alone: the whole record grows with every message before.
        let Ok(events) = client.events_of(self.sequence_number).await else {
            return Settlement::Done;
        };
        match (of_record(&events, client.path()), self.faults) {
            (Settlement::Open, Some(before)) => {
                let faults = client.faults_here().await;
                let mut since = faults.iter().skip(before);
                since
                    .find_map(|told| of_fault(told))
                    .unwrap_or(Settlement::Open)
            }
            (settlement, _) => settlement,
        }
    }
}

impl SubQueueClient {
    /// What went wrong here for the test as it was scripted.
    async fn faults_here(&self) -> Vec<String> {
        let timeline = self.try_timeline().await.unwrap_or_default();
        let faults = timeline.events().iter().filter(|event| {
            event.kind == EventKind::Fault
                && event.client.as_deref() == Some(CONTAINER)
                && is_at(event, self.owner_path())
        });
        faults.filter_map(|fault| fault.detail.clone()).collect()
    }
}

/// Reads the events of the message: what the test settled it as comes behind its delivery.
fn of_record(events: &[Event], path: &str) -> Settlement {
    let mut mine = events.iter().filter(|event| {
        let is_own = event.client.as_deref() == Some(CONTAINER);
        (is_own || event.kind == EventKind::LockExpired) && is_at(event, path)
    });
    let Some(last) = mine.next_back() else {
        return Settlement::Done;
    };
    let refused = |condition: &str| {
        Settlement::Refused(AmqpError::Refused(Condition {
            condition: condition.to_owned(),
            description: last.detail.clone().unwrap_or_default(),
        }))
    };
    match (&last.kind, &last.reason) {
        (EventKind::Delivered | EventKind::LockRenewed, _) => Settlement::Open,
        (EventKind::LockExpired, _) => refused(MESSAGE_LOCK_LOST),
        (EventKind::Refused, Some(condition)) => refused(condition),
        _ => Settlement::Done,
    }
}

/// Reads what is told of a fault: whether the settlement was answered by it, or did not arrive. One that is late is open.
fn of_fault(told: &str) -> Option<Settlement> {
    let told = told.split(" (by chance").next().unwrap_or_default();
    if told.ends_with("confirmed in vain") {
        return Some(Settlement::Done);
    }
    if !told.contains(" was rejected with ") && !told.contains(" before the ") {
        return None;
    }
    let error = match told.split_once(" with ") {
        Some((what, rest)) => {
            let (condition, when) = rest.split_once(' ').unwrap_or((rest, ""));
            AmqpError::Refused(Condition {
                condition: condition.to_owned(),
                description: format!("{what} {when}").trim_end().to_owned(),
            })
        }
        None => AmqpError::Ended(told.to_owned()),
    };
    Some(Settlement::Refused(error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fault_that_answers_or_keeps_a_settlement_from_arriving_decides() {
        let cases = [
            (
                "the completion was rejected with amqp:internal-error (by chance, seed 7)",
                "amqp:internal-error: the completion was rejected",
            ),
            (
                "the link was detached with amqp:link:detach-forced before the completion",
                "amqp:link:detach-forced: the link was detached before the completion",
            ),
            (
                "the connection was dropped before the completion",
                "the connection was dropped before the completion",
            ),
        ];
        for (told, expected) in cases {
            match of_fault(told) {
                Some(Settlement::Refused(error)) => assert_eq!(error.to_string(), expected),
                other => panic!("{told}: {other:?}"),
            }
        }
        for told in [
            "the completion was delayed by 0.3 s of real time",
            "the connection was dropped after the completion",
            "the reply to the completion was lost",
        ] {
            assert!(of_fault(told).is_none(), "{told}");
        }
    }
}
