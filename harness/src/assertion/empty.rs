//! A queue holds nothing.

use std::time::Duration;

use super::{AssertionFailed, Expectation, Looked, ProbeError, Report, WITHIN, known, poll};
use crate::{
    mailbox::{Counts, Mailbox},
    text,
};

/// Expects a queue, or a dead-letter queue, to hold no message of whatever state.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Empty {
    mailbox: Mailbox,
    within: Duration,
}

impl Empty {
    /// Expects it of this queue.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            mailbox: mailbox.as_ref().clone(),
            within: WITHIN,
        }
    }

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    async fn look(&self) -> Result<Counts, ProbeError> {
        Ok(self.mailbox.try_counts().await?)
    }
}

impl Expectation for Empty {
    fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.mailbox).await?;
            let is_empty = |counts: &Counts| counts.present() == 0;
            poll(self.within, || self.look(), is_empty).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(counts)) => {
                let report = Report::of(&self.mailbox).await;
                let found = text::count(usize::try_from(counts.present()).unwrap_or(0), "message");
                let within = text::seconds(self.within);
                let expected = format!("expected to be empty, found {found} after {within}");
                Err(report.plain_failure(&expected))
            }
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}
