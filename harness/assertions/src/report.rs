//! The text of a failed assertion.
//!
//! It has four parts, of which only the first is always present: what was expected and found, the messages in the queues,
//! how they got there, and a hint.

use std::{collections::HashSet, error::Error, fmt, time::SystemTime};

use servicebus_control_api::{Receiver, Session};

use super::selector::{ExpectedDeadLetter, Selector};
use crate::{
    catalog::EntitySettings,
    message::{Message, MessageState},
    text,
    timeline::{EventKind, Timeline},
};

/// The prefix of an assertion that only an emulator can check.
const UNCHECKABLE: &str = "could not check: ";
/// The largest number of listed messages per queue.
const LISTED: usize = 10;
/// The largest number of messages with a timeline.
const TIMELINES: usize = 3;

/// Returns additional text about a message; the flag is true for a dead letter.
pub(crate) type Remark<'a> = &'a dyn Fn(&Message, bool) -> String;

/// A failed assertion, with everything that explains it.
#[derive(Clone, PartialEq, Eq)]
pub struct AssertionFailed {
    text: String,
    /// Whether the assertion could not be checked, because the namespace does not report what it needs.
    is_unchecked: bool,
    evidence: Option<Evidence>,
}

/// Where to begin the analysis of a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evidence {
    /// A queue, topic, subscription or dead-letter queue.
    pub address: String,
    /// The message that the assertion is about, if there is one.
    pub sequence_number: Option<i64>,
    /// The id of that message, or of a recorded one that is gone.
    pub message_id: Option<String>,
}

impl AssertionFailed {
    /// Creates the failure of an assertion that could not be checked.
    #[doc(hidden)]
    pub fn unchecked(text: String) -> Self {
        Self {
            is_unchecked: text.contains(UNCHECKABLE),
            text,
            evidence: None,
        }
    }

    /// Returns where to begin, if the assertion could be checked.
    pub fn evidence(&self) -> Option<&Evidence> {
        self.evidence.as_ref()
    }

    /// Returns whether the assertion could not be checked.
    pub fn is_unchecked(&self) -> bool {
        self.is_unchecked
    }
}

impl fmt::Display for AssertionFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Same as `Display`, so that `unwrap` in a test is readable.
impl fmt::Debug for AssertionFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for AssertionFailed {}

/// The state of the namespace at a failure.
#[derive(Debug)]
pub(crate) struct Report {
    /// The address of the assertion.
    pub subject: String,
    /// Its queue, topic or subscription.
    pub owner: String,
    pub declared: Option<EntitySettings>,
    /// When the messages were listed, by the client's clock; the text of a failure takes longer.
    pub listed_at: SystemTime,
    /// The messages of the queue or subscription itself.
    pub messages: Vec<Message>,
    /// The related dead letters.
    pub dead_letters: Vec<Message>,
    /// Their address.
    pub dead_letter_queue: String,
    pub timeline: Timeline,
    /// Whether the dead-letter queue matters to the assertion, and is listed even if empty.
    pub shows_dead_letters: bool,
    /// The sessions, with the events of the asserted one.
    pub sessions: Vec<String>,
    /// The sessions that receivers hold, each with its holder.
    pub holders: Vec<(String, String)>,
    /// The checked messages of the record, with the results; they may be gone by now.
    pub examined: Vec<String>,
    /// The messages of the assertion, which are shown first.
    pub which: Selector,
    /// The receivers of the code under test, if the namespace lists them.
    pub receivers: Option<Vec<Receiver>>,
}

impl Report {
    /// Sorts the messages so that the best match for the selector comes first.
    pub(crate) fn about(self, which: &Selector) -> Self {
        let sorted = |messages: Vec<Message>| {
            let keys = which.distances(messages.iter());
            text::sorted(keys, messages)
        };
        Self {
            messages: sorted(self.messages),
            dead_letters: sorted(self.dead_letters),
            which: which.clone(),
            ..self
        }
    }

