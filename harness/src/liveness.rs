//! Why an emulator does not answer.

use std::{
    io,
    time::{Duration, Instant},
};

use crate::{output::described, process::ChildView};

/// How long an emulator that closed its connections may take to be seen as ended.
pub(crate) const DYING_WITHIN: Duration = Duration::from_secs(10);
/// How often is looked.
const GLANCE: Duration = Duration::from_millis(5);

/// Knows whether a silent emulator has ended, without keeping it alive.
#[derive(Debug, Clone, Default)]
pub(crate) enum Liveness {
    /// It lives as long as the test's process does.
    #[default]
    InProcess,
    Child(ChildView),
    #[cfg(feature = "container")]
    Container(crate::output::Output),
}

impl Liveness {
    /// Puts the end of the emulator in place of a mere refusal to connect.
    pub(crate) async fn explain(&self, error: io::Error) -> io::Error {
        if matches!(self, Self::InProcess) {
            return error;
        }
        // One that dies closes its sockets a moment before its end is known.
        until(DYING_WITHIN, || self.end().is_some()).await;
        self.end().map_or(error, io::Error::other)
    }

    fn end(&self) -> Option<String> {
        match self {
            Self::InProcess => None,
            Self::Child(child) => child.end().map(|status| {
                let output = described(&child.last_output());
                format!("the emulator process has ended ({status}); {output}")
            }),
            #[cfg(feature = "container")]
            Self::Container(output) => output.is_complete().then(|| {
                let output = described(&output.text());
                format!("the emulator's container has ended; {output}")
            }),
        }
    }
}

/// Waits until something is so, or for so long. To be awaited where time is real.
pub(crate) async fn until(within: Duration, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() && started.elapsed() < within {
        tokio::time::sleep(GLANCE).await;
    }
}
