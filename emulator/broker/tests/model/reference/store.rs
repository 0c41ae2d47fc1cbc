//! What the reference knows of one store: a list of messages, a list of consumers and a list of credit.

use servicebus_broker::ReceiveMode;

use crate::transition::Properties;

#[derive(Debug, Default)]
pub(super) struct Store {
    pub(super) last: u64,
    pub(super) letters: Vec<Letter>,
    /// Whether it deletes what it receives, by consumer.
    pub(super) consumers: Vec<(u64, ReceiveMode)>,
    /// Units of credit.
    pub(super) waiting: Vec<Unit>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Unit {
    pub(super) arrival: u64,
    pub(super) consumer: u64,
}

#[derive(Debug, Clone)]
pub(super) struct Letter {
    pub(super) number: u64,
    pub(super) enqueued_number: u64,
    pub(super) id: String,
    pub(super) enqueued_at: i64,
    pub(super) own: Option<u64>,
    pub(super) expires_at: Option<i64>,
    pub(super) count: u32,
    pub(super) properties: Properties,
    pub(super) state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Ready,
    Assigned(Unit),
    Locked {
        token: usize,
        until: i64,
        consumer: u64,
    },
}

impl Store {
    pub(super) fn letter(&mut self, number: u64) -> &mut Letter {
        self.letters
            .iter_mut()
            .find(|letter| letter.number == number)
            .unwrap()
    }

    pub(super) fn assigned_to(&self, id: u64) -> Vec<u64> {
        let own = |l: &&Letter| matches!(l.state, State::Assigned(unit) if unit.consumer == id);
        self.letters
            .iter()
            .filter(own)
            .map(|letter| letter.number)
            .collect()
    }

    pub(super) fn is_active(&self) -> bool {
        let assigned = |letter: &Letter| matches!(letter.state, State::Assigned(_));
        !self.waiting.is_empty() || self.letters.iter().any(assigned)
    }
}
