//! The same inputs give the same outputs, byte for byte; and what should not matter does not.

use proptest::prelude::*;
use servicebus_broker::LockToken;

use crate::names::Names;
use crate::system::System;
use crate::transition::{self, Answer, Rules, Step, Transition};
use crate::{START, config};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_same_seed_tells_the_same_story((rules, transitions) in transition::history(60)) {
        let steps = resolve(&rules, &transitions);
        let [one, other] = [0, 0].map(|_| Story::of(&rules, &steps, 42, Timer::Late));
        prop_assert_eq!(one, other);
    }

    #[test]
    fn tokens_decide_nothing((rules, transitions) in transition::history(60)) {
        let steps = resolve(&rules, &transitions);
        let [one, other] = [1, 2].map(|seed| Story::of(&rules, &steps, seed, Timer::Late));
        prop_assert!(one.tokens != other.tokens || one.tokens.is_empty());
        prop_assert_eq!((one.answers, one.rest), (other.answers, other.rest));
    }

    #[test]
    fn a_late_timer_changes_nothing((rules, transitions) in transition::history(60)) {
        let steps = resolve(&rules, &transitions);
        let [late, punctual] = [Timer::Late, Timer::Punctual]
            .map(|timer| Story::of(&rules, &steps, 1, timer));
        prop_assert_eq!(late, punctual);
    }
}

/// When the timer fires that a shell would set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timer {
    /// Not before the next operation comes.
    Late,
    /// At every deadline.
    Punctual,
}

/// Everything that came out.
#[derive(Debug, PartialEq, Eq)]
struct Story {
    answers: Vec<Answer>,
    /// Facts, and effects in order.
    rest: String,
    tokens: Vec<LockToken>,
    wire: Vec<u8>,
}

impl Story {
    fn of(rules: &Rules, steps: &[Step], seed: u64, timer: Timer) -> Self {
        let mut system = System::new(rules, START, seed);
        let mut answers = Vec::new();
        for step in steps {
            if let &Step::Advance(to) = step
                && timer == Timer::Punctual
            {
                while let Some(due) = system.deadline().filter(|&due| due <= to) {
                    system.apply(&Step::Advance(due));
                    system.apply(&Step::Timeout);
                }
            }
            answers.push(system.apply(step));
        }
        system.apply(&Step::Timeout);
        Self {
            answers,
            rest: format!("{:#?} {:?}", system.words(), system.effects),
            tokens: system.tokens,
            wire: system.wire,
        }
    }
}

fn resolve(rules: &Rules, transitions: &[Transition]) -> Vec<Step> {
    let mut names = Names::default();
    let mut system = System::new(rules, START, 0);
    let mut steps = Vec::new();
    for transition in transitions {
        if let Some(step) = names.resolve(transition, &system) {
            let answer = system.apply(&step);
            names.learn(&step, &answer);
            steps.push(step);
        }
    }
    steps
}
