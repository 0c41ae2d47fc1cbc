//! Collects the panics on the threads of runs instead of printing them.

use std::{
    cell::RefCell,
    panic::{self, PanicHookInfo},
    sync::Once,
};

use servicebus_explore::Failure;

thread_local! {
    static COLLECTED: RefCell<Option<Vec<Failure>>> = const { RefCell::new(None) };
}

/// Collects the panics of this thread from now on.
pub(crate) fn collect() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !record(info) {
                usual(info);
            }
        }));
    });
    COLLECTED.set(Some(Vec::new()));
}

/// Returns and clears the collected panics, oldest first.
pub(crate) fn take() -> Vec<Failure> {
    COLLECTED
        .with_borrow_mut(|collected| collected.as_mut().map(std::mem::take).unwrap_or_default())
}

fn record(info: &PanicHookInfo<'_>) -> bool {
    COLLECTED.with_borrow_mut(|collected| {
        let Some(collected) = collected else {
            return false;
        };
        collected.push(Failure {
            message: info
                .payload_as_str()
                .unwrap_or("a panic without a text")
                .to_owned(),
            location: info.location().map(ToString::to_string),
        });
        true
    })
}
