//! Assertions as requests of the control API, by which clients in other languages make them.

use std::{borrow::Cow, time::Duration};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Map, Value};

use crate::{
    Kind,
    address::EntityAddress,
    assertion::{Assertion, ExpectedState, Number, ScheduledEnqueueTime},
    catalog::Catalog,
    matcher::Text,
    text,
};

/// The longest wait, in seconds.
pub const MAX_WITHIN: f64 = 600.0;
/// The default wait.
const WITHIN: Duration = Duration::from_secs(5);
/// The largest delay or tolerance, in seconds: no setting of Service Bus is longer.
const MAX_SECONDS: f64 = 100.0 * 366.0 * 24.0 * 3600.0;

/// The member of an object that encodes bytes in base64.
const BYTES: &str = "$bytes";
/// The number of bytes that an error shows.
const SHOWN_BYTES: usize = 32;

/// The fields of every kind.
const COMMON_FIELDS: [&str; 3] = ["kind", "entity", "within"];
/// Groups of mutually exclusive fields.
const EXCLUSIVE: [&[&str]; 5] = [
    &["times", "at_least"],
    &["count", "at_least"],
    &["count", "at_most"],
    &["at", "due_in"],
    &["text", "bytes", "json", "set"],
];

/// Why a request is invalid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RequestError(String);

impl Assertion {
    /// Parses a request about an entity of a namespace.
    ///
    /// # Errors
    ///
    /// Returns an error if the kind does not exist, the kind does not take a field, or a field does not take its value.
    pub fn of_request(
        request: &Map<String, Value>,
        catalog: &Catalog,
    ) -> Result<Self, RequestError> {
        let kind = kind(request.get("kind"))?;
        let wrong = request.keys().find(|name| {
            let mut taken = COMMON_FIELDS.into_iter().chain(kind.takes());
            !taken.any(|taken| taken == *name)
        });
        if let Some(name) = wrong {
            let takes = Vec::from_iter(COMMON_FIELDS.into_iter().chain(kind.takes())).join(", ");
            let sentence = format!(
                "the assertion {} takes no {name:?}; it takes {takes}",
                kind.name()
            );
            return Err(RequestError(sentence));
        }
        for one_of in EXCLUSIVE {
            let given = one_of.iter().filter(|name| request.contains_key(**name));
            if given.count() > 1 {
                let sentence = format!("an assertion takes one of {}", one_of.join(", "));
                return Err(RequestError(sentence));
            }
        }
        let Some(Value::String(entity)) = request.get("entity") else {
            return Err(invalid_value(
                "entity",
                request.get("entity"),
                "an address, such as \"orders\"",
            ));
        };
        let mut assertion = Self::new(kind, EntityAddress::at(entity, catalog), WITHIN);
        for (name, value) in request {
            assertion.set(name, value)?;
        }
        assertion.check_completeness(request)?;
        Ok(assertion)
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), RequestError> {
        match name {
            "within" => self.within = seconds(name, value, MAX_WITHIN)?,
            "message_id" => self.which.message_id = Some(text(name, value)?),
            "body" => self.which.body = Some(text(name, value)?),
            "body_json" => self.which.body_json = Some(json(name, value)?),
            "reason" => self.reason = Some(text(name, value)?),
            "description" => self.description = Some(text(name, value)?),
            "to" => self.to = Some(text(name, value)?),
            "count" | "times" | "at_least" | "at_most" => {
                self.set_number(name, unsigned(name, value)?)
            }
            "at" => self.due = Some(instant(name, value)?),
            "due_in" => self.due = Some(seconds(name, value, MAX_SECONDS)?.into()),
            "tolerance" => self.tolerance = seconds(name, value, MAX_SECONDS)?,
            "session" => self.session = string(name, value)?.to_owned(),
            "bodies" => {
                let bodies = value.as_array();
                let bodies =
                    bodies.ok_or_else(|| invalid_value(name, Some(value), "a list of texts"))?;
                let bodies = bodies.iter().map(|body| text(name, body));
                self.bodies = bodies.collect::<Result<_, _>>()?;
            }
            "text" | "bytes" | "json" | "set" => self.state = state(name, value)?,
            _ => {
                if let Some(name) = self.kind.takes().find(|count| *count == name) {
                    self.counts.push((name, unsigned(name, value)?));
                }
            }
        }
        Ok(())
    }

