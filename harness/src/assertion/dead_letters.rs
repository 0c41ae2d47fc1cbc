//! Messages are in the dead-letter queue, or in the transfer dead-letter queue when that is asked.

use std::time::Duration;

use super::{
    AssertionFailed, Looked, ProbeError, Report,
    expectation::Expectation,
    failure::state_of,
    hint, known, poll,
    selector::{self, Selector},
};
use crate::{clients::SubQueueClient, matcher::Text, received_message::ReceivedMessage, text};

/// Expects messages in the dead-letter queue, or none.
#[derive(Debug)]
pub(super) struct DeadLetters {
    client: SubQueueClient,
    wanted: Wanted,
    count: Option<usize>,
    within: Duration,
}

impl DeadLetters {
    pub(super) fn new<K>(expectation: Expectation<K>) -> Self {
        Self {
            client: expectation.client,
            wanted: Wanted {
                reason: expectation.reason,
                description: expectation.description,
                which: expectation.which,
            },
            count: expectation.number.exact(),
            within: expectation.within,
        }
    }

    async fn look(&self) -> Result<usize, ProbeError> {
        let dead = self.client.dead_letter_queue().try_peek().await?;
        Ok(self.wanted.among(&dead))
    }

    fn is_expected(&self, found: usize) -> bool {
        self.count.map_or(found > 0, |count| found == count)
    }

    async fn failure(&self, found: usize) -> AssertionFailed {
        let mut report = Report::of(&self.client).await.about(&self.wanted.which);
        report.shows_dead = true;
        let found = match found {
            0 => "none".to_owned(),
            some => some.to_string(),
        };
        let expected = format!(
            "expected {} dead-lettered{}, found {found} within {}",
            text::count(self.count.unwrap_or(1), "message"),
            self.wanted.sentence(),
            text::seconds(self.within)
        );
        let remark = |message: &ReceivedMessage, is_dead: bool| match is_dead {
            true => self.wanted.difference(message),
            false => state_of(&report, message),
        };
        let hint = hint::dead_lettering(&report, &self.wanted);
        report.failure(&expected, &remark, hint)
    }

    pub(super) async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.client).await?;
            let expected = |found: &usize| self.is_expected(*found);
            poll(self.within, || self.look(), expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => Err(self.failure(found).await),
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }

    /// Expects none once the namespace is idle.
    pub(super) async fn check_none(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.client).await?;
            self.client.wait_idle(self.within).await?;
            self.look().await
        };
        let found = match looked.await {
            Ok(0) => return Ok(()),
            Ok(found) => found,
            Err(error) => return Err(AssertionFailed::unchecked(&error)),
        };
        let mut report = Report::of(&self.client).await.about(&self.wanted.which);
        report.shows_dead = true;
        let expected = format!(
            "expected no message dead-lettered{}, found {found}",
            self.wanted.sentence()
        );
        let remark = |message: &ReceivedMessage, is_dead: bool| match is_dead {
            true => Wanted::default().difference(message),
            false => state_of(&report, message),
        };
        Err(report.failure(&expected, &remark, None))
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
