//! Selects the messages of an assertion.
//!
//! Every assertion about messages takes the same conditions: id, body as text or JSON, and a predicate. Without conditions
//! it is about all messages.

use serde_json::Value;

use crate::{
    matcher::{Text, json},
    message::Message,
    text,
};

/// Conditions on messages.
#[derive(Debug, Clone, Default)]
pub struct Selector {
    /// The message id.
    pub message_id: Option<Text>,
    /// The body as text.
    pub body: Option<Text>,
    /// The expected content of a JSON body.
    pub body_json: Option<Value>,
    /// Whether the test's predicate must hold.
    pub has_predicate: bool,
}

impl Selector {
    /// Returns whether it selects all messages.
    pub(crate) fn is_any(&self) -> bool {
        self.message_id.is_none() && !self.needs_message()
    }

    /// Returns whether the id is not enough to decide.
    pub(crate) fn needs_message(&self) -> bool {
        self.body.is_some() || self.body_json.is_some() || self.has_predicate
    }

    /// Returns whether a message id matches.
    pub(crate) fn is_named(&self, id: Option<&str>) -> bool {
        text_matches(self.message_id.as_ref(), id)
    }

    pub(crate) fn matches(&self, message: &Message) -> bool {
        self.differences(message).is_empty()
    }

    /// Returns how far each message is from the selection: the number of conditions that differ, and the distance of its id.
    pub(crate) fn distances<'m>(
        &self,
        messages: impl Iterator<Item = &'m Message>,
    ) -> Vec<(usize, (usize, usize))> {
        let distance = |(at, message): (usize, &Message)| {
            let found = message.message_id.as_deref().unwrap_or_default();
            let id = match &self.message_id {
                Some(Text::Is(wanted)) if at < text::COMPARED => text::distance(wanted, found),
                Some(Text::Is(_)) => (usize::MAX, 0),
                _ => (0, 0),
            };
            (self.differences(message).len(), id)
        };
        messages.enumerate().map(distance).collect()
    }

    /// Returns whether an id looks like a misspelling of the expected one.
    pub(crate) fn is_near(&self, id: &str) -> bool {
        match &self.message_id {
            Some(Text::Is(wanted)) => text::is_near(wanted, id),
            _ => false,
        }
    }

    /// Returns the expected id, if it is a single one.
    pub(crate) fn only_id(&self) -> Option<&str> {
        match &self.message_id {
            Some(Text::Is(id)) => Some(id),
            _ => None,
        }
    }

    /// Describes the conditions that a message does not meet, unless that is obvious: `body.total is 3`.
    pub(crate) fn differences(&self, message: &Message) -> Vec<String> {
        let mut differences = Vec::new();
        if !self.is_named(message.message_id.as_deref()) {
            differences.push("message id differs".to_owned());
        }
        if let Some(body) = &self.body
            && !body.matches(Some(&message.body_text()))
        {
            differences.push(body.difference(&message.body_text()));
        }
        if let Some(expected) = &self.body_json {
            differences.extend(match message.body_json() {
                Ok(found) => json::difference(expected, &found),
                Err(_) => Some("body is not JSON".to_owned()),
            });
        }
        if self.has_predicate
            && let Some(predicate) = &message.predicate
            && !predicate.is_true_of(&())
        {
            differences.push("the test's predicate does not match".to_owned());
        }
        differences
    }

    /// Describes the conditions: `message id "o-17"`.
    pub(crate) fn parts(&self) -> Vec<String> {
        let parts = [
            self.message_id
                .as_ref()
                .map(|id| format!("message id {id}")),
            self.body.as_ref().map(|body| format!("body {body}")),
            self.body_json
                .as_ref()
                .map(|json| format!("body JSON {json}")),
            self.has_predicate
                .then(|| "a match of the test's predicate".to_owned()),
        ];
        parts.into_iter().flatten().collect()
    }

    /// Describes the selection: ` with message id "o-17"`.
    pub(crate) fn sentence(&self) -> String {
        sentence(&self.parts())
    }
}

