//! Messages were settled as done.
//!
//! Nothing in a queue shows that a message was completed, so this asks the emulator's record: its counters,
//! which are exact, or its events when one message is meant, which may have been dropped.

use std::time::Duration;

use super::{AssertionFailed, Expectation, Looked, ProbeError, Report, WITHIN, known, poll};
use crate::{
    mailbox::Mailbox,
    matcher::Text,
    text,
    timeline::{EventKind, Timeline},
};

/// Expects messages to have been completed; one at least, or exactly as many as said.
#[derive(Debug, Clone)]
#[must_use = "an assertion asserts nothing before it is awaited"]
pub struct Completed {
    pub(super) mailbox: Mailbox,
    message_id: Option<Text>,
    count: Option<u64>,
    within: Duration,
}

impl Completed {
    /// Expects a message of any kind.
    pub fn of(mailbox: &impl AsRef<Mailbox>) -> Self {
        Self {
            mailbox: mailbox.as_ref().clone(),
            message_id: None,
            count: None,
            within: WITHIN,
        }
    }

    /// Expects this message.
    pub fn message_id(mut self, id: impl Into<Text>) -> Self {
        self.message_id = Some(id.into());
        self
    }

    /// Expects exactly so many messages.
    pub fn count(mut self, count: u64) -> Self {
        self.count = Some(count);
        self
    }

    /// Waits so long, in real time.
    pub fn within(mut self, within: Duration) -> Self {
        self.within = within;
        self
    }

    async fn look(&self) -> Result<Timeline, ProbeError> {
        Ok(self.mailbox.try_timeline().await?)
    }

    fn found(&self, timeline: &Timeline) -> u64 {
        let Some(id) = &self.message_id else {
            return timeline.count(&EventKind::Completed);
        };
        let completed = timeline.events().iter().filter(|event| {
            event.kind == EventKind::Completed && id.matches(event.message_id.as_deref())
        });
        completed.count() as u64
    }

    fn is_expected(&self, timeline: &Timeline) -> bool {
        let found = self.found(timeline);
        self.count.map_or(found > 0, |count| found == count)
    }

    fn sentence(&self, timeline: &Timeline) -> String {
        let count = usize::try_from(self.count.unwrap_or(1)).unwrap_or(usize::MAX);
        let id = self.message_id.as_ref();
        let found = match self.found(timeline) {
            0 => "none".to_owned(),
            some => some.to_string(),
        };
        let mut sentence = format!(
            "expected {} completed{}, found {found} within {}",
            text::count(count, "message"),
            id.map(|id| format!(" with message id {id}"))
                .unwrap_or_default(),
            text::seconds(self.within)
        );
        if id.is_some() && timeline.dropped() > 0 {
            sentence += &format!(
                "\n  the record dropped its {} oldest events, so this cannot be decided; count without a message id is exact",
                timeline.dropped()
            );
        }
        sentence
    }
}

impl Expectation for Completed {
    async fn check(self) -> Result<(), AssertionFailed> {
        let looked = async {
            known(&self.mailbox).await?;
            let expected = |timeline: &Timeline| self.is_expected(timeline);
            poll(self.within, || self.look(), expected).await
        };
        match looked.await {
            Ok(Looked::Expected) => Ok(()),
            Ok(Looked::Otherwise(timeline)) => {
                let report = Report::of(&self.mailbox).await;
                Err(report.plain_failure(&self.sentence(&timeline)))
            }
            Err(error) => Err(AssertionFailed::unchecked(&error)),
        }
    }
}
