//! Messages are in the dead-letter queue, or in the transfer dead-letter queue when that is asked.

use super::{
    AssertionFailed, Expectation, Report, failure::state_of, found, hint, selector::Wanted,
};
use crate::{error::Error, received_message::ReceivedMessage, text};

impl Wanted {
    /// What was said of dead letters.
    pub(super) fn of<K>(expectation: Expectation<K>) -> Expectation<Self> {
        let wanted = Self {
            reason: expectation.reason.clone(),
            description: expectation.description.clone(),
            which: expectation.which.clone(),
        };
        expectation.with_kind(|_| wanted)
    }
}

impl Expectation<Wanted> {
    pub(super) async fn check(self) -> Result<(), AssertionFailed> {
        let is_expected = |found: &usize| self.number.is(*found as u64);
        self.expect(|| self.look(), is_expected, |found| self.failure(found))
            .await
    }

    /// Expects none once the namespace is idle.
    pub(super) async fn check_none(self) -> Result<(), AssertionFailed> {
        let failure = async |found| {
            let wanted = self.kind.sentence();
            let expected = format!("expected no message dead-lettered{wanted}, found {found}");
            self.report().await.hinted_failure(&expected, None)
        };
        self.expect_none(self.look(), failure).await
    }

    async fn look(&self) -> Result<usize, Error> {
        let dead = self.client.dead_letter_queue().try_peek().await?;
        Ok(self.kind.among(&dead))
    }

    async fn report(&self) -> Report {
        let report = Report::of(&self.client).await.about(&self.kind.which);
        Report {
            shows_dead: true,
            ..report
        }
    }

    async fn failure(&self, number: usize) -> AssertionFailed {
        let report = self.report().await;
        let expected = format!(
            "expected {} dead-lettered{}, found {} within {}",
            text::count(self.number.exact().unwrap_or(1), "message"),
            self.kind.sentence(),
            found(number as u64),
            text::seconds(self.within)
        );
        let remark = |message: &ReceivedMessage, is_dead: bool| match is_dead {
            true => self.kind.difference(message),
            false => state_of(&report, message),
        };
        let hint = hint::dead_lettering(&report, &self.kind);
        report.failure(&expected, &remark, hint)
    }
}
