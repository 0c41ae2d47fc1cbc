//! The clients' knowledge: which messages were accepted, and which are done.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The ledger of all clients.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    ledger_state: Mutex<LedgerState>,
}

#[derive(Debug, Default)]
struct LedgerState {
    /// Accepted.
    sent: BTreeSet<String>,
    /// In flight when the connection was dropped.
    maybe_sent: BTreeSet<String>,
    /// Confirmed to be removed.
    completed: BTreeSet<String>,
    /// Removed, if the settlement arrived.
    maybe_completed: BTreeSet<String>,
}

impl Ledger {
    fn ledger_state(&self) -> MutexGuard<'_, LedgerState> {
        self.ledger_state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn sent(&self, id: &str) {
        assert!(
            self.ledger_state().sent.insert(id.to_owned()),
            "{id} was sent twice"
        );
    }

    pub(super) fn maybe_sent(&self, id: &str) {
        self.ledger_state().maybe_sent.insert(id.to_owned());
    }

    /// Confirmed, which can happen once.
    pub(super) fn completed(&self, id: &str) {
        let mut ledger_state = self.ledger_state();
        assert!(
            ledger_state.completed.insert(id.to_owned()),
            "{id} was completed twice"
        );
    }

    pub(super) fn maybe_completed(&self, id: &str) {
        self.ledger_state().maybe_completed.insert(id.to_owned());
    }

    /// Every message is completed, ready or dead, and only one of these.
    pub(super) fn balance(&self, ready: &[String], dead: &[String], seed: u64) {
        let ledger_state = self.ledger_state();
        let mut left = BTreeSet::new();
        for id in ready.iter().chain(dead) {
            assert!(
                left.insert(id.clone()),
                "{id} is there twice, with seed {seed}"
            );
            let known = ledger_state.sent.contains(id) || ledger_state.maybe_sent.contains(id);
            assert!(known, "no client has sent {id}, with seed {seed}");
            assert!(
                !ledger_state.completed.contains(id),
                "{id} is back, with seed {seed}"
            );
        }
        for id in &ledger_state.sent {
            let gone =
                ledger_state.completed.contains(id) || ledger_state.maybe_completed.contains(id);
            assert!(gone || left.contains(id), "{id} is lost, with seed {seed}");
        }
        // A simulation in which nothing happened proves nothing.
        let figures = (
            ledger_state.sent.len(),
            ledger_state.completed.len(),
            left.len(),
        );
        assert!(
            figures.0 > 100 && figures.1 > 10 && figures.2 > 10,
            "{figures:?}, with seed {seed}"
        );
    }
}