    /// Returns the selected messages of the queue itself.
    pub(crate) fn selected(&self) -> impl Iterator<Item = &Message> {
        let messages = self.messages.iter();
        messages.filter(|message| self.which.matches(message))
    }

    /// Creates the failure with the default remarks.
    pub(crate) fn hinted_failure(&self, expected: &str, hint: Option<String>) -> AssertionFailed {
        let remark = |message: &Message, is_dead: bool| match is_dead {
            true => ExpectedDeadLetter::default().difference(message),
            false => state_of(self, message),
        };
        self.failure(expected, &remark, hint)
    }

    /// Creates the failure with this first line.
    pub(crate) fn failure(
        &self,
        expected: &str,
        remark: Remark<'_>,
        hint: Option<String>,
    ) -> AssertionFailed {
        let mut parts = vec![format!("{}: {expected}", self.subject)];
        if self.shows_dead_letters {
            let remark = |message: &Message| remark(message, true);
            parts.push(contents(
                &self.dead_letter_queue,
                &self.dead_letters,
                &remark,
            ));
        }
        if !self.messages.is_empty() || !self.shows_dead_letters {
            let remark = |message: &Message| remark(message, false);
            parts.push(contents(&self.owner, &self.messages, &remark));
        }
        if !self.examined.is_empty() {
            parts.push(listed("on record", self.examined.iter().cloned()));
        }
        parts.extend(self.sessions.iter().cloned());
        parts.extend(self.timelines());
        parts.extend(hint.map(|hint| format!("hint: {}", text::one_line(&hint))));
        AssertionFailed {
            text: parts.join("\n\n"),
            is_unchecked: false,
            evidence: Some(self.evidence()),
        }
    }

    /// Returns the best match: a message in the queue, else a recorded one with the id, else any.
    fn evidence(&self) -> Evidence {
        let dead_letters = self.dead_letters.iter().filter(|_| self.shows_dead_letters);
        let dead_letters = dead_letters.map(|message| (&self.dead_letter_queue, message));
        let listed = dead_letters.chain(self.messages.iter().map(|message| (&self.owner, message)));
        let at = |(address, message): (&String, &Message)| Evidence {
            address: address.clone(),
            sequence_number: Some(message.sequence_number),
            message_id: message.message_id.clone(),
        };
        let mut selected = listed.clone();
        if let Some(selected) = selected.find(|(_, message)| self.which.matches(message)) {
            return at(selected);
        }
        let ids = self.ids();
        let mut named = ids.iter().filter(|id| self.which.is_named(Some(id)));
        let recorded = named
            .next()
            .or_else(|| ids.first())
            .map(|&id| id.to_owned());
        let distances = self
            .which
            .distances(listed.clone().map(|(_, message)| message));
        let nearest = listed.zip(distances).min_by_key(|(_, distance)| *distance);
        match nearest.map(|(listed, _)| listed) {
            Some(nearest) if self.which.message_id.is_none() => at(nearest),
            _ => Evidence {
                address: self.subject.clone(),
                sequence_number: None,
                message_id: recorded,
            },
        }
    }

    /// Returns whether there is a record, which only an emulator has.
    pub(crate) fn has_record(&self) -> bool {
        !self.timeline.entity().is_empty()
    }

    /// Returns whether the last event of a message delivered it or renewed its lock.
    pub(crate) fn is_locked(&self, message: &Message) -> bool {
        let id = message.message_id.as_deref();
        let mut events = self.timeline.events().iter();
        let last = events.rfind(|event| {
            id.is_some() && event.message_id.as_deref() == id && event.kind != EventKind::Fault
        });
        last.is_some_and(|event| {
            matches!(event.kind, EventKind::Delivered | EventKind::LockRenewed)
        })
    }

