//! What clients send, take back, and do in transactions.

use super::{Copy, Ledger, Outgoing, Records, SendState, Sent, TransactionState};
use crate::entities::{FULL_TARGET, HOP_LIMIT, destinations};

/// How long what a client has sent may still take when the client gives up.
const IN_FLIGHT_TIME: i64 = 1_000;

impl Ledger {
    /// A message is about to be sent, and gets a key.
    pub(crate) fn send(&self, outgoing: Outgoing) -> usize {
        let begun = self.now();
        let mut records = self.records();
        let key = records.messages.len();
        for place in destinations(outgoing.address, outgoing.colour) {
            records.copies.insert((key, place), Copy::default());
        }
        let Outgoing {
            address,
            order,
            session,
            colour,
            due,
            group,
        } = outgoing;
        self.say(|| format!("m{key} sends to {address} {session:?} due {due:?} in {group:?}"));
        records.messages.push(Sent {
            address,
            order,
            session,
            colour,
            due,
            group,
            begun,
            state: SendState::Unknown,
        });
        key
    }

    /// The emulator has taken it.
    pub(crate) fn accepted(&self, key: usize) {
        let now = self.now();
        self.say(|| format!("m{key} accepted"));
        let mut records = self.records();
        let sent = &mut records.messages[key];
        if !matches!(sent.state, SendState::Unknown) || sent.group.is_some() {
            return;
        }
        sent.state = SendState::Accepted(now);
        records.available(key, now);
    }

    pub(crate) fn refused(&self, key: usize, why: &str) {
        self.say(|| format!("m{key} refused: {why}"));
        self.records().messages[key].state = SendState::Refused;
    }

    /// It was scheduled, and is asked back: from now on it may be gone.
    pub(crate) fn cancelling(&self, key: usize) {
        self.say(|| format!("m{key} is to be cancelled"));
        let mut records = self.records();
        let sent = &mut records.messages[key];
        if let SendState::Accepted(at) = sent.state {
            sent.state = SendState::Cancelling(at);
            records
                .copies_of(key)
                .for_each(|copy| copy.available = None);
        }
    }

    /// The answer to that: whether it was given, or none where it is not known.
    pub(crate) fn cancelled(&self, key: usize, outcome: Option<bool>) {
        self.say(|| format!("m{key} cancelled: {outcome:?}"));
        let now = self.now();
        let mut records = self.records();
        let was_seen = records.copies_of(key).any(|copy| copy.seen);
        let sent = &mut records.messages[key];
        let SendState::Cancelling(at) = sent.state else {
            drop(records);
            if outcome == Some(true) {
                self.find(format!("m{key} was cancelled, and had been received"));
            }
            return;
        };
        let mut finding = None;
        match outcome {
            Some(true) if was_seen => finding = Some("was cancelled, and had been received"),
            Some(true) => sent.state = SendState::Cancelled,
            None => sent.state = SendState::MaybeCancelled,
            Some(false) => {
                sent.state = SendState::Accepted(at);
                if sent.due.is_some_and(|due| now < due) {
                    finding = Some("is scheduled, and cannot be cancelled");
                }
                records.available(key, now);
            }
        }
        drop(records);
        if let Some(finding) = finding {
            self.find(format!("m{key} {finding}"));
        }
    }

    pub(crate) fn begin_group(&self) -> usize {
        let mut records = self.records();
        records.groups.push(TransactionState::Unknown);
        records.groups.len() - 1
    }

    /// A transaction has ended, as its client knows.
    pub(crate) fn end_group(&self, group: usize, how: TransactionState) {
        self.say(|| format!("transaction {group} {how:?}"));
        let now = self.now();
        let mut records = self.records();
        records.groups[group] = how;
        for key in 0..records.messages.len() {
            let sent = &mut records.messages[key];
            if sent.group != Some(group) || sent.state != SendState::Unknown {
                continue;
            }
            match how {
                TransactionState::Committed => {
                    sent.state = SendState::Accepted(now);
                    records.available(key, now);
                }
                TransactionState::RolledBack => sent.state = SendState::Refused,
                TransactionState::Unknown => {}
            }
        }
        for copy in records.copies.values_mut() {
            let Some(at) = copy.completing.iter().position(|(own, _)| *own == group) else {
                continue;
            };
            let margin = if how == TransactionState::Unknown {
                IN_FLIGHT_TIME
            } else {
                0
            };
            if copy.completing[at].1 <= now + margin {
                // The lock may have ended before the settlement came, which is refused then, and no part of it.
                copy.completing.remove(at);
                copy.maybe_gone = true;
            } else if how == TransactionState::Committed {
                copy.completed.get_or_insert(now);
            }
        }
    }
}

impl Records {
    /// A message may be received at every place where it goes, if it is not received already.
    fn available(&mut self, key: usize, now: i64) {
        let sent = &self.messages[key];
        let from = now.max(sent.due.unwrap_or(now));
        for place in destinations(sent.address, sent.colour) {
            if let Some(copy) = self.copies.get_mut(&(key, place))
                && !copy.seen
                && !matches!(place, HOP_LIMIT | FULL_TARGET)
            {
                copy.available = Some((place, from));
            }
        }
    }

    /// The copies of a message.
    fn copies_of(&mut self, key: usize) -> impl Iterator<Item = &mut Copy> {
        let copies = self.copies.range_mut((key, 0)..(key + 1, 0));
        copies.map(|(_, copy)| copy)
    }
}