    fn set_number(&mut self, name: &str, number: u64) {
        self.number = match name {
            "at_least" => Number::AtLeast(number),
            _ => Number::Exactly(number),
        };
        if name != "at_most" {
            self.least = Some(number);
        }
        if name != "at_least" {
            self.most = Some(number);
        }
    }

    /// Rejects a request that asserts nothing.
    fn check_completeness(&self, request: &Map<String, Value>) -> Result<(), RequestError> {
        let is_of_session = matches!(self.kind, Kind::SessionOrder | Kind::SessionState);
        if is_of_session && !request.contains_key("session") {
            return Err(invalid_value("session", None, "the id of a session"));
        }
        if self.kind == Kind::MessageCount && self.counts.is_empty() {
            let counts = self.kind.fields().replace(' ', ", ");
            let sentence =
                format!("the assertion message_count asserts nothing without one of {counts}");
            return Err(RequestError(sentence));
        }
        Ok(())
    }
}

fn kind(named: Option<&Value>) -> Result<Kind, RequestError> {
    let name = match named {
        Some(Value::String(name)) => name,
        named => return Err(invalid_value("kind", named, "the name of an assertion")),
    };
    Kind::named(name).ok_or_else(|| {
        let names = Kind::ALL.map(|kind| kind.name().to_owned());
        let names = text::nearest_first(name, names.to_vec());
        let meant = match text::is_near(name, &names[0]) {
            true => format!("did you mean {:?}? There", names[0]),
            false => "there".to_owned(),
        };
        let all = Kind::ALL.map(Kind::name).join(", ");
        RequestError(format!("there is no assertion {name:?}; {meant} are {all}"))
    })
}

fn text(name: &str, value: &Value) -> Result<Text, RequestError> {
    let other = || invalid_value(name, Some(value), "a text or {\"contains\": a text}");
    match only_member(value, "contains") {
        Some(part) => Ok(Text::Contains(
            text_of(name, part)?.ok_or_else(other)?.into_owned(),
        )),
        None => Ok(Text::Is(
            text_of(name, value)?.ok_or_else(other)?.into_owned(),
        )),
    }
}

/// Returns a text, which may be encoded as UTF-8 bytes; `None` for other values.
fn text_of<'a>(name: &str, value: &'a Value) -> Result<Option<Cow<'a, str>>, RequestError> {
    let Some(bytes) = only_member(value, BYTES) else {
        return Ok(value.as_str().map(Cow::Borrowed));
    };
    let text = String::from_utf8(bytes_of(name, bytes)?);
    let text = text.map_err(|error| {
        let shown = error.as_bytes().iter().take(SHOWN_BYTES);
        let shown = Vec::from_iter(shown.map(|byte| format!("{byte:02x}"))).join(" ");
        let sentence = format!("{name} is the bytes {shown}, which are not UTF-8; it takes a text");
        RequestError(sentence)
    });
    text.map(|text| Some(Cow::Owned(text)))
}

fn bytes_of(name: &str, value: &Value) -> Result<Vec<u8>, RequestError> {
    let bytes = BASE64_STANDARD.decode(string(name, value)?);
    bytes.map_err(|_| invalid_value(name, Some(value), "bytes in base64"))
}

/// Returns the only member of an object.
fn only_member<'a>(value: &'a Value, name: &str) -> Option<&'a Value> {
    let members = value.as_object().filter(|members| members.len() == 1);
    members.and_then(|members| members.get(name))
}

