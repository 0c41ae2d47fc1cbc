//! Several messages in one request: a JSON array of `{"Body":…,"BrokerProperties":{…},"UserProperties":{…}}`.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
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

/// Parses a batch, which has at least one message.
pub(crate) fn parse(body: &[u8]) -> Result<Vec<OutgoingMessage>, Rejection> {
    let messages: Value = serde_json::from_slice(body)
        .map_err(|error| Rejection::bad_request(format!("The batch is not JSON: {error}.")))?;
    if let Value::Array(messages) = messages
        && !messages.is_empty()
    {
        return messages.into_iter().enumerate().map(read).collect();
    }
    let text = "A batch must be a JSON array with at least one message.";
    Err(Rejection::bad_request(text))
}

fn read((index, message): (usize, Value)) -> Result<OutgoingMessage, Rejection> {
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

    #[test]
    fn the_documented_batch_is_parsed() {
        let batch = r#"[{"Body":"first","BrokerProperties":{"Label":"M1","TimeToLiveTimeSpan":"0.00:00:40"}},
            {"Body":"second","UserProperties":{"Priority":"Low","Weight":2,"Rate":0.5,"Late":false,"None":null}},
            {"Body":"aGk=","IsBodyBase64Encoded":true},{}]"#;
        let messages = parse(batch.as_bytes()).expect("a batch");
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
            let refused = parse(batch.as_bytes()).expect_err(batch);
            assert!(
                refused.refusal.text.contains(expected),
                "{batch}: {refused:?}"
            );
        }
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).is_err());
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
