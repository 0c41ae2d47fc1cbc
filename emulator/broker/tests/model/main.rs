//! Random histories: the real queue and a naive one must tell the same story.
//!
//! Every step is done to both. After each, the answers, what happened and when, every message in both stores,
//! the counts and the next deadline are compared, the real queue checks its own invariants, and a ledger
//! draws its own conclusions from the facts. `PROPTEST_CASES` asks for more histories.

mod assertions;
mod determinism;
mod names;
mod reference;
mod system;
mod transition;

use proptest::prelude::*;
use servicebus_broker::{Effects, Facts, ReceiveMode};

use assertions::Ledger;
use names::Names;
use reference::Reference;
use system::System;
use transition::{Rules, STORES, Step};

/// When every history begins.
const START: i64 = 1_700_000_000_000;

/// However many there are.
const ALL: usize = usize::MAX;

fn config() -> ProptestConfig {
    ProptestConfig {
        // What fails is printed with its steps; files of seeds would only lie around.
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_queue_does_what_the_reference_does((rules, transitions) in transition::history(100)) {
        let mut pair = Pair::new(&rules);
        for transition in &transitions {
            if let Some(step) = pair.names.resolve(transition, &pair.system) {
                pair.take(&step);
            }
        }
        pair.receive_what_is_left();
    }
}

/// The real queue and the reference, side by side.
struct Pair {
    names: Names,
    reference: Reference,
    system: System,
    ledger: Ledger,
}

impl Pair {
    fn new(rules: &Rules) -> Self {
        Self {
            names: Names::default(),
            reference: Reference::new(rules.clone(), START),
            system: System::new(rules, START, 1),
            ledger: Ledger::new(rules),
        }
    }

    /// Does one thing to both and compares everything that can be seen of them.
    fn take(&mut self, step: &Step) {
        let answer = self.system.apply(step);
        assert_eq!(answer, self.reference.apply(step), "answers to {step:?}");
        self.names.learn(step, &answer);
        self.compare_words(step);
        assert_eq!(
            self.system.deadline(),
            self.reference.deadline(),
            "deadlines after {step:?}"
        );
        self.system.mailbox().check_invariants();
        self.ledger.check(step, &self.system, &self.names.open);
        self.system.facts = Facts::new();
        self.system.effects = Effects::new();
        if !matches!(step, Step::Advance(_) | Step::Open(..)) {
            self.compare_stores(step);
        }
    }

    fn compare_words(&mut self, step: &Step) {
        let expected = std::mem::take(&mut self.reference.log);
        assert_eq!(self.system.words(), expected, "what {step:?} caused");
    }

    /// Looking lets happen what is due, so there must be nothing due any more.
    fn compare_stores(&mut self, step: &Step) {
        for kind in STORES {
            let seen = self.system.browse(kind, 0, ALL);
            assert_eq!(
                seen,
                self.reference.browse(kind, 0, ALL),
                "{kind:?} after {step:?}"
            );
            let (count, locked, assigned) = self.reference.counts(kind);
            let counts = self.system.mailbox().counts(kind);
            assert_eq!(
                (counts.active, counts.locked),
                (count, locked),
                "after {step:?}"
            );
            for (id, expected) in assigned {
                assert_eq!(
                    self.system.assigned(kind, id),
                    expected,
                    "to {id} after {step:?}"
                );
            }
        }
        assert!(
            self.system.facts.is_empty(),
            "{step:?} left something undone"
        );
        assert!(
            self.system.effects.is_empty(),
            "{step:?} left somebody unserved"
        );
    }

    /// The order in which messages come is compared to the last one.
    fn receive_what_is_left(&mut self) {
        for (kind, id) in std::mem::take(&mut self.names.open) {
            self.take(&Step::Close(kind, id));
        }
        for (kind, id) in STORES.into_iter().zip([u64::MAX - 1, u64::MAX]) {
            self.names.open.push((kind, id));
            self.take(&Step::Open(kind, id, ReceiveMode::ReceiveAndDelete));
            self.take(&Step::Credit(kind, id, 10_000));
            self.take(&Step::Take(kind, id, ALL));
        }
    }
}
