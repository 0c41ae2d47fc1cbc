//! Something never happened to messages.
//!
//! What has happened is never taken back, so that one look can refute it. To confirm it the bus must have come to rest
//! first: nothing is due, nothing is on its way, and nobody holds a message with which it could still be done.

use super::{
    AssertionFailed, ProbeError, Report, known,
    recorded::{Recorded, undecided},
};
use crate::timeline::Timeline;

impl Recorded {
    pub(super) async fn check_never(self) -> Result<(), AssertionFailed> {
        let timeline = match self.refuted().await {
            Ok(None) => return Ok(()),
            Ok(Some(timeline)) => timeline,
            Err(error) => return Err(AssertionFailed::unchecked(&error)),
        };
        let found = self.found(&timeline);
        let mut sentence = format!(
            "expected no {}{}, found {found}",
            self.verb.one,
            self.which()
        );
        if found == 0 {
            sentence += &undecided(&timeline);
        }
        let report = Report::of(&self.mailbox).await;
        let report = self.showing(report, &timeline, "as ruled out");
        Err(report.hinted_failure(&sentence, None))
    }

    /// Returns the record that speaks against it, if there is one.
    async fn refuted(&self) -> Result<Option<Timeline>, ProbeError> {
        known(&self.mailbox).await?;
        let speaks_against =
            |timeline: &Timeline| self.found(timeline) > 0 || !self.is_exact(timeline);
        let so_far = self.look().await?;
        if speaks_against(&so_far) {
            return Ok(Some(so_far));
        }
        self.mailbox.settled(self.within).await?;
        Ok(Some(self.look().await?).filter(speaks_against))
    }
}

/// Lets assertions of what never happened be checked, and gives them what they share.
macro_rules! by_absence {
    ($expectation:ident) => {
        $crate::assertion::which::about_messages!($expectation, recorded.which);

        impl $crate::assertion::Expectation for $expectation {
            fn mailbox(&self) -> &$crate::mailbox::Mailbox {
                &self.recorded.mailbox
            }

            async fn check(self) -> Result<(), $crate::assertion::AssertionFailed> {
                self.recorded.check_never().await
            }
        }
    };
    // The whole of an assertion that is the opposite of another.
    ($(#[$doc:meta])* $expectation:ident, $verb:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone)]
        #[must_use = "an assertion asserts nothing before it is awaited"]
        pub struct $expectation {
            recorded: Recorded,
        }

        by_absence!($expectation);

        impl $expectation {
            /// Expects none of any kind.
            pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
                Self {
                    recorded: Recorded::new(mailbox.as_ref(), &$verb),
                }
            }

            /// Waits so long for the bus to come to rest, in real time.
            pub fn within(mut self, within: Duration) -> Self {
                self.recorded.within = within;
                self
            }
        }
    };
}

pub(super) use by_absence;
