//! Several messages in one request: a JSON array of `{"Body":…,"BrokerProperties":{…},"UserProperties":{…}}`.

use std::fmt;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use serde::Deserializer as _;
use serde::de::{Error as _, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::broker_properties::BrokerPropertiesHeader;
use super::context::Rejection;
use super::outgoing::OutgoingMessage;
use super::value::PropertyValue;
use crate::nodes::quote;

/// The content type of such a request. With a parameter it is one message of that type, as the documentation warns.
const CONTENT_TYPE: &str = "application/vnd.microsoft.servicebus.json";

/// Returns whether a request of this type is a batch.
pub(crate) fn is_batch(content_type: Option<&str>) -> bool {
    content_type.is_some_and(|found| found.trim().eq_ignore_ascii_case(CONTENT_TYPE))
}

/// Parses a batch, which has at least one message, and passes each message on before it parses the next: as values, the
/// messages of a batch take a hundred times its bytes, so that `take` must be able to refuse it at its limit.
pub(crate) fn parse(
    body: &[u8],
    take: impl FnMut(OutgoingMessage) -> Result<(), Rejection>,
) -> Result<(), Rejection> {
    let mut refused = None;
    let messages = Messages {
        take,
        refused: &mut refused,
    };
    let mut json = serde_json::Deserializer::from_slice(body);
    let parsed = json.deserialize_seq(messages).and_then(|()| json.end());
    match (refused, parsed) {
        (Some(refused), _) => Err(refused),
        (None, Ok(())) => Ok(()),
        (None, Err(error)) if error.is_data() => {
            let text = "A batch must be a JSON array with at least one message.";
            Err(Rejection::bad_request(text))
        }
        (None, Err(error)) => {
            let text = format!("The batch is not JSON: {error}.");
            Err(Rejection::bad_request(text))
        }
    }
}

/// Reads the array of messages.
struct Messages<'r, F> {
    take: F,
    /// Why reading has stopped, which an error of the parser cannot contain.
    refused: &'r mut Option<Rejection>,
}

impl<'de, F> Visitor<'de> for Messages<'_, F>
where
    F: FnMut(OutgoingMessage) -> Result<(), Rejection>,
{
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut messages: A) -> Result<(), A::Error> {
        let mut index = 0;
        while let Some(message) = messages.next_element::<Value>()? {
            if let Err(refused) = read(index, message).and_then(&mut self.take) {
                *self.refused = Some(refused);
                return Err(A::Error::custom("a message is refused"));
            }
            index += 1;
        }
        match index {
            0 => Err(A::Error::invalid_length(0, &self)),
            _ => Ok(()),
        }
    }
}

fn read(index: usize, message: Value) -> Result<OutgoingMessage, Rejection> {
    let refused = |text: &str| {
        Rejection::bad_request(format!(
            "The message {index} of the batch is refused: {text}"
        ))
    };
    let Value::Object(mut message) = message else {
        return Err(refused("it must be a JSON object."));
    };
    let mut object = |name: &str| match message.remove(name) {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object),
        Some(_) => Err(refused(&format!("{name} must be a JSON object."))),
    };
    let properties = object("BrokerProperties")?;
    let application = object("UserProperties")?;
    let properties = BrokerPropertiesHeader::read(&properties)
        .map_err(|rejection| refused(&rejection.refusal.text))?;
    let application = application.into_iter().map(|(name, value)| {
        let value = property(&value).ok_or_else(|| {
            let text = format!(
                "the property '{}' must be a string, a number, true, false or null.",
                quote(&name)
            );
            refused(&text)
        })?;
        Ok((name, value))
    });
    let application = application.collect::<Result<Vec<_>, Rejection>>()?;
    let body = body(&mut message).ok_or_else(|| {
        refused("Body must be a string, in base64 where IsBodyBase64Encoded is true.")
    })?;
    Ok(OutgoingMessage {
        properties,
        application,
        body,
    })
}

fn body(message: &mut Map<String, Value>) -> Option<Bytes> {
    let text = match message.remove("Body") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text,
        Some(_) => return None,
    };
    let flags = ["IsBodyBase64Encoded", "IsBodyBase64"];
    match flags.iter().find_map(|flag| message.get(*flag)) {
        Some(Value::Bool(true)) => BASE64_STANDARD.decode(&text).ok().map(Bytes::from),
        _ => Some(text.into_bytes().into()),
    }
}

