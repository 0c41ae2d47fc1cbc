//! The operation log of a namespace: every operation that faults can match, with their effects on it.

use std::collections::VecDeque;

use servicebus_broker::Timestamp;
use servicebus_control_api::{AppliedFault, LoggedOperation, Operations};

use super::{Lock, MatchContext, MatchedFaults, Traits};
use crate::clock;

/// Operations that are kept; the oldest are removed first.
const KEPT: usize = 16 * 1024;

/// The operations, oldest first.
#[derive(Debug, Default)]
pub(crate) struct OperationLog {
    operations: VecDeque<LoggedOperation>,
    /// The number of operations ever recorded.
    recorded: u64,
}

impl OperationLog {
    pub(crate) fn push(
        &mut self,
        context: &MatchContext<'_>,
        matched: &MatchedFaults,
        now: Timestamp,
        started_at: Timestamp,
    ) {
        let Some(&operation) = context.operations.first() else {
            return;
        };
        self.recorded += 1;
        if self.operations.len() >= KEPT {
            self.operations.pop_front();
        }
        let unknown = Traits::default();
        let message = context.messages.first().unwrap_or(&unknown);
        let faults = matched.first.iter().chain(&matched.then);
        let applied = faults.map(|fault| AppliedFault {
            fault: fault.id,
            effect: fault.effect.kind().name().to_owned(),
            detail: fault.text(),
        });
        self.operations.push_back(LoggedOperation {
            number: self.recorded,
            at: clock::system_time(now),
            offset: now.since(started_at).as_secs_f64(),
            operation,
            name: context.name.map(str::to_owned),
            party: context.party.as_deref().map(str::to_owned),
            client: context.client.as_deref().map(str::to_owned),
            connection: context.connection.map(|id| id.0),
            link: context.link.map(u64::from),
            entity: context.entities.first().cloned(),
            message_id: message.id.clone(),
            session_id: message.session.clone(),
            sequence_number: message.sequence_number,
            delivery: message.delivery,
            body_hash: message.body_hash.map(|hash| format!("{hash:016x}")),
            messages: context.messages.len(),
            locked: context.lock == Some(Lock::Message),
            session_locked: context.lock == Some(Lock::Session),
            repeatable: context.can_come_twice,
            before: context.before,
            faults: applied.collect(),
        });
    }

    /// Returns up to `limit` operations after this number.
    pub(crate) fn page(&self, after: u64, limit: usize, recording: bool) -> Operations {
        let dropped = self.recorded - self.operations.len() as u64;
        let passed = usize::try_from(after.saturating_sub(dropped)).unwrap_or(usize::MAX);
        let operations = self.operations.iter().skip(passed).take(limit);
        let operations: Vec<LoggedOperation> = operations.cloned().collect();
        let last = operations.last().map(|operation| operation.number);
        Operations {
            recording,
            dropped,
            operations,
            next: last.filter(|last| *last < self.recorded),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::Operation;

    fn log_of(count: usize) -> OperationLog {
        let mut log = OperationLog::default();
        let context = MatchContext {
            operations: vec![Operation::Complete, Operation::Settle],
            ..MatchContext::default()
        };
        for second in 0..count {
            let now = Timestamp::from_millis(1000 * second as i64);
            let start = Timestamp::from_millis(0);
            log.push(&context, &MatchedFaults::default(), now, start);
        }
        log
    }

    #[test]
    fn the_operation_log_is_read_in_pages_and_drops_the_oldest() {
        let log = log_of(5);
        let numbers = |page: &Operations| {
            let numbers = page.operations.iter().map(|operation| operation.number);
            numbers.collect::<Vec<_>>()
        };
        let first = log.page(0, 2, true);
        assert_eq!((numbers(&first), first.next), (vec![1, 2], Some(2)));
        assert_eq!(first.operations[1].offset, 1.0);
        assert_eq!(first.operations[1].operation, Operation::Complete);
        let last = log.page(4, 2, true);
        assert_eq!((numbers(&last), last.next), (vec![5], None));
        assert_eq!(log.page(99, 2, true).operations, []);
        let log = log_of(KEPT + 3);
        let first = log.page(0, 1, true);
        assert_eq!((numbers(&first), first.dropped), (vec![4], 3));
    }
}
