//! The last output of an emulator that runs elsewhere.

use std::{collections::VecDeque, sync::Arc};

use parking_lot::{Mutex, MutexGuard};

/// How many lines are kept.
const KEPT_LINES: usize = 40;

/// The last lines that an emulator wrote to standard error; every clone is the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Output(Arc<Mutex<Lines>>);

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<String>,
    complete: bool,
}

impl Output {
    pub(crate) fn push(&self, line: String) {
        let mut lines = self.lines();
        if lines.kept.len() == KEPT_LINES {
            lines.kept.pop_front();
        }
        lines.kept.push_back(line);
    }

    /// Nothing more will come.
    pub(crate) fn complete(&self) {
        self.lines().complete = true;
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.lines().complete
    }

    pub(crate) fn text(&self) -> String {
        Vec::from_iter(self.lines().kept.iter().cloned()).join("\n")
    }

    fn lines(&self) -> MutexGuard<'_, Lines> {
        self.0.lock()
    }
}

/// Introduces the last output, or says that there was none.
pub(crate) fn described(output: &str) -> String {
    match output {
        "" => "it wrote nothing to standard error".to_owned(),
        output => format!("its last output was:\n{output}"),
    }
}
