//! Checks an assertion: polls the namespace until the deadline, then collects what explains a failure.
//!
//! Other modules decide what is expected and phrase failures, from messages and records alone.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use servicebus_control_api::{Counts, Receiver};

use crate::{
    address::EntityAddress,
    assertion::{Assertion, ScheduledEnqueueTime},
    hint,
    message::MessageState,
    namespace::Namespace,
    recorded::RecordedEventKind,
    report::{AssertionFailed, Report, listing},
    selector::Selector,
    subject::Subject,
    timeline::Timeline,
};

/// The first and the longest pause between two polls: short at first, because most conditions hold already.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];

#[derive(Clone, Copy)]
pub(crate) struct RunningCheck<'a> {
    pub(crate) assertion: &'a Assertion,
    pub(crate) namespace: &'a dyn Namespace,
    /// When messages must be due, counted from the start of the check.
    pub(crate) due: Option<SystemTime>,
}

/// The result of a poll.
pub(crate) enum Polled {
    Receivers(Vec<Receiver>),
    Record(&'static RecordedEventKind, Timeline),
    InState(MessageState, u64),
    DeadLetters(u64),
    UnsettledSends(u64),
    Counts(Counts),
    /// The number of messages in what must be empty.
    Present(u64),
    /// The sequence numbers and bodies of a session's messages.
    Order(Vec<(i64, String)>),
    State(Option<Bytes>),
}

/// The evaluation of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    Holds,
    /// Final: waiting cannot help.
    Fails,
    NotYet,
}

impl Outcome {
    pub(crate) fn holds_if(holds: bool) -> Self {
        match holds {
            true => Self::Holds,
            false => Self::NotYet,
        }
    }
}

impl Assertion {
    /// Polls until the assertion holds or its time is over.
    ///
    /// # Errors
    ///
    /// Returns an error if the assertion does not hold, or cannot be checked; its text says why.
    pub async fn check(&self, namespace: &dyn Namespace) -> Result<(), AssertionFailed> {
        let names = Vec::from_iter(self.counts.iter().map(|(name, _)| *name));
        namespace.check_counts(self.address.path(), &names)?;
        let catalog = namespace.catalog().await?;
        if let Some(unknown) = catalog.missing(self.address.kind(), self.address.owner_path()) {
            let events = namespace.newest_events().await.unwrap_or_default();
            let unknown = unknown.deleted_in(&events);
            return Err(AssertionFailed::unchecked(unknown.to_string()));
        }
        if let Some(why) = self.why_unsupported(&catalog) {
            return Err(AssertionFailed::unchecked(why));
        }
        let due = self.due.map(ScheduledEnqueueTime::instant);
        let check = RunningCheck {
            assertion: self,
            namespace,
            due,
        };
        let found = match self.kind.is_negative() {
            true => check.confirm_absence().await?,
            false => check.wait().await?,
        };
        match found {
            None => Ok(()),
            Some(found) => Err(check.failure(found).await),
        }
    }
}

