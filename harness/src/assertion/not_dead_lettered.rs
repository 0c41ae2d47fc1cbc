//! No messages are in the dead-letter queue, or in the transfer dead-letter queue when that is asked.

use std::time::Duration;

use super::{
    AssertionFailed, Expectation, ProbeError, Report, WITHIN, dead_lettered::Wanted,
    failure::state_of, known, which::about_messages,
};
use crate::{mailbox::Mailbox, matcher::Text, peeked::PeekedMessage};

/// Expects no messages in the dead-letter queue once the bus is at rest.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct NotDeadLettered {
    mailbox: Mailbox,
    wanted: Wanted,
    within: Duration,
}

about_messages!(NotDeadLettered, wanted.which);

impl NotDeadLettered {
    /// Expects none of any kind.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            mailbox: mailbox.as_ref().clone(),
            wanted: Wanted::default(),
            within: WITHIN,
        }
    }

    /// Expects none with this reason; others may be there.
    pub fn reason(mut self, reason: impl Into<Text>) -> Self {
        self.wanted.reason = Some(reason.into());
        self
    }

    /// Expects none with this description; others may be there.
    pub fn description(mut self, description: impl Into<Text>) -> Self {
        self.wanted.description = Some(description.into());
        self
    }

    /// Waits so long for the bus to come to rest, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    async fn look(&self) -> Result<usize, ProbeError> {
        known(&self.mailbox).await?;
        self.mailbox.settled(self.within).await?;
        let dead = self.mailbox.graves().try_peek().await?;
        Ok(self.wanted.among(&dead))
    }
}

impl Expectation for NotDeadLettered {
    fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        let found = match self.look().await {
            Ok(0) => return Ok(()),
            Ok(found) => found,
            Err(error) => return Err(AssertionFailed::unchecked(&error)),
        };
        let mut report = Report::of(&self.mailbox).await;
        report.shows_dead = true;
        let expected = format!(
            "expected no message dead-lettered{}, found {found}",
            self.wanted.sentence()
        );
        let remark = |message: &PeekedMessage, is_dead: bool| match is_dead {
            true => Wanted::default().difference(message),
            false => state_of(&report, message),
        };
        Err(report.failure(&expected, &remark, None))
    }
}
