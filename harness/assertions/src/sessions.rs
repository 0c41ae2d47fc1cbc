//! Assertions about the order and the state of a session.
//!
//! The order is by sequence number, as a session is received. It includes locked messages, but not deferred and scheduled
//! ones.

use bytes::Bytes;
use serde_json::Value;
use servicebus_control_api::Session;

use crate::{
    assertion::{Assertion, ExpectedState},
    hint,
    matcher::Text,
    message::{Message, MessageState},
    report::{AssertionFailed, Report},
    text,
    timeline::EventKind,
};

impl Assertion {
    /// Returns the sequence numbers and bodies of the session's messages.
    pub(crate) fn order(&self, messages: &[Message]) -> Vec<(i64, String)> {
        let own = messages.iter().filter(|message| {
            message.state == MessageState::Active
                && message.session_id.as_deref() == Some(&self.session)
        });
        own.map(|message| (message.sequence_number, message.body_text().into_owned()))
            .collect()
    }

    pub(crate) fn is_order(&self, found: &[(i64, String)]) -> bool {
        let mut pairs = self.bodies.iter().zip(found);
        found.len() == self.bodies.len()
            && pairs.all(|(wanted, (_, body))| wanted.matches(Some(body)))
    }

    pub(crate) fn not_in_order(&self, report: &Report, found: &[(i64, String)]) -> AssertionFailed {
        let wanted = listed(self.bodies.iter().map(Text::to_string));
        let bodies = listed(found.iter().map(|(_, body)| format!("{body:?}")));
        let within = text::seconds(self.within);
        let sentence = format!(
            "expected session {:?} to hold {wanted}, found {bodies} within {within}",
            self.session
        );
        let hint = self
            .inversion(found)
            .or_else(|| hint::locate_messages(report));
        report.hinted_failure(&sentence, hint)
    }

    /// Describes the first message that precedes one that it must follow.
    fn inversion(&self, found: &[(i64, String)]) -> Option<String> {
        let wanted = &self.bodies;
        let first = wanted
            .iter()
            .zip(found)
            .position(|(wanted, (_, body))| !wanted.matches(Some(body)))?;
        let later = found.get(first + 1..)?;
        let late = later
            .iter()
            .find(|(_, body)| wanted[first].matches(Some(body)))?;
        let early = &found[first];
        let is_wanted = wanted[first + 1..]
            .iter()
            .any(|wanted| wanted.matches(Some(&early.1)));
        is_wanted.then(|| {
            format!(
                "session {}: #{} {:?} came before #{} {:?}",
                self.session, early.0, early.1, late.0, late.1
            )
        })
    }

    pub(crate) fn wrong_session_state(
        &self,
        report: &Report,
        found: Option<&Bytes>,
    ) -> AssertionFailed {
        let found = found.map_or_else(|| "none".to_owned(), |state| Session::state_text(state));
        let sentence = format!(
            "expected session {:?} to have {}, found {found} within {}",
            self.session,
            self.state.to_text(),
            text::seconds(self.within)
        );
        report.hinted_failure(&sentence, self.never_set(report))
    }

    /// Notes from the record that the state was never set.
    fn never_set(&self, report: &Report) -> Option<String> {
        let mut events = report.timeline.events().iter();
        let was_set = events.any(|event| {
            event.kind == EventKind::SessionStateSet
                && event.session.as_deref() == Some(&self.session)
        });
        let never = !was_set && report.has_record() && report.timeline.dropped() == 0;
        never.then(|| format!("the state of session {:?} was never set", self.session))
    }
}

/// Lists bodies in order: `"1", "2"`.
fn listed(bodies: impl Iterator<Item = String>) -> String {
    match Vec::from_iter(bodies).join(", ") {
        none if none.is_empty() => "no message".to_owned(),
        bodies => bodies,
    }
}

impl ExpectedState {
    pub(crate) fn is(&self, found: Option<&Bytes>) -> bool {
        match (self, found) {
            (Self::None, found) => found.is_none(),
            (_, None) => false,
            (Self::Any, Some(_)) => true,
            (Self::Bytes(bytes), Some(found)) => bytes == found,
            (Self::Text(text), Some(found)) => text.matches(std::str::from_utf8(found).ok()),
            (Self::Json(value), Some(found)) => {
                serde_json::from_slice::<Value>(found).is_ok_and(|found| found == *value)
            }
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Any => "a state".to_owned(),
            Self::None => "no state".to_owned(),
            Self::Bytes(bytes) => format!("the state {}", Session::state_text(bytes)),
            Self::Text(text) => format!("the state {text}"),
            Self::Json(value) => format!("the state {value}"),
        }
    }
}