    /// Returns the timelines of the selected messages, else of the listed ones, else of recorded ones.
    fn timelines(&self) -> Vec<String> {
        if !self.has_record() {
            return Vec::new();
        }
        let ids = self.ids();
        let selected: Vec<&str> = match self.which.message_id {
            Some(_) => {
                let ids = ids.iter().copied();
                ids.filter(|id| self.which.is_named(Some(id))).collect()
            }
            None => ids.iter().copied().take(TIMELINES).collect(),
        };
        let near = || {
            let near = ids.iter().copied().take(text::COMPARED);
            let near = near.filter(|id| self.which.is_near(id));
            let wanted = self.which.only_id().unwrap_or_default();
            near.min_by_key(|id| text::distance(wanted, id)).into_iter()
        };
        let shown: Vec<&str> = match selected.is_empty() {
            true => near().collect(),
            false => selected.into_iter().take(TIMELINES).collect(),
        };
        let timelines = shown.iter();
        let timelines = timelines.map(|id| self.timeline.of_message(id).titled(id).to_string());
        let mut timelines: Vec<String> = timelines.collect();
        if ids.len() > shown.len() {
            let more = text::count((ids.len() - shown.len()) as u64, "other message");
            timelines.push(format!("the timelines of {more} are not shown"));
        }
        timelines
    }

    /// Returns the distinct ids of all listed or recorded messages.
    fn ids(&self) -> Vec<&str> {
        let dead_letters = self.dead_letters.iter().filter(|_| self.shows_dead_letters);
        let listed = dead_letters
            .chain(&self.messages)
            .filter_map(|message| message.message_id.as_deref());
        let recorded = self.timeline.events().iter();
        let recorded = recorded.filter_map(|event| event.message_id.as_deref());
        let mut seen = HashSet::new();
        let mut ids = Vec::from_iter(listed.chain(recorded));
        ids.retain(|id| seen.insert(*id));
        ids
    }
}

/// Describes the state of a message in the queue itself, and its deliveries.
pub(crate) fn state_of(report: &Report, message: &Message) -> String {
    let state = match message.state {
        MessageState::Active if report.is_locked(message) => "locked".to_owned(),
        MessageState::Deferred if report.is_locked(message) => "deferred, locked".to_owned(),
        MessageState::Scheduled => match due_in(report, message) {
            Some(wait) => format!("scheduled, due in {wait}"),
            None => "scheduled".to_owned(),
        },
        state => state.to_string(),
    };
    let declared = report.declared.as_ref();
    let limit = declared.and_then(|queue| queue.max_delivery_count);
    match (message.delivery_count, limit) {
        (0, _) => format!(": {state}"),
        (counted, Some(limit)) => format!(": {state}, {counted} of {limit} deliveries counted"),
        (counted, None) => format!(": {state}, {counted} deliveries counted"),
    }
}

/// Describes how long a scheduled message still waited when it was listed.
pub(crate) fn due_in(report: &Report, message: &Message) -> Option<String> {
    let wait = message.scheduled_for?.duration_since(report.listed_at);
    Some(text::rounded_seconds(wait.unwrap_or_default()))
}

/// Lists sessions.
pub fn listing(path: &str, sessions: &[Session]) -> String {
    if sessions.is_empty() {
        return format!("{path} has no sessions");
    }
    let title = format!(
        "{path} has {}",
        text::count(sessions.len() as u64, "session")
    );
    listed(&title, sessions.iter().map(Session::to_string))
}

fn contents(path: &str, messages: &[Message], remark: &dyn Fn(&Message) -> String) -> String {
    if messages.is_empty() {
        return format!("{path} is empty");
    }
    let title = format!(
        "{path} holds {}",
        text::count(messages.len() as u64, "message")
    );
    let lines = messages.iter();
    listed(
        &title,
        lines.map(|message| format!("{message}{}", remark(message))),
    )
}

/// Formats a title and the first of some lines.
fn listed(title: &str, lines: impl ExactSizeIterator<Item = String>) -> String {
    let more = lines.len().saturating_sub(LISTED);
    let mut text = title.to_owned();
    text.extend(lines.take(LISTED).map(|line| format!("\n  {line}")));
    if more > 0 {
        text += &format!("\n  … and {more} more");
    }
    text
}
