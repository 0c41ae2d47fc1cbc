//! Messages are in the dead-letter queue, or in the transfer dead-letter queue when that is asked.

use super::{
    AssertionFailed, Expectation, ProbeError, Report,
    failure::state_of,
    found, hint,
    selector::{self, Selector},
};
use crate::{matcher::Text, received_message::ReceivedMessage, text};

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

    async fn look(&self) -> Result<usize, ProbeError> {
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

/// What a dead letter is to be like.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) reason: Option<Text>,
    pub(super) description: Option<Text>,
    pub(super) which: Selector,
}

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

    /// Counts the messages that are like it.
    pub(super) fn among(&self, messages: &[ReceivedMessage]) -> usize {
        let matching = messages.iter().filter(|message| self.matches(message));
        matching.count()
    }

    /// Names what is wanted: ` with reason "Rejected"`.
    pub(super) fn sentence(&self) -> String {
        let reason = self.reason.as_ref().map(|text| format!("reason {text}"));
        let description = self.description.as_ref();
        let description = description.map(|text| format!("description {text}"));
        let own = [reason, description].into_iter().flatten();
        selector::sentence(&own.chain(self.which.parts()).collect::<Vec<_>>())
    }

    /// Shows the reason of a dead letter and where it differs: `: reason "Rejected" — differs`.
    pub(super) fn difference(&self, message: &ReceivedMessage) -> String {
        let differs = |wanted: &Option<Text>, found: Option<&str>| {
            wanted.as_ref().is_some_and(|text| !text.matches(found))
        };
        let mark = |differs: bool| if differs { " — differs" } else { "" };
        let reason = message.dead_letter_reason();
        let description = message.dead_letter_error_description();
        let mut text = format!(
            ": {}{}",
            reason.map_or_else(
                || "no reason".to_owned(),
                |reason| format!("reason {reason:?}")
            ),
            mark(differs(&self.reason, reason))
        );
        if self.description.is_some() {
            text += &format!(
                ", {}{}",
                description.map_or_else(
                    || "no description".to_owned(),
                    |description| format!("description {description:?}")
                ),
                mark(differs(&self.description, description))
            );
        }
        for difference in self.which.differences(message) {
            text += &format!(", {difference}");
        }
        text
    }

    fn matches(&self, message: &ReceivedMessage) -> bool {
        let fits = |wanted: &Option<Text>, found: Option<&str>| {
            wanted.as_ref().is_none_or(|text| text.matches(found))
        };
        fits(&self.reason, message.dead_letter_reason())
            && fits(&self.description, message.dead_letter_error_description())
            && self.which.matches(message)
    }
}