impl RunningCheck<'_> {
    /// Polls until the assertion holds; else returns the last result.
    async fn wait(self) -> Result<Option<Polled>, AssertionFailed> {
        let within = self.assertion.within;
        let [mut pause, longest] = PAUSES;
        loop {
            let found = self.poll().await?;
            match self.evaluate(&found) {
                Outcome::Holds => return Ok(None),
                Outcome::Fails => return Ok(Some(found)),
                Outcome::NotYet if self.namespace.elapsed() >= within => return Ok(Some(found)),
                Outcome::NotYet => tokio::time::sleep(pause.min(within)).await,
            }
            pause = (pause * 2).min(longest);
        }
    }

    /// Returns a result that refutes a negative assertion. The record only grows, so one poll of it can refute the
    /// assertion. To confirm it the namespace must be idle first: nothing is due or in flight, and no receiver holds a lock
    /// with which the event could still happen.
    async fn confirm_absence(self) -> Result<Option<Polled>, AssertionFailed> {
        if let Subject::Record(_) = self.assertion.subject() {
            let so_far = self.poll().await?;
            if self.evaluate(&so_far) == Outcome::Fails {
                return Ok(Some(so_far));
            }
        }
        self.namespace.wait_idle(self.assertion.within).await?;
        let found = self.poll().await?;
        Ok(Some(found).filter(|found| self.evaluate(found) == Outcome::Fails))
    }

    async fn poll(self) -> Result<Polled, AssertionFailed> {
        let (assertion, namespace) = (self.assertion, self.namespace);
        let path = assertion.address.path();
        Ok(match assertion.subject() {
            Subject::Receivers => Polled::Receivers(namespace.receivers(path).await?),
            Subject::Record(event_kind) => Polled::Record(event_kind, self.record().await?),
            Subject::InState(state) => {
                let messages = namespace.messages(path).await?;
                Polled::InState(state, self.count_in_state(state, &messages))
            }
            Subject::DeadLetters => {
                let dead_letter_queue = assertion.address.dead_letter_queue();
                let messages = namespace.messages(dead_letter_queue.path()).await?;
                Polled::DeadLetters(assertion.dead_letters(&messages))
            }
            Subject::UnsettledSends => {
                let timeline = namespace.timeline(path, false).await?;
                let most = timeline.most_unsettled_sends().ok_or_else(|| {
                    let sentence = "this emulator does not count unsettled sends";
                    AssertionFailed::unchecked(sentence.to_owned())
                });
                Polled::UnsettledSends(most?)
            }
            Subject::Counts => Polled::Counts(namespace.counts(path).await?),
            Subject::Empty => Polled::Present(namespace.counts(path).await?.present()),
            Subject::SessionOrder => {
                let messages = namespace.messages(path).await?;
                Polled::Order(assertion.order(&messages))
            }
            Subject::SessionState => {
                let state = namespace.session_state(path, &assertion.session);
                Polled::State(state.await?)
            }
        })
    }

    /// Fetches the record, with messages if ids are not enough.
    async fn record(self) -> Result<Timeline, AssertionFailed> {
        let needs_message = self.assertion.which.needs_message();
        let path = self.assertion.address.path();
        let timeline = self.namespace.timeline(path, needs_message).await?;
        match needs_message && !timeline.has_messages() {
            false => Ok(timeline),
            true => Err(AssertionFailed::unchecked(
                "this emulator keeps no messages, so only the ids of removed messages are known; start it with `--record-messages`, as the harness does"
                    .to_owned(),
            )),
        }
    }

    fn evaluate(self, found: &Polled) -> Outcome {
        let assertion = self.assertion;
        let number = |found| match assertion.kind.is_negative() {
            true if found > 0 => Outcome::Fails,
            true => Outcome::Holds,
            false => Outcome::holds_if(assertion.number.is(found)),
        };
        match found {
            Polled::Receivers(receivers) => number(assertion.attached(receivers)),
            Polled::Record(event_kind, timeline) => assertion.evaluate_record(event_kind, timeline),
            Polled::InState(_, found) | Polled::DeadLetters(found) => number(*found),
            Polled::UnsettledSends(found) => assertion.evaluate_unsettled_sends(*found),
            Polled::Counts(counts) => Outcome::holds_if(assertion.are_counted(counts)),
            Polled::Present(found) => Outcome::holds_if(*found == 0),
            Polled::Order(found) => Outcome::holds_if(assertion.is_order(found)),
            Polled::State(found) => Outcome::holds_if(assertion.state.is(found.as_ref())),
        }
    }

    /// Collects what explains a failure, and phrases it.
    async fn failure(self, found: Polled) -> AssertionFailed {
        let assertion = self.assertion;
        let report = self.report().await;
        match found {
            Polled::Receivers(receivers) => assertion.not_attached(&report, &receivers),
            Polled::Record(event_kind, timeline) => {
                assertion.not_recorded(report, event_kind, &timeline)
            }
            Polled::InState(state, found) => self.not_held(&report, state, found),
            Polled::DeadLetters(found) => assertion.not_dead_lettered(&report, found),
            Polled::UnsettledSends(found) => assertion.not_unsettled(&report, found),
            Polled::Counts(counts) => assertion.not_counted(&report, &counts),
            Polled::Present(found) => assertion.not_empty(&report, found),
            Polled::Order(found) => assertion.not_in_order(&report, &found),
            Polled::State(found) => assertion.wrong_session_state(&report, found.as_ref()),
        }
    }

    async fn report(self) -> Report {
        let (assertion, namespace) = (self.assertion, self.namespace);
        let address = &assertion.address;
        let counts = |wanted| assertion.counts.iter().any(|(name, _)| *name == wanted);
        let with_transfers = match assertion.subject() {
            Subject::Record(_) => !assertion.kind.is_negative(),
            Subject::Counts => counts("transfer_dead_letter") && !counts("dead_letter"),
            _ => false,
        };
        let mut report = match with_transfers && address.is_owner() {
            true => Report::with_transfers(namespace, address).await,
            false => Report::of(namespace, address).await,
        };
        match assertion.subject() {
            Subject::SessionOrder | Subject::SessionState => {
                report.sessions = sessions(&self, &report.timeline).await;
            }
            Subject::Counts => report.shows_dead_letters |= counts("dead_letter"),
            Subject::DeadLetters => report.shows_dead_letters = true,
            _ => {}
        }
        report.about(&assertion.which)
    }
}