/// Conditions on dead letters.
#[derive(Debug, Clone, Default)]
pub(crate) struct ExpectedDeadLetter {
    pub reason: Option<Text>,
    pub description: Option<Text>,
    pub which: Selector,
}

impl ExpectedDeadLetter {
    /// Describes the conditions: ` with reason "Rejected"`.
    pub(crate) fn sentence(&self) -> String {
        let reason = self.reason.as_ref().map(|text| format!("reason {text}"));
        let description = self.description.as_ref();
        let description = description.map(|text| format!("description {text}"));
        let own = [reason, description].into_iter().flatten();
        sentence(&own.chain(self.which.parts()).collect::<Vec<_>>())
    }

    /// Describes how a dead letter's reason differs: `: reason "Rejected" — differs`.
    pub(crate) fn difference(&self, message: &Message) -> String {
        let part = |name: &str, wanted: Option<&Text>, found: Option<&str>| {
            let shown = match found {
                Some(found) => format!("{name} {found:?}"),
                None => format!("no {name}"),
            };
            match text_matches(wanted, found) {
                true => shown,
                false => shown + " — differs",
            }
        };
        let reason = message.dead_letter_reason.as_deref();
        let mut parts = vec![part("reason", self.reason.as_ref(), reason)];
        if let Some(description) = &self.description {
            let found = message.dead_letter_error_description.as_deref();
            parts.push(part("description", Some(description), found));
        }
        parts.extend(self.which.differences(message));
        format!(": {}", parts.join(", "))
    }

    pub(crate) fn matches(&self, message: &Message) -> bool {
        let description = message.dead_letter_error_description.as_deref();
        text_matches(self.reason.as_ref(), message.dead_letter_reason.as_deref())
            && text_matches(self.description.as_ref(), description)
            && self.which.matches(message)
    }
}

/// Returns whether a text matches, if one is expected.
fn text_matches(wanted: Option<&Text>, found: Option<&str>) -> bool {
    wanted.is_none_or(|text| text.matches(found))
}

/// Joins conditions to a phrase: ` with reason "Rejected" and message id "o-17"`.
pub(crate) fn sentence(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        parts => format!(" with {}", parts.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::matcher::{Predicate, contains};

    fn message(id: &str, body: &'static str) -> Message {
        Message {
            message_id: Some(id.to_owned()),
            body: body.into(),
            ..Message::default()
        }
    }

    #[test]
    fn every_condition_is_applied() {
        let order = Message {
            predicate: Some(Predicate::new(|()| false)),
            ..message("o-17", r#"{"total":3,"lines":[]}"#)
        };
        let cases = [
            (Selector::default(), vec![]),
            (
                Selector {
                    message_id: Some("o-18".into()),
                    body: Some(contains("lines")),
                    ..Selector::default()
                },
                vec!["message id differs"],
            ),
            (
                Selector {
                    body: Some("{}".into()),
                    body_json: Some(json!({"total": 4})),
                    has_predicate: true,
                    ..Selector::default()
                },
                vec![
                    r#"body differs at character 2: expected "}", found "\"total\":3,\"lines\":[]"…"#,
                    "total is 3",
                    "the test's predicate does not match",
                ],
            ),
        ];
        for (which, differences) in cases {
            assert_eq!(
                which.differences(&order),
                differences,
                "{}",
                which.sentence()
            );
            assert_eq!(which.matches(&order), differences.is_empty());
        }
    }

    #[test]
    fn conditions_are_phrased() {
        let which = Selector {
            message_id: Some("o-17".into()),
            body_json: Some(json!({"total": 4})),
            ..Selector::default()
        };
        assert_eq!(
            which.sentence(),
            r#" with message id "o-17" and body JSON {"total":4}"#
        );
        assert!(which.needs_message() && !which.is_any());
    }
}
