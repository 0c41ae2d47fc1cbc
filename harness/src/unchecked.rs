//! Assertions that a namespace of the service cannot answer, where the tests are to go on without them.

use std::env;

use parking_lot::Mutex;

/// The environment variable that lets tests go on where an assertion cannot be checked: `skip` does, anything else does not.
pub const UNCHECKED_VARIABLE: &str = "SERVICEBUS_HARNESS_UNCHECKED";

/// The assertions that were skipped; told when the namespace ends.
#[derive(Debug, Default)]
pub(crate) struct Unchecked(Mutex<Vec<String>>);

impl Unchecked {
    /// Skips an assertion, where that was asked for.
    pub(crate) fn skips(&self, assertion: &str, why: &str) -> bool {
        let skips = env::var_os(UNCHECKED_VARIABLE).is_some_and(|value| value == "skip");
        if skips {
            let why = why.lines().next().unwrap_or_default();
            self.0.lock().push(format!("{assertion}: {why}"));
        }
        skips
    }
}

impl Drop for Unchecked {
    fn drop(&mut self) {
        let skipped = self.0.get_mut();
        if skipped.is_empty() {
            return;
        }
        let lines = skipped.iter().map(|line| format!("\n  {line}"));
        let count = crate::text::count(skipped.len(), "assertion");
        eprintln!(
            "{UNCHECKED_VARIABLE}: {count} skipped{}",
            String::from_iter(lines)
        );
    }
}
