//! Checks an assertion: polls the namespace until the deadline, then collects what explains a failure.
//!
//! Other modules decide what is expected and phrase failures, from messages and records alone.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use servicebus_control_api::{Counts, Receiver};

use crate::{
    assertion::{Assertion, ScheduledEnqueueTime},
    hint,
    kind::Subject,
    message::MessageState,
    namespace::Namespace,
    place::Place,
    recorded::Verb,
    report::{AssertionFailed, Report, listing},
    selector::Selector,
    timeline::Timeline,
};

/// The first and the longest pause between two polls: short at first, because most conditions hold already.
const PAUSES: [Duration; 2] = [Duration::from_millis(2), Duration::from_millis(50)];

/// A running check.
#[derive(Clone, Copy)]
pub(crate) struct Looking<'a> {
    pub(crate) assertion: &'a Assertion,
    pub(crate) namespace: &'a dyn Namespace,
    /// When messages must be due, counted from the start of the check.
    pub(crate) due: Option<SystemTime>,
}

/// The result of a poll.
pub(crate) enum Found {
    Receivers(Vec<Receiver>),
    Record(&'static Verb, Timeline),
    Held(MessageState, u64),
    DeadLetters(u64),
    UnsettledSends(u64),
    Counts(Counts),
    /// The number of messages in what must be empty.
    Present(u64),
    /// The sequence numbers and bodies of a session's messages.
    Order(Vec<(i64, String)>),
    State(Option<Bytes>),
}

/// The judgement of a poll.
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
        namespace.check_counts(self.place.path(), &names)?;
        if let Some(why) = self.without_meaning(&namespace.catalog().await?) {
            return Err(AssertionFailed::unchecked(why));
        }
        let due = self.due.map(ScheduledEnqueueTime::instant);
        let looking = Looking {
            assertion: self,
            namespace,
            due,
        };
        let found = match self.kind.is_absent() {
            true => looking.rule_out().await?,
            false => looking.wait().await?,
        };
        match found {
            None => Ok(()),
            Some(found) => Err(looking.failure(found).await),
        }
    }
}

