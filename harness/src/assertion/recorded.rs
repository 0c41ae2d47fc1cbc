//! What the emulator's record says happened, so many times.
//!
//! Nothing in a queue shows that a message was completed or forwarded, so this asks the record: its counters,
//! which are exact, or its events when some messages are meant, with the messages behind them where ids do not
//! tell. Where events or messages were dropped that could matter, the assertion fails and says so.

use super::{AssertionFailed, Expectation, Report, found, known};
use crate::{
    error::{Error, ErrorKind},
    text,
    timeline::{Event, Timeline, is_at},
};

/// Something that happens to messages, and how it is written.
#[derive(Debug)]
pub(crate) struct Verb {
    /// How one is called: `message completed`.
    pub(crate) one: &'static str,
    /// How more are called.
    pub(crate) many: &'static str,
    pub(crate) is: fn(&Event) -> bool,
    /// How often it happened in all, where a counter says so.
    pub(crate) counted: fn(&Timeline) -> Option<u64>,
    /// The target: an entity or a client.
    pub(crate) target: fn(&Event) -> Option<&str>,
    /// Why it may not have happened.
    pub(crate) hint: fn(&Report) -> Option<String>,
}

/// How often something is to have happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    AtLeast(u64),
    Exactly(u64),
}

impl Number {
    pub(crate) fn is(self, found: u64) -> bool {
        match self {
            Self::AtLeast(number) => found >= number,
            Self::Exactly(number) => found == number,
        }
    }

    pub(crate) fn exact(self) -> Option<usize> {
        match self {
            Self::AtLeast(_) => None,
            Self::Exactly(number) => Some(usize::try_from(number).unwrap_or(usize::MAX)),
        }
    }
}

impl Expectation<&'static Verb> {
    pub(crate) async fn check(self) -> Result<(), AssertionFailed> {
        let expected = |timeline: &Timeline| self.is_expected(timeline);
        self.expect(|| self.look(), expected, |timeline| self.failure(timeline))
            .await
    }

    async fn failure(&self, timeline: Timeline) -> AssertionFailed {
        let report = Report::with_transfers(&self.client).await;
        let report = report.about(&self.criteria.which);
        let hint = (self.kind.hint)(&report);
        let report = self.showing(report, &timeline, "as expected");
        report.hinted_failure(&self.sentence(&timeline), hint)
    }

    /// Expects that it never happened. What has happened is never undone, so that one look can refute it. To confirm it
    /// the namespace must be idle first: nothing is due, nothing is on its way, and no receiver holds a lock with which it
    /// could still happen.
    pub(crate) async fn check_absent(self) -> Result<(), AssertionFailed> {
        let timeline = match self.refuted().await {
            Ok(None) => return Ok(()),
            Ok(Some(timeline)) => timeline,
            Err(error) => return Err(AssertionFailed::unchecked(&error)),
        };
        let found = self.found(&timeline);
        let mut sentence = format!(
            "expected no {}{}, found {found}",
            self.kind.one,
            self.which()
        );
        if found == 0 {
            sentence += &undecided(&timeline);
        }
        let report = Report::of(&self.client).await.about(&self.criteria.which);
        let report = self.showing(report, &timeline, "as ruled out");
        Err(report.hinted_failure(&sentence, None))
    }

    /// Returns the record that speaks against it, if there is one.
    async fn refuted(&self) -> Result<Option<Timeline>, Error> {
        known(&self.client).await?;
        let speaks_against =
            |timeline: &Timeline| self.found(timeline) > 0 || !self.is_exact(timeline);
        let so_far = self.look().await?;
        if speaks_against(&so_far) {
            return Ok(Some(so_far));
        }
        self.client.wait_idle(self.criteria.within).await?;
        Ok(Some(self.look().await?).filter(speaks_against))
    }

    async fn look(&self) -> Result<Timeline, Error> {
        if !self.criteria.which.needs_message() {
            return self.client.try_timeline().await;
        }
        let timeline = self.client.timeline_with_messages().await?;
        match timeline.has_messages() {
            true => Ok(timeline),
            false => Err(Error::new(
                ErrorKind::Unsupported,
                None,
                "this emulator keeps no messages, so that only their ids are known of those that are gone; start it with `--record-messages`, as the harness does",
            )),
        }
    }

    /// Counts how often it happened, as far as the record goes back.
    fn found(&self, timeline: &Timeline) -> u64 {
        if let Some(count) = self.counted(timeline) {
            return count;
        }
        let events = self.events(timeline);
        let meant = events.filter(|event| match self.criteria.which.needs_message() {
            true => timeline
                .message(event)
                .is_some_and(|message| self.criteria.which.matches(message)),
            false => self.criteria.which.is_named(event.message_id.as_deref()),
        });
        meant.count() as u64
    }

    /// Returns the events of the verb and target, whichever messages they are about.
    fn events<'a>(&'a self, timeline: &'a Timeline) -> impl Iterator<Item = &'a Event> {
        timeline.events().iter().filter(|event| {
            let target = (self.kind.target)(event);
            (self.kind.is)(event)
                && is_at(event, self.client.path())
                && self
                    .criteria
                    .target
                    .as_ref()
                    .is_none_or(|text| text.matches(target))
        })
    }

    fn counted(&self, timeline: &Timeline) -> Option<u64> {
        let any = self.criteria.which.is_any() && self.criteria.target.is_none();
        any.then(|| (self.kind.counted)(timeline)).flatten()
    }

    /// Returns whether nothing that is missing from the record could change the number.
    fn is_exact(&self, timeline: &Timeline) -> bool {
        self.counted(timeline).is_some() || timeline.dropped() == 0 && self.knows_all(timeline)
    }

    /// Returns whether every message that could be meant is still known.
    fn knows_all(&self, timeline: &Timeline) -> bool {
        let mut unknown = self.events(timeline).filter(|event| {
            self.criteria.which.is_named(event.message_id.as_deref())
                && timeline.message(event).is_none()
        });
        !self.criteria.which.needs_message() || unknown.next().is_none()
    }

    /// Adds what was asked of messages that are gone, how one is called that was like that, and what others were like
    /// instead.
    fn showing(&self, report: Report, timeline: &Timeline, alike: &str) -> Report {
        let messages = self
            .events(timeline)
            .filter_map(|event| timeline.message(event));
        let mut messages: Vec<_> = messages.collect();
        messages.sort_by_cached_key(|message| self.criteria.which.distance(message));
        let lines = messages.into_iter().map(|message| {
            let differences = self.criteria.which.differences(message);
            let listed = match differences.is_empty() {
                true => alike.to_owned(),
                false => format!("{} — differs", differences.join(", ")),
            };
            format!("{message}: {listed}")
        });
        Report {
            examined: lines.collect(),
            ..report
        }
    }

    fn is_expected(&self, timeline: &Timeline) -> bool {
        let is_decided = self.criteria.number.exact().is_none() || self.is_exact(timeline);
        self.criteria.number.is(self.found(timeline)) && is_decided
    }

    fn sentence(&self, timeline: &Timeline) -> String {
        let wanted = match self.criteria.number {
            Number::AtLeast(number @ 2..) => format!("at least {}", self.counting(number)),
            Number::AtLeast(number) | Number::Exactly(number) => self.counting(number),
        };
        let found = found(self.found(timeline));
        let within = text::seconds(self.criteria.within);
        let mut sentence = format!(
            "expected {wanted}{}, found {found} within {within}",
            self.which()
        );
        if !self.is_exact(timeline) {
            sentence += &undecided(timeline);
        }
        sentence
    }

    /// Names whose matter it is: ` to "audit" with message id "o-17"`.
    fn which(&self) -> String {
        let target = self
            .criteria
            .target
            .as_ref()
            .map(|text| format!(" to {text}"));
        target.unwrap_or_default() + &self.criteria.which.sentence()
    }

    fn counting(&self, number: u64) -> String {
        match number {
            1 => format!("1 {}", self.kind.one),
            many => format!("{many} {}", self.kind.many),
        }
    }
}