fn property(value: &Value) -> Option<PropertyValue> {
    match value {
        Value::Null => Some(PropertyValue::Null),
        Value::Bool(flag) => Some(PropertyValue::Bool(*flag)),
        Value::Number(number) => match number.as_i64() {
            Some(number) => Some(PropertyValue::Long(number)),
            None => number.as_f64().map(PropertyValue::Double),
        },
        Value::String(text) => Some(PropertyValue::Text(text.clone())),
        Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(batch: &str) -> Result<Vec<OutgoingMessage>, Rejection> {
        let mut messages = Vec::new();
        parse(batch.as_bytes(), |message| {
            messages.push(message);
            Ok(())
        })?;
        Ok(messages)
    }

    #[test]
    fn the_documented_batch_is_parsed() {
        let batch = r#"[{"Body":"first","BrokerProperties":{"Label":"M1","TimeToLiveTimeSpan":"0.00:00:40"}},
            {"Body":"second","UserProperties":{"Priority":"Low","Weight":2,"Rate":0.5,"Late":false,"None":null}},
            {"Body":"aGk=","IsBodyBase64Encoded":true},{}]"#;
        let messages = messages(batch).expect("a batch");
        let bodies: Vec<&[u8]> = messages.iter().map(|message| &*message.body).collect();
        assert_eq!(bodies, [&b"first"[..], b"second", b"hi", b""]);
        assert_eq!(messages[0].properties.label.as_deref(), Some("M1"));
        assert_eq!(messages[0].properties.time_to_live, Some(40_000));
        let mut application = messages[1].application.clone();
        application.sort_by(|(a, _), (b, _)| a.cmp(b));
        let expected = [
            ("Late", PropertyValue::Bool(false)),
            ("None", PropertyValue::Null),
            ("Priority", PropertyValue::Text("Low".into())),
            ("Rate", PropertyValue::Double(0.5)),
            ("Weight", PropertyValue::Long(2)),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value));
        assert_eq!(application, expected);
    }

    #[test]
    fn a_malformed_batch_is_refused_with_the_position() {
        for (batch, expected) in [
            ("", "The batch is not JSON"),
            ("{}", "at least one message"),
            ("[]", "at least one message"),
            ("1", "at least one message"),
            ("[{}", "The batch is not JSON"),
            ("[{}]]", "The batch is not JSON"),
            (
                "[{},1]",
                "The message 1 of the batch is refused: it must be a JSON object.",
            ),
            (r#"[{"Body":1}]"#, "Body must be a string"),
            (r#"[{"Body":"?","IsBodyBase64Encoded":true}]"#, "in base64"),
            (
                r#"[{"BrokerProperties":[]}]"#,
                "BrokerProperties must be a JSON object",
            ),
            (
                r#"[{"BrokerProperties":{"TimeToLive":0}}]"#,
                "The broker property 'TimeToLive' is 0",
            ),
            (
                r#"[{"UserProperties":{"a":{}}}]"#,
                "the property 'a' must be a string",
            ),
        ] {
            let refused = messages(batch).expect_err(batch);
            assert!(
                refused.refusal.text.contains(expected),
                "{batch}: {refused:?}"
            );
        }
        let deep = "[".repeat(100_000);
        assert!(messages(&deep).is_err());
    }

    #[test]
    fn a_batch_is_parsed_no_further_than_it_is_taken() {
        let mut taken = 0;
        let refused = parse(b"[{},{},{},this is not JSON", |_| {
            taken += 1;
            match taken {
                3 => Err(Rejection::bad_request("enough")),
                _ => Ok(()),
            }
        });
        assert_eq!(refused.expect_err("refused").refusal.text, "enough");
        assert_eq!(taken, 3);
    }

    #[test]
    fn a_batch_needs_the_content_type_without_parameters() {
        assert!(is_batch(Some("application/vnd.microsoft.servicebus.json")));
        assert!(is_batch(Some("Application/Vnd.Microsoft.ServiceBus.JSON")));
        assert!(!is_batch(Some(
            "application/vnd.microsoft.servicebus.json; charset=utf-8"
        )));
        assert!(!is_batch(Some("application/json")));
        assert!(!is_batch(None));
    }
}