impl Looking<'_> {
    /// Polls until the assertion holds; else returns the last result.
    async fn wait(self) -> Result<Option<Found>, AssertionFailed> {
        let within = self.assertion.within;
        let [mut pause, longest] = PAUSES;
        loop {
            let found = self.look().await?;
            match self.judge(&found) {
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
    async fn rule_out(self) -> Result<Option<Found>, AssertionFailed> {
        if let Subject::Record(_) = self.assertion.kind.subject() {
            let so_far = self.look().await?;
            if self.judge(&so_far) == Outcome::Fails {
                return Ok(Some(so_far));
            }
        }
        self.namespace.wait_idle(self.assertion.within).await?;
        let found = self.look().await?;
        Ok(Some(found).filter(|found| self.judge(found) == Outcome::Fails))
    }

    async fn look(self) -> Result<Found, AssertionFailed> {
        let (assertion, namespace) = (self.assertion, self.namespace);
        let path = assertion.place.path();
        Ok(match assertion.kind.subject() {
            Subject::Receivers => Found::Receivers(namespace.receivers(path).await?),
            Subject::Record(verb) => Found::Record(verb, self.record().await?),
            Subject::Held(state) => {
                let messages = namespace.messages(path).await?;
                Found::Held(state, self.held(state, &messages))
            }
            Subject::DeadLetters => {
                let dead_letter_queue = assertion.place.dead_letter_queue();
                let messages = namespace.messages(dead_letter_queue.path()).await?;
                Found::DeadLetters(assertion.dead_letters(&messages))
            }
            Subject::UnsettledSends => {
                let timeline = namespace.timeline(path, false).await?;
                let most = timeline.most_unsettled_sends().ok_or_else(|| {
                    let sentence = "this emulator does not count unsettled sends";
                    AssertionFailed::unchecked(sentence.to_owned())
                });
                Found::UnsettledSends(most?)
            }
            Subject::Counts => Found::Counts(namespace.counts(path).await?),
            Subject::Empty => Found::Present(namespace.counts(path).await?.present()),
            Subject::SessionOrder => {
                let messages = namespace.messages(path).await?;
                Found::Order(assertion.order(&messages))
            }
            Subject::SessionState => {
                let state = namespace.session_state(path, &assertion.session);
                Found::State(state.await?)
            }
        })
    }

    /// Fetches the record, with messages if ids are not enough.
    async fn record(self) -> Result<Timeline, AssertionFailed> {
        let needs_message = self.assertion.which.needs_message();
        let path = self.assertion.place.path();
        let timeline = self.namespace.timeline(path, needs_message).await?;
        match needs_message && !timeline.has_messages() {
            false => Ok(timeline),
            true => Err(AssertionFailed::unchecked(
                "this emulator keeps no messages, so that only their ids are known of those that are gone; start it with `--record-messages`, as the harness does"
                    .to_owned(),
            )),
        }
    }

    fn judge(self, found: &Found) -> Outcome {
        let assertion = self.assertion;
        let number = |found| match assertion.kind.is_absent() {
            true if found > 0 => Outcome::Fails,
            true => Outcome::Holds,
            false => Outcome::holds_if(assertion.number.is(found)),
        };
        match found {
            Found::Receivers(receivers) => number(assertion.attached(receivers)),
            Found::Record(verb, timeline) => assertion.judge_record(verb, timeline),
            Found::Held(_, found) | Found::DeadLetters(found) => number(*found),
            Found::UnsettledSends(found) => assertion.judge_sends(*found),
            Found::Counts(counts) => Outcome::holds_if(assertion.are_counted(counts)),
            Found::Present(found) => Outcome::holds_if(*found == 0),
            Found::Order(found) => Outcome::holds_if(assertion.is_order(found)),
            Found::State(found) => Outcome::holds_if(assertion.state.is(found.as_ref())),
        }
    }

    /// Collects what explains a failure, and phrases it.
    async fn failure(self, found: Found) -> AssertionFailed {
        let assertion = self.assertion;
        let report = self.report().await;
        match found {
            Found::Receivers(receivers) => assertion.not_attached(&report, &receivers),
            Found::Record(verb, timeline) => assertion.not_on_record(report, verb, &timeline),
            Found::Held(state, found) => self.not_held(&report, state, found),
            Found::DeadLetters(found) => assertion.not_dead_lettered(&report, found),
            Found::UnsettledSends(found) => assertion.not_unsettled(&report, found),
            Found::Counts(counts) => assertion.not_counted(&report, &counts),
            Found::Present(found) => assertion.not_empty(&report, found),
            Found::Order(found) => assertion.not_in_order(&report, &found),
            Found::State(found) => assertion.not_kept(&report, found.as_ref()),
        }
    }

    async fn report(self) -> Report {
        let (assertion, namespace) = (self.assertion, self.namespace);
        let place = &assertion.place;
        let counts = |wanted| assertion.counts.iter().any(|(name, _)| *name == wanted);
        let with_transfers = match assertion.kind.subject() {
            Subject::Record(_) => !assertion.kind.is_absent(),
            Subject::Counts => counts("transfer_dead_letter") && !counts("dead_letter"),
            _ => false,
        };
        let mut report = match with_transfers && place.is_owner() {
            true => Report::with_transfers(namespace, place).await,
            false => Report::of(namespace, place).await,
        };
        match assertion.kind.subject() {
            Subject::SessionOrder | Subject::SessionState => {
                report.sessions = sessions(&self, &report.timeline).await;
            }
            Subject::Counts => report.shows_dead |= counts("dead_letter"),
            Subject::DeadLetters => report.shows_dead = true,
            _ => {}
        }
        report.about(&assertion.which)
    }
}

/// Lists the sessions, with the events of the asserted one.
async fn sessions(looking: &Looking<'_>, timeline: &Timeline) -> Vec<String> {
    let Assertion { place, session, .. } = looking.assertion;
    let listed = looking.namespace.sessions(place.path()).await;
    let of_session = timeline.of_session(session);
    let listed = listed.map(|listed| listing(place.path(), &listed));
    let mut sessions = Vec::from_iter(listed.ok());
    if !of_session.events().is_empty() {
        sessions.push(of_session.titled(&format!("session {session}")).to_string());
    }
    sessions
}

impl Report {
    /// Collects the report about a place. Requests that fail are left out, because the failure itself matters more.
    async fn of(namespace: &dyn Namespace, place: &Place) -> Self {
        Self::around(namespace, place, &place.dead_letter_queue()).await
    }

    /// As [`Self::of`], with the transfer dead-letter queue instead of the dead-letter queue, if it has messages.
    async fn with_transfers(namespace: &dyn Namespace, place: &Place) -> Self {
        let report = Self::around(namespace, place, &place.transfer_dead_letter_queue()).await;
        Self {
            shows_dead: !report.dead.is_empty(),
            ..report
        }
    }

    async fn around(namespace: &dyn Namespace, place: &Place, dead_letter_queue: &Place) -> Self {
        let owner = place.owner_path();
        let catalog = namespace.catalog().await.unwrap_or_default();
        let live = namespace.messages(owner).await;
        let dead = namespace.messages(dead_letter_queue.path()).await;
        Self {
            subject: place.path().to_owned(),
            owner: owner.to_owned(),
            declared: catalog.find(place.kind(), owner).cloned(),
            live: live.unwrap_or_default(),
            dead: dead.unwrap_or_default(),
            dead_letter_queue: dead_letter_queue.path().to_owned(),
            timeline: namespace.timeline(owner, false).await.unwrap_or_default(),
            shows_dead: !place.is_owner(),
            sessions: Vec::new(),
            examined: Vec::new(),
            which: Selector::default(),
            receivers: namespace.receivers(owner).await.ok(),
        }
    }
}

/// Describes the messages at a place that no receiver has taken.
pub async fn left_behind(namespace: &dyn Namespace, place: &Place) -> String {
    let found = match namespace.counts(place.path()).await {
        Ok(counts) => counts.to_string(),
        Err(error) => error.to_string(),
    };
    let expected = format!("expected nothing to be left when the test ended, found {found}");
    let report = Report::of(namespace, place).await;
    let hint = hint::general(&report);
    report.hinted_failure(&expected, hint).to_string()
}

/// Explains from the record why no client receives at a place.
pub async fn connecting_hint(namespace: &dyn Namespace, place: &Place) -> Option<String> {
    hint::connecting(&Report::of(namespace, place).await)
}