/// Says that the record does not reach back far enough.
fn undecided(timeline: &Timeline) -> String {
    format!(
        "\n  the record dropped its {}, so this cannot be decided; a count of all messages is exact",
        match timeline.dropped() {
            0 => "oldest messages".to_owned(),
            dropped => format!("{dropped} oldest events"),
        }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        assertion::Completed, clients::QueueClient, connections::Connections, timeline::EventKind,
    };

    static FORWARDED: Verb = Verb {
        one: "message forwarded",
        many: "messages forwarded",
        is: |event| event.kind == EventKind::Forwarded,
        counted: |_| None,
        target: |event| event.detail.as_deref(),
        hint: |_| None,
    };
    static SENT: Verb = Verb {
        one: "message sent",
        many: "messages sent",
        is: |event| event.kind == EventKind::Sent,
        counted: |timeline| Some(timeline.count(&EventKind::Sent)),
        target: |_| None,
        hint: |_| None,
    };

    fn dropped() -> Timeline {
        let answer = r#"{"dropped":3,"counters":{"sent":2},"events":[]}"#;
        Timeline::new("orders", serde_json::from_str(answer).unwrap(), None)
    }

    #[test]
    fn a_record_that_dropped_events_decides_nothing_but_by_its_counters() {
        let client = QueueClient::new(Connections::unconnected(), "orders".to_owned());
        let exactly = |verb: &'static Verb, number| {
            let expectation = Completed::of(&client).count(number);
            expectation.with_kind(|_| verb)
        };
        assert!(exactly(&SENT, 2).is_expected(&dropped()));
        let forwarded = exactly(&FORWARDED, 0);
        assert!(!forwarded.is_expected(&dropped()));
        assert_eq!(
            forwarded.sentence(&dropped()),
            "expected 0 messages forwarded, found none within 5 s\n  the record dropped its 3 oldest events, so this cannot be decided; a count of all messages is exact"
        );
    }
}