/// Lists the sessions, with the events of the asserted one.
async fn sessions(check: &RunningCheck<'_>, timeline: &Timeline) -> Vec<String> {
    let Assertion {
        address, session, ..
    } = check.assertion;
    let listed = check.namespace.sessions(address.path()).await;
    let of_session = timeline.of_session(session);
    let listed = listed.map(|listed| listing(address.path(), &listed));
    let mut sessions = Vec::from_iter(listed.ok());
    if !of_session.events().is_empty() {
        sessions.push(of_session.titled(&format!("session {session}")).to_string());
    }
    sessions
}

impl Report {
    /// Collects the report about a place. Requests that fail are left out, because the failure itself matters more.
    async fn of(namespace: &dyn Namespace, address: &EntityAddress) -> Self {
        Self::around(namespace, address, &address.dead_letter_queue()).await
    }

    /// As [`Self::of`], with the transfer dead-letter queue instead of the dead-letter queue, if it has messages.
    async fn with_transfers(namespace: &dyn Namespace, address: &EntityAddress) -> Self {
        let report = Self::around(namespace, address, &address.transfer_dead_letter_queue()).await;
        Self {
            shows_dead_letters: !report.dead_letters.is_empty(),
            ..report
        }
    }

    async fn around(
        namespace: &dyn Namespace,
        address: &EntityAddress,
        dead_letter_queue: &EntityAddress,
    ) -> Self {
        let owner = address.owner_path();
        let catalog = namespace.catalog().await.unwrap_or_default();
        let messages = namespace.messages(owner).await;
        let listed_at = SystemTime::now();
        let dead_letters = namespace.messages(dead_letter_queue.path()).await;
        let declared = catalog.find(address.kind(), owner).cloned();
        let sessions = match &declared {
            Some(declared) if declared.requires_session => namespace.sessions(owner).await,
            _ => Ok(Vec::new()),
        };
        let sessions = sessions.unwrap_or_default().into_iter();
        Self {
            subject: address.path().to_owned(),
            owner: owner.to_owned(),
            declared,
            listed_at,
            messages: messages.unwrap_or_default(),
            dead_letters: dead_letters.unwrap_or_default(),
            dead_letter_queue: dead_letter_queue.path().to_owned(),
            timeline: namespace.timeline(owner, false).await.unwrap_or_default(),
            shows_dead_letters: !address.is_owner(),
            sessions: Vec::new(),
            holders: sessions
                .filter_map(|session| Some((session.session_id, session.holder?)))
                .collect(),
            examined: Vec::new(),
            which: Selector::default(),
            receivers: namespace.receivers(owner).await.ok(),
        }
    }
}

/// Describes the messages at a place that no receiver has taken.
pub async fn describe_remaining(namespace: &dyn Namespace, address: &EntityAddress) -> String {
    let found = match namespace.counts(address.path()).await {
        Ok(counts) => counts.to_string(),
        Err(error) => error.to_string(),
    };
    let expected = format!("expected no messages when the test ended, found {found}");
    let report = Report::of(namespace, address).await;
    let hint = hint::general(&report);
    report.hinted_failure(&expected, hint).to_string()
}

/// Explains from the record why no client receives at a place.
pub async fn connecting_hint(namespace: &dyn Namespace, address: &EntityAddress) -> Option<String> {
    hint::connecting(&Report::of(namespace, address).await)
}
