//! Which messages an assertion is about.
//!
//! Every assertion about messages takes the same expectations of them: their id, their body as text or as JSON, and
//! what a predicate asks. Without any it is about all of them.

use serde_json::Value;

use crate::{
    matcher::{Predicate, Text, json},
    received_message::ReceivedMessage,
    text,
};

/// What messages are to be like.
#[derive(Debug, Clone, Default)]
pub(super) struct Selector {
    pub(super) message_id: Option<Text>,
    pub(super) body: Option<Text>,
    pub(super) body_json: Option<Value>,
    pub(super) predicate: Option<Predicate<ReceivedMessage>>,
}

impl Selector {
    /// Returns whether it is about all messages.
    pub(super) fn is_any(&self) -> bool {
        self.message_id.is_none() && !self.needs_message()
    }

    /// Returns whether an id is not enough to decide.
    pub(super) fn needs_message(&self) -> bool {
        self.body.is_some() || self.body_json.is_some() || self.predicate.is_some()
    }

    /// Returns whether a message is meant, as far as its id goes.
    pub(super) fn is_named(&self, id: Option<&str>) -> bool {
        self.message_id.as_ref().is_none_or(|text| text.matches(id))
    }

    pub(super) fn matches(&self, message: &ReceivedMessage) -> bool {
        self.differences(message).is_empty()
    }

    /// How far a message is from being meant: by how many expectations it differs, and by how much its id does.
    pub(super) fn distance(&self, message: &ReceivedMessage) -> (usize, (usize, usize)) {
        let found = message.message_id.as_deref().unwrap_or_default();
        let id = match &self.message_id {
            Some(Text::Is(wanted)) => text::distance(wanted, found),
            _ => (0, 0),
        };
        (self.differences(message).len(), id)
    }

    /// Whether an id looks like a misspelling of the one that is meant.
    pub(super) fn is_near(&self, id: &str) -> bool {
        match &self.message_id {
            Some(Text::Is(wanted)) => text::is_near(wanted, id),
            _ => false,
        }
    }

    /// The id that is meant, where it is a single one.
    pub(super) fn only_id(&self) -> Option<&str> {
        match &self.message_id {
            Some(Text::Is(id)) => Some(id),
            _ => None,
        }
    }

    /// Names what is not as it is to be, where that is not plain to see: `body.total is 3`.
    pub(super) fn differences(&self, message: &ReceivedMessage) -> Vec<String> {
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
                Err(_) => Some("body is no JSON".to_owned()),
            });
        }
        if let Some(predicate) = &self.predicate
            && !predicate.is_true_of(message)
        {
            differences.push("the test's predicate says no".to_owned());
        }
        differences
    }

    /// Names what is expected, part by part: `message id "o-17"`.
    pub(super) fn parts(&self) -> Vec<String> {
        let parts = [
            self.message_id
                .as_ref()
                .map(|id| format!("message id {id}")),
            self.body.as_ref().map(|body| format!("body {body}")),
            self.body_json
                .as_ref()
                .map(|json| format!("body JSON {json}")),
            self.predicate
                .as_ref()
                .map(|_| "what the test's predicate asks".to_owned()),
        ];
        parts.into_iter().flatten().collect()
    }

    /// Names what is expected: ` with message id "o-17"`.
    pub(super) fn sentence(&self) -> String {
        sentence(&self.parts())
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
        sentence(&own.chain(self.which.parts()).collect::<Vec<_>>())
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

/// Makes one phrase of parts: ` with reason "Rejected" and message id "o-17"`.
pub(super) fn sentence(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        parts => format!(" with {}", parts.join(" and ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::matcher::contains;

    fn message(id: &str, body: &'static str) -> ReceivedMessage {
        ReceivedMessage {
            message_id: Some(id.to_owned()),
            body: body.into(),
            ..ReceivedMessage::default()
        }
    }

    #[test]
    fn every_expectation_counts() {
        let order = message("o-17", r#"{"total":3,"lines":[]}"#);
        let big = |message: &ReceivedMessage| message.body.len() > 100;
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
                    predicate: Some(Predicate::new(big)),
                    ..Selector::default()
                },
                vec![
                    r#"body differs at character 2: expected "}", found "\"total\":3,\"lines\":[]"…"#,
                    "total is 3",
                    "the test's predicate says no",
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
    fn what_is_expected_reads_as_a_phrase() {
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
