//! Random histories: the real queues must behave like naive ones.
//!
//! Every step is applied to both. After each, the results, the events and their times, every message in every store, the
//! counts and the next deadline are compared, the real queues check their own invariants, and a ledger checks the events by
//! itself. State that a step cannot have changed is not compared again.
//!
//! A history is drawn from a number; a failing one prints that number and the few steps that are needed.
//!
//! * `MODEL_SEED=17 cargo test -p servicebus-broker --test model` runs history 17 alone;
//! * `MODEL_HISTORIES=1000000 cargo test -p servicebus-broker --test model` runs a million instead of 20,000;
//! * `MODEL_FIRST=1000000` begins with other ones.

mod compare;
mod determinism;
mod draw;
mod event;
mod history;
mod ledger;
mod names;
mod reference;
mod shrink;
mod world;

use shrink::{check_all, setting};

/// When every history begins.
const START: i64 = 1_700_000_000_000;

/// Steps of a history.
const STEPS: usize = 200;

#[test]
fn entities_behave_like_the_reference_model() {
    if let Some(seed) = setting("MODEL_SEED") {
        return check_all(seed, 1, STEPS);
    }
    let count = setting("MODEL_HISTORIES").unwrap_or(20_000);
    check_all(setting("MODEL_FIRST").unwrap_or(0), count, STEPS);
}