/// Returns JSON without encoded bytes.
fn json(name: &str, value: &Value) -> Result<Value, RequestError> {
    let items: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(members) => members.values().collect(),
        _ => Vec::new(),
    };
    if only_member(value, BYTES).is_some() {
        let sentence = format!("{name} contains bytes, which JSON does not have; it takes JSON");
        return Err(RequestError(sentence));
    }
    for item in items {
        json(name, item)?;
    }
    Ok(value.clone())
}

fn string<'a>(name: &str, value: &'a Value) -> Result<&'a str, RequestError> {
    value
        .as_str()
        .ok_or_else(|| invalid_value(name, Some(value), "a text"))
}

fn unsigned(name: &str, value: &Value) -> Result<u64, RequestError> {
    value
        .as_u64()
        .ok_or_else(|| invalid_value(name, Some(value), "a whole number"))
}

fn seconds(name: &str, value: &Value, most: f64) -> Result<Duration, RequestError> {
    let given = value.as_f64().filter(|seconds| *seconds <= most);
    let length = given.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    length.ok_or_else(|| invalid_value(name, Some(value), &format!("seconds from 0 to {most}")))
}

fn instant(name: &str, value: &Value) -> Result<ScheduledEnqueueTime, RequestError> {
    let instant = value
        .as_str()
        .and_then(|text| text.parse::<jiff::Timestamp>().ok());
    match instant {
        Some(instant) => Ok(ScheduledEnqueueTime::At(instant.into())),
        None => Err(invalid_value(name, Some(value), "an instant in RFC 3339")),
    }
}

fn state(name: &str, value: &Value) -> Result<ExpectedState, RequestError> {
    Ok(match name {
        "text" => ExpectedState::Text(text(name, value)?),
        "json" => ExpectedState::Json(json(name, value)?),
        "bytes" => {
            let bytes = only_member(value, BYTES).unwrap_or(value);
            ExpectedState::Bytes(bytes_of(name, bytes)?.into())
        }
        _ => match value {
            Value::Bool(true) => ExpectedState::Any,
            Value::Bool(false) => ExpectedState::None,
            _ => return Err(invalid_value(name, Some(value), "true or false")),
        },
    })
}

