//! Runs many histories on all processors; shrinks a failing one to as few steps as still fail.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::compare::{Pair, run};
use crate::draw::history;
use crate::history::{Rules, Transition};

/// A number from the environment.
pub(crate) fn setting(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} must be a number, is '{text}'")),
    )
}

thread_local! {
    /// Whether panics of this thread are not printed: a failure is printed once, after it was shrunk.
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

fn be_quiet_where_asked() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                hook(panic);
            }
        }));
    });
}

/// Runs the histories of these seeds; panics with the lowest failing one, after it was shrunk.
pub(crate) fn check_all(first: u64, count: u64, length: usize) {
    be_quiet_where_asked();
    let next = AtomicU64::new(first);
    let failed = AtomicU64::new(u64::MAX);
    let end = first + count;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                QUIET.set(true);
                while failed.load(Ordering::Relaxed) == u64::MAX {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= end {
                        return;
                    }
                    let (rules, transitions) = history(seed, length);
                    if failure(&rules, &transitions).is_some() {
                        failed.fetch_min(seed, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner();
    if failed < u64::MAX {
        QUIET.set(true);
        let report = report(failed, length);
        QUIET.set(false);
        panic!("{report}");
    }
}

fn report(seed: u64, length: usize) -> String {
    let (rules, transitions) = history(seed, length);
    let (shrunk, why) = shrink(&rules, transitions);
    let mut pair = Pair::new(&rules);
    pair.steps = Some(Vec::new());
    let _ = catch_unwind(AssertUnwindSafe(|| {
        shrunk.iter().for_each(|transition| pair.follow(transition));
    }));
    let steps = pair.steps.unwrap_or_default();
    let steps: Vec<String> = steps.iter().map(|step| format!("  {step:?}")).collect();
    format!(
        "history {seed} fails; {} steps of it are enough, under {rules:#?}:\n{}\n{why}\n\nTo run it alone: \
         MODEL_SEED={seed} cargo test -p servicebus-broker --test model",
        steps.len(),
        steps.join("\n"),
    )
}

/// Removes transitions, large pieces first, until every single one is needed.
fn shrink(rules: &Rules, mut transitions: Vec<Transition>) -> (Vec<Transition>, String) {
    let mut why = failure(rules, &transitions).unwrap_or_else(|| "it fails only at times".into());
    let mut piece = transitions.len();
    while piece > 0 {
        let before = transitions.len();
        let mut at = 0;
        while at < transitions.len() {
            let mut fewer = transitions.clone();
            fewer.drain(at..(at + piece).min(transitions.len()));
            match failure(rules, &fewer) {
                Some(reason) => (transitions, why) = (fewer, reason),
                None => at += piece,
            }
        }
        // A needed one may not be needed once later ones are gone.
        if piece > 1 || transitions.len() == before {
            piece /= 2;
        }
    }
    for at in 0..transitions.len() {
        while let Some(fewer) = with_smaller_send(&transitions, at) {
            let Some(reason) = failure(rules, &fewer) else {
                break;
            };
            (transitions, why) = (fewer, reason);
        }
    }
    (transitions, why)
}

/// The same with one message less to send.
fn with_smaller_send(transitions: &[Transition], at: usize) -> Option<Vec<Transition>> {
    let mut fewer = transitions.to_vec();
    if let Transition::Send(_, drafts, _) = &mut fewer[at]
        && drafts.len() > 1
    {
        drafts.pop();
        return Some(fewer);
    }
    None
}

fn failure(rules: &Rules, transitions: &[Transition]) -> Option<String> {
    let panic = catch_unwind(AssertUnwindSafe(|| run(rules, transitions))).err()?;
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
    Some(text.unwrap_or_else(|| "a panic without words".into()))
}
