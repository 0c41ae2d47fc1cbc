//! What is judged in the end, when every entity was emptied.

use super::{Copy, Ledger, Records, SendState, TransactionState};
use crate::entities::ENTITIES;

impl Ledger {
    /// A copy was there when its entity was emptied.
    pub(crate) fn found(&self, place: usize, key: usize) {
        if let Some(copy) = self.records().copy(key, place) {
            copy.found += 1;
            copy.seen = true;
        }
    }

    /// How many messages were sent.
    pub(crate) fn sent(&self) -> usize {
        self.records().messages.len()
    }

    /// Everything was taken out: what was accepted was there, and what was done is gone.
    pub(crate) fn check_result(&self) {
        let findings = {
            let mut records = self.records();
            records.infer_outcomes();
            let mut findings = records.check_copies();
            findings.extend(records.check_transactions());
            findings
        };
        for finding in findings {
            self.find(finding);
        }
    }
}

impl Records {
    /// What clients could not know follows from what was seen.
    fn infer_outcomes(&mut self) {
        let seen: Vec<usize> = self
            .copies
            .iter()
            .filter(|(_, copy)| copy.seen)
            .map(|((key, _), _)| *key)
            .collect();
        for key in seen {
            let sent = &mut self.messages[key];
            if let Some(group) = sent.group
                && self.groups[group] == TransactionState::Unknown
            {
                self.groups[group] = TransactionState::Committed;
            }
            if matches!(sent.state, SendState::Unknown | SendState::MaybeCancelled) {
                // It is there; since when does not matter any more.
                sent.state = SendState::Accepted(i64::MAX);
            }
        }
        let mut has_sends = vec![false; self.groups.len()];
        for sent in &mut self.messages {
            if let Some(group) = sent.group {
                has_sends[group] = true;
                if self.groups[group] == TransactionState::Committed
                    && sent.state == SendState::Unknown
                {
                    sent.state = SendState::Accepted(i64::MAX);
                }
            }
        }
        for (group, has_sends) in self.groups.iter_mut().zip(has_sends) {
            if *group == TransactionState::Unknown && has_sends {
                *group = TransactionState::RolledBack;
            }
        }
    }

    fn check_copies(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for ((key, place), copy) in &self.copies {
            let (sent, at) = (&self.messages[*key], ENTITIES[*place].address);
            if copy.found > 1 {
                findings.push(format!("m{key} at {at}: it is there {} times", copy.found));
            }
            let is_committed = self.is_committed(copy);
            if copy.found > 0 && (copy.completed.is_some() || is_committed == Some(true)) {
                findings.push(format!("m{key} at {at}: it was completed, and is there"));
            }
            let may_be_gone = copy.completed.is_some()
                || copy.maybe_gone
                || is_committed != Some(false)
                || ENTITIES[*place].drops_expired;
            if copy.found == 0 && matches!(sent.state, SendState::Accepted(_)) && !may_be_gone {
                findings.push(format!("m{key} at {at}: it was accepted, and is lost"));
            }
        }
        findings
    }

    /// Whether a transaction has completed it; none when that is not known.
    fn is_committed(&self, copy: &Copy) -> Option<bool> {
        let ended = |how| {
            copy.completing
                .iter()
                .any(|(own, _)| self.groups[*own] == how)
        };
        match (
            ended(TransactionState::Committed),
            ended(TransactionState::Unknown),
        ) {
            (true, _) => Some(true),
            (false, true) => None,
            (false, false) => Some(false),
        }
    }

    /// Transactions of which it is unknown how they ended have done all of it or nothing.
    fn check_transactions(&self) -> Vec<String> {
        let mut findings = Vec::new();
        for group in 0..self.groups.len() {
            let of_it = self
                .copies
                .values()
                .filter(|copy| matches!(&copy.completing[..], [(own, _)] if *own == group));
            let of_it = of_it.filter(|copy| !copy.maybe_gone && copy.completed.is_none());
            let found: Vec<bool> = of_it.map(|copy| copy.found > 0).collect();
            if self.groups[group] == TransactionState::Unknown
                && found.iter().any(|found| *found)
                && !found.iter().all(|found| *found)
            {
                findings.push(format!("transaction {group} was done by halves"));
            }
        }
        findings
    }
}
