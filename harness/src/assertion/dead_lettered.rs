//! Messages are in the dead-letter queue, or in the transfer dead-letter queue when that is asked.

use std::time::Duration;

use super::{
    AssertionFailed, Expectation, Looked, ProbeError, Report, WITHIN,
    failure::state_of,
    hint, known, poll,
    which::{self, Which, about_messages},
};
use crate::{mailbox::Mailbox, matcher::Text, peeked::PeekedMessage, text};

/// Expects messages in the dead-letter queue; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct DeadLettered {
    mailbox: Mailbox,
    wanted: Wanted,
    count: Option<usize>,
    within: Duration,
}

about_messages!(DeadLettered, wanted.which);

impl DeadLettered {
    /// Expects a message of any kind.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            mailbox: mailbox.as_ref().clone(),
            wanted: Wanted::default(),
            count: None,
            within: WITHIN,
        }
    }

    /// Expects this reason.
    pub fn reason(mut self, reason: impl Into<Text>) -> Self {
        self.wanted.reason = Some(reason.into());
        self
    }

    /// Expects this description.
    pub fn description(mut self, description: impl Into<Text>) -> Self {
        self.wanted.description = Some(description.into());
        self
    }

    /// Expects exactly so many messages.
    pub fn count(mut self, count: usize) -> Self {
        self.count = Some(count);
        self
    }

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    async fn look(&self) -> Result<usize, ProbeError> {
        let dead = self.mailbox.graves().try_peek().await?;
        Ok(self.wanted.among(&dead))
    }

    fn is_expected(&self, found: usize) -> bool {
        self.count.map_or(found > 0, |count| found == count)
    }

    async fn failure(&self, found: usize) -> AssertionFailed {
        let mut report = Report::of(&self.mailbox).await;
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
        let remark = |message: &PeekedMessage, is_dead: bool| match is_dead {
            true => self.wanted.difference(message),
            false => state_of(&report, message),
        };
        let hint = hint::dead_lettering(&report, &self.wanted);
        report.failure(&expected, &remark, hint)
    }
}

impl Expectation for DeadLettered {
    fn mailbox(&self) -> &Mailbox {
        &self.mailbox
    }

    async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.mailbox).await?;
            let expected = |found: &usize| self.is_expected(*found);
            poll(self.within, || self.look(), expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(found)) => Err(self.failure(found).await),
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}

/// What a dead letter is to be like.
#[derive(Debug, Clone, Default)]
pub(super) struct Wanted {
    pub(super) reason: Option<Text>,
    pub(super) description: Option<Text>,
    pub(super) which: Which,
}

impl Wanted {
    /// Counts the messages that are like it.
    pub(super) fn among(&self, messages: &[PeekedMessage]) -> usize {
        let matching = messages.iter().filter(|message| self.matches(message));
        matching.count()
    }

    /// Names what is wanted: ` with reason "Rejected"`.
    pub(super) fn sentence(&self) -> String {
        let reason = self.reason.as_ref().map(|text| format!("reason {text}"));
        let description = self.description.as_ref();
        let description = description.map(|text| format!("description {text}"));
        let own = [reason, description].into_iter().flatten();
        which::sentence(&own.chain(self.which.parts()).collect::<Vec<_>>())
    }

    /// Shows why a dead letter lies there and where it differs: `: reason "Rejected" — differs`.
    pub(super) fn difference(&self, message: &PeekedMessage) -> String {
        let differs = |wanted: &Option<Text>, found: Option<&str>| {
            wanted.as_ref().is_some_and(|text| !text.matches(found))
        };
        let mark = |differs: bool| if differs { " — differs" } else { "" };
        let reason = message.dead_letter_reason();
        let description = message.dead_letter_description();
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

    fn matches(&self, message: &PeekedMessage) -> bool {
        let fits = |wanted: &Option<Text>, found: Option<&str>| {
            wanted.as_ref().is_none_or(|text| text.matches(found))
        };
        fits(&self.reason, message.dead_letter_reason())
            && fits(&self.description, message.dead_letter_description())
            && self.which.matches(message)
    }
}