fn invalid_value(name: &str, value: Option<&Value>, takes: &str) -> RequestError {
    RequestError(match value {
        Some(value) => format!("{name} is {value}; it takes {takes}"),
        None => format!("{name} is missing; it takes {takes}"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::catalog::{EntityKind, EntitySettings};

    fn catalog() -> Catalog {
        let of = |kind, name: &str| EntitySettings::of(kind, name.to_owned(), &Value::Null);
        let entities = [
            of(EntityKind::Queue, "orders"),
            of(EntityKind::Topic, "prices"),
            of(EntityKind::Subscription, "prices/Subscriptions/eu"),
        ];
        entities.into_iter().collect()
    }

    fn read(request: Value) -> Result<Assertion, String> {
        let request = request.as_object().cloned().unwrap_or_default();
        Assertion::of_request(&request, &catalog()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_request_equals_the_macro() {
        let assertion = read(json!({
            "kind": "dead_lettered", "entity": "Orders/$deadletterqueue", "reason": {"contains": "Max"},
            "body_json": {"total": 3}, "count": 2, "within": 0.5,
        }))
        .unwrap();
        assert_eq!(assertion.kind, Kind::DeadLettered);
        assert_eq!(assertion.address.path(), "orders/$DeadLetterQueue");
        assert_eq!(assertion.reason, Some(Text::Contains("Max".to_owned())));
        assert_eq!(assertion.number, Number::Exactly(2));
        assert_eq!(assertion.within, Duration::from_millis(500));
        let eu = read(json!({"kind": "empty", "entity": "prices/subscriptions/EU"})).unwrap();
        assert_eq!(eu.address.path(), "prices/Subscriptions/eu");
        assert_eq!(eu.within, WITHIN);
    }

    #[test]
    fn utf8_bytes_equal_their_text() {
        let bytes = json!({"$bytes": "MTI="});
        let assertion = read(json!({
            "kind": "dead_lettered", "entity": "orders", "body": bytes, "reason": {"contains": bytes},
        }))
        .unwrap();
        assert_eq!(assertion.which.body, Some(Text::Is("12".to_owned())));
        assert_eq!(assertion.reason, Some(Text::Contains("12".to_owned())));
        let state = |bytes: Value| {
            let request = json!({
                "kind": "session_state", "entity": "orders", "session": "s", "bytes": bytes,
            });
            format!("{:?}", read(request).unwrap())
        };
        assert_eq!(state(bytes), state(json!("MTI=")));
    }

    #[test]
    fn invalid_requests_are_refused() {
        let cases = [
            (
                json!({"entity": "orders"}),
                "kind is missing; it takes the name of an assertion",
            ),
            (
                json!({"kind": "empty"}),
                "entity is missing; it takes an address, such as \"orders\"",
            ),
            (
                json!({"kind": "empty", "entity": "orders", "count": 1}),
                "the assertion empty takes no \"count\"; it takes kind, entity, within",
            ),
            (
                json!({"kind": "completed", "entity": "orders", "count": -1}),
                "count is -1; it takes a whole number",
            ),
            (
                json!({"kind": "completed", "entity": "orders", "within": 601}),
                "within is 601; it takes seconds from 0 to 600",
            ),
            (
                json!({"kind": "delivered", "entity": "orders", "times": 1, "at_least": 1}),
                "an assertion takes one of times, at_least",
            ),
            (
                json!({"kind": "session_order", "entity": "orders", "bodies": []}),
                "session is missing; it takes the id of a session",
            ),
            (
                json!({"kind": "message_count", "entity": "orders"}),
                "the assertion message_count asserts nothing without one of active, dead_letter, transfer_dead_letter, scheduled, locked, deferred, transfer",
            ),
            (
                json!({"kind": "completed", "entity": "orders", "body": {"matches": "."}}),
                "body is {\"matches\":\".\"}; it takes a text or {\"contains\": a text}",
            ),
            (
                json!({"kind": "completed", "entity": "orders", "body": {"contains": {"$bytes": "/zE="}}}),
                "body is the bytes ff 31, which are not UTF-8; it takes a text",
            ),
            (
                json!({"kind": "completed", "entity": "orders", "body_json": [{"id": {"$bytes": "MTI="}}]}),
                "body_json contains bytes, which JSON does not have; it takes JSON",
            ),
        ];
        for (request, sentence) in cases {
            assert_eq!(read(request).unwrap_err(), sentence);
        }
        let unknown = read(json!({"kind": "deadlettered", "entity": "orders"})).unwrap_err();
        let begins = "there is no assertion \"deadlettered\"; did you mean \"dead_lettered\"? There are abandoned, ";
        assert!(unknown.starts_with(begins), "{unknown}");
    }

    #[test]
    fn every_field_that_a_kind_takes_is_read() {
        let value = |name: &str| match name {
            "at" => json!("2026-01-01T00:00:00Z"),
            "bodies" => json!(["a"]),
            "bytes" => json!("AA=="),
            "set" => json!(true),
            "message_id" | "body" | "reason" | "description" | "to" | "session" | "text" => {
                json!("a")
            }
            _ => json!(7),
        };
        for kind in Kind::ALL {
            assert_eq!(Kind::named(kind.name()), Some(kind));
            for name in kind.takes() {
                let mut request =
                    json!({"kind": kind.name(), "entity": "orders", "session": "s", "active": 1});
                let members = request.as_object_mut().unwrap();
                members.retain(|name, _| {
                    COMMON_FIELDS.contains(&name.as_str())
                        || kind.takes().any(|taken| taken == name)
                });
                let plain = format!("{:?}", read(request.clone()).unwrap());
                request[name] = value(name);
                let set = format!("{:?}", read(request.clone()).unwrap());
                let is_default = ["set", "active"].contains(&name);
                assert!(
                    plain != set || is_default,
                    "{name} of {kind:?} changes nothing"
                );
            }
        }
    }
}
